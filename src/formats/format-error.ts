/** What a file is not, in one sentence that begins with what the file calls itself. */
export class FormatError extends Error {
  override name = "FormatError";
}

/** A name out of a file as a sentence can hold it: whatever it is, at most 80 characters of it, on one line. */
export function told(name: string): string {
  return JSON.stringify(name.slice(0, 80));
}
