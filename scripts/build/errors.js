/** A failure that one sentence explains to the person who installs; everything else is a bug and keeps its stack. */
export class BuildError extends Error {
  /**
   * @param {string} sentence what is missing and what to do about it
   * @param {{ cause?: unknown }} [options]
   */
  constructor(sentence, options) {
    super(sentence, options);
    this.name = "BuildError";
  }
}
