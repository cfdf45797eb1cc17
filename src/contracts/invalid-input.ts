/** A body that does not follow its contract; the message is one sentence, `path` the field at fault. */
export class InvalidInput extends Error {
  override name = "InvalidInput";
  readonly path: string;
  /** The field itself where `path` is the object that lacks it, or has it without need. */
  readonly field: string;

  constructor(path: string, sentence: string, field = path) {
    super(path === "" ? sentence : `${path}: ${sentence}`);
    this.path = path;
    this.field = field;
  }
}
