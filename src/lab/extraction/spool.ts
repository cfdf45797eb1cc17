import { type FileHandle, open } from "node:fs/promises";
import { UserError } from "../../contracts/user-error.js";

/** A tokenized text of a part. */
export interface SpooledText {
  /** Index in the data set. */
  index: number;
  tokens: Int32Array;
  /** First token included in a mean. */
  start: number;
}

/** Bytes that are collected before they are written, and read together. */
const blockBytes = 1024 ** 2;
const headNumbers = 3;

/** The tokens of a part on disk, so that its data set is read and tokenized once: counted first, then extracted. */
export class TokenSpool {
  #file: FileHandle | undefined;
  #waiting: Int32Array[] = [];
  #bytes = 0;

  /** @param path a file that does not exist yet */
  constructor(private readonly path: string) {}

  async add({ index, start, tokens }: SpooledText): Promise<void> {
    this.#waiting.push(Int32Array.of(index, start, tokens.length), tokens);
    this.#bytes += (headNumbers + tokens.length) * 4;
    if (this.#bytes >= blockBytes) await this.#flush();
  }

  async finish(): Promise<void> {
    await this.#flush();
    await this.#file?.close();
  }

  async #flush(): Promise<void> {
    this.#file ??= await open(this.path, "wx", 0o600);
    for (const numbers of this.#waiting) {
      const bytes = bytesOf(numbers);
      for (let done = 0; done < bytes.length; ) {
        done += (await this.#file.write(bytes, done, bytes.length - done).catch(refuse)).bytesWritten;
      }
    }
    this.#waiting = [];
    this.#bytes = 0;
  }

  /** The texts in the order in which they were added. @param skipped number of texts to leave out */
  async *read(skipped: number): AsyncGenerator<SpooledText> {
    const reader = new NumberReader(await open(this.path));
    try {
      for (let text = 0; ; text++) {
        const head = await reader.next(headNumbers);
        if (head === undefined) return;
        const [index, start, count] = head as unknown as [number, number, number];
        const tokens = await reader.next(count);
        if (tokens === undefined) throw new Error(`${this.path} ends within text ${index}.`);
        if (text >= skipped) yield { index, start, tokens };
      }
    } finally {
      await reader.close();
    }
  }
}

function refuse(error: NodeJS.ErrnoException): never {
  if (error.code === undefined) throw error;
  throw new UserError(`The tokens of the texts cannot be written to the job's folder (${error.code}).`);
}

/** Int32 numbers of a file in order. */
class NumberReader {
  #block = new Int32Array(0);
  #at = 0;

  constructor(private readonly file: FileHandle) {}

  /** The next numbers as a new array; undefined at the end of the file. */
  async next(count: number): Promise<Int32Array | undefined> {
    while (this.#block.length - this.#at < count) {
      const rest = this.#block.subarray(this.#at);
      const block = new Int32Array(Math.max(count, blockBytes / 4));
      block.set(rest);
      const read = await this.#fill(bytesOf(block).subarray(rest.byteLength));
      this.#block = block.subarray(0, rest.length + read / 4);
      this.#at = 0;
      if (read === 0) return undefined;
    }
    this.#at += count;
    return this.#block.slice(this.#at - count, this.#at);
  }

  async #fill(bytes: Uint8Array): Promise<number> {
    let done = 0;
    while (done < bytes.length) {
      const { bytesRead } = await this.file.read(bytes, done, bytes.length - done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return done;
  }

  async close(): Promise<void> {
    await this.file.close();
  }
}

/** Views of numbers in this machine's byte order: the file does not outlive the job. */
const bytesOf = ({ buffer, byteOffset, byteLength }: Int32Array) =>
  new Uint8Array(buffer, byteOffset, byteLength);
