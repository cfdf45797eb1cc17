import { writeSync } from "node:fs";
import { relative } from "node:path";
import { UserError } from "../contracts/user-error.js";
import { exitCodes } from "./exit-code.js";

/** Errors by which a stream says that nobody reads it any more: a pipe's end, a terminal that is gone. */
const unread = ["EPIPE", "ECONNRESET", "EIO", "ERR_STREAM_DESTROYED"];

/** The file descriptor. */
const standardOutput = 1;

let lost: NodeJS.ErrnoException | undefined;

/**
 * Whoever reads what this program writes may have seen enough, as `head` does. That is no error of the program:
 * what it has begun it does to the end. Output that could not be written for any other reason, a full disk above
 * all, is told on standard error, and the program does not end with 0.
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
  process.stderr.write(`tapline: Standard output cannot be written (${error.code ?? error.message}).\n`);
}

function failOnLoss(): void {
  if (lost !== undefined && !process.exitCode) process.exitCode = exitCodes.failed;
}

/**
 * Node hands each piece to a file once and does not look how much of it was taken; a disk that fills up takes a
 * part. Everything is written, or it is an error.
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

/** Writes to standard output and waits until it is taken, or nobody reads it any more. */
export function print(text: string): Promise<void> {
  return new Promise((resolve) => {
    process.stdout.write(text.endsWith("\n") ? text : `${text}\n`, () => resolve());
  });
}

export function printJson(value: unknown): Promise<void> {
  return print(JSON.stringify(value, null, 2));
}

/** A path as short as it can be said from where the user stands. */
export function shortPath(path: string, folder = process.cwd()): string {
  const near = relative(folder, path);
  return near.startsWith("..") || near === "" ? path : near;
}

/** Writes a file that was asked for with --out, as a whole or not at all. @throws UserError */
export async function writeOut(path: string, bytes: Uint8Array): Promise<void> {
  const { writeWhole } = await import("../client/whole-file.js");
  try {
    await writeWhole(path, [bytes]);
  } catch (error) {
    throw unwritable(path, error);
  }
}

/** Why a file that was asked for is not there, as a sentence; other errors stay as they are. */
export function unwritable(path: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  return syscall === undefined ? error : new UserError(`${path} cannot be written (${code}); see --out.`);
}
