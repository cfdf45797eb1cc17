import { writeSync } from "node:fs";
import { relative } from "node:path";
import { UserError } from "../contracts/user-error.js";
import { exitCodes } from "./exit-code.js";

/** Errors of a stream without a reader: a closed pipe or terminal. */
const unread = ["EPIPE", "ECONNRESET", "EIO", "ERR_STREAM_DESTROYED"];

/** File descriptor. */
const standardOutput = 1;

let lost: NodeJS.ErrnoException | undefined;

/**
 * Handles errors of the standard streams. If the reader stops early, as `head` does, the program still finishes its work.
 * Any other write error, such as a full disk, is reported on standard error, and the exit code is not 0.
 */
export function watchOutput(): void {
  process.stderr.off("error", ignore).on("error", ignore);
  process.stdout.off("error", noteLoss).on("error", noteLoss);
  process.off("exit", failOnLoss).on("exit", failOnLoss);
  writeFilesWhole(process.stdout);
}

const ignore = () => {};

function noteLoss(error: NodeJS.ErrnoException): void {
  if (lost !== undefined || unread.includes(error.code ?? "")) return;
  lost = error;
  process.stderr.write(`tapline: Cannot write to standard output (${error.code ?? error.message}).\n`);
}

function failOnLoss(): void {
  if (lost !== undefined && !process.exitCode) process.exitCode = exitCodes.failed;
}

/**
 * Node ignores partial writes to a file, which happen when the disk fills up. This writes everything or fails.
 */
function writeFilesWhole(stream: NodeJS.WriteStream): void {
  if ((stream as { _type?: string })._type !== "fs") return;
  stream._write = (chunk: Buffer | string, encoding, done) => {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : chunk;
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(standardOutput, bytes, at);
      done();
    } catch (error) {
      done(error as Error);
    }
  };
}

/** Writes to standard output and waits until it is written, or until there is no reader. */
export function print(text: string): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(text.endsWith("\n") ? text : `${text}\n`, () => resolve());
  });
}

export function printJson(value: unknown): Promise<void> {
  return print(JSON.stringify(value, null, 2));
}

/** A path relative to the working directory, if it is inside it. */
export function shortPath(path: string, folder = process.cwd()): string {
  const near = relative(folder, path);
  return near.startsWith("..") || near === "" ? path : near;
}

/** Writes an --out file atomically. @throws UserError */
export async function writeOut(path: string, bytes: Uint8Array): Promise<void> {
  const { writeWhole } = await import("../client/whole-file.js");
  try {
    await writeWhole(path, [bytes]);
  } catch (error) {
    throw unwritable(path, error);
  }
}

/** Turns a system error into a message for users; returns other errors unchanged. */
export function unwritable(path: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  return syscall === undefined ? error : new UserError(`Cannot write ${path} (${code}); see --out.`);
}
