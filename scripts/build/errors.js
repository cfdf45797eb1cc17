import { dirname } from "node:path";
import { buildCommand } from "./paths.js";

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

/**
 * The sentence for a failure that the person who installs can do something about: one of ours, or the file
 * system's refusal to write, wherever it came from.
 * @param {unknown} error
 * @returns {string | undefined} nothing for a bug
 */
export function sentenceOf(error) {
  if (error instanceof BuildError) {
    return error.message;
  }
  const { code, path } = /** @type {NodeJS.ErrnoException} */ (error ?? {});
  if (code === "ENOSPC" || code === "EDQUOT") {
    return `The disk is full${path ? ` (${path})` : ""}: make room and run ${buildCommand} again.`;
  }
  if (path && (code === "EACCES" || code === "EPERM" || code === "EROFS")) {
    return `The folder ${dirname(path)} cannot be written by this user: make it writable, or install as the user that owns it, and run ${buildCommand} again.`;
  }
  return undefined;
}
