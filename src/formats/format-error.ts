/** A file cannot be read; the message is one sentence. */
export class FormatError extends Error {
  override name = "FormatError";
}

/** Control and bidirectional characters that affect terminals and that JSON does not escape. */
const acting = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** A name from a file, quoted for an error message: escaped, on one line, at most 80 characters. */
export function quoted(name: string): string {
  const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(name.slice(0, 80)).replace(acting, escaped);
}

/** A path from an untrusted source: unquoted if it has only letters, digits, spaces and common punctuation. */
export function quotedPath(path: string): string {
  return /^[\w ./@+-]{1,300}$/.test(path) ? path : quoted(path);
}
