/** Tests whether a path is at or below one of the prefixes, ignoring case, escapes and repeated slashes. */
export function underPath(...prefixes: string[]): (path: string) => boolean {
  return (path) => {
    const plain = `${decoded(path).toLowerCase().replace(/\/+/g, "/")}/`;
    return prefixes.some((prefix) => plain.startsWith(`${prefix}/`));
  };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
