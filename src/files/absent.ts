/** For `.catch`: nothing where a file or folder is not there, or not any more. */
export function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
  return undefined;
}
