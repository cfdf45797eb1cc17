/** What a file is not, in one sentence that begins with what the file calls itself. */
export class FormatError extends Error {
  override name = "FormatError";
}
