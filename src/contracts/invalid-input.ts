/** A body that violates its contract. The message is one sentence; `path` is the invalid field. */
export class InvalidInput extends Error {
  override name = "InvalidInput";
  readonly path: string;
  /** The field itself, where `path` is the object that lacks it or must not have it. */
  readonly field: string;

  constructor(path: string, sentence: string, field = path) {
    super(path === "" ? sentence : `${path}: ${sentence}`);
    this.path = path;
    this.field = field;
  }
}

/**
 * A field that is missing.
 * @param words what follows its name, such as "is required with clean."
 */
export function missing(field: string, words: string): InvalidInput {
  return new InvalidInput("", `${field} ${words}`, field);
}
