/** A test for paths at or below the given prefixes, however they are spelled. */
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
