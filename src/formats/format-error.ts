/** What a file is not, in one sentence that begins with what the file calls itself. */
export class FormatError extends Error {
  override name = "FormatError";
}

/** What a terminal acts on, or turns text around, and JSON leaves as it is. */
const acting = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** A name out of a file as a sentence can hold it: whatever it is, at most 80 characters of it, on one line. */
export function told(name: string): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(name.slice(0, 80)).replace(acting, escaped);
}

/** A path out of elsewhere: as it is, where it has nothing but letters, digits, spaces and the like. */
export function toldPath(path: string): string {
  return /^[\w ./@+-]{1,300}$/.test(path) ? path : told(path);
}
