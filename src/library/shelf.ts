import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { liveLimits } from "../contracts/live-limits.js";
import { UserError } from "../contracts/user-error.js";
import { syncFolder, writeDurably } from "../files/durable.js";
import {
  decodeSafetensors,
  encodeSafetensors,
  type SafetensorsFile,
  type Tensor,
} from "../formats/safetensors.js";
import { hashTensors } from "./identity.js";

const extension = ".safetensors";

/** A file on a shelf: its tensors, what it says of itself, and when it was put there (Unix seconds). */
export interface Shelved extends SafetensorsFile {
  name: string;
  /** Of its numbers; taken once, when the file is read. */
  sha256: string;
  created: number;
}

/**
 * Named things of one kind on disk, each one private .safetensors file that is there whole or not at all. Several
 * processes may use a shelf: a file is read again when it has changed.
 */
export class Shelf {
  readonly #folder: string;
  readonly #noun: string;
  readonly #read = new Map<string, { stamp: string; file: Shelved }>();

  /** @param noun how sentences name a thing on it, e.g. `vector` */
  constructor(home: string, noun: string) {
    this.#folder = join(home, "library", `${noun}s`);
    this.#noun = noun;
  }

  async put(name: string, tensors: Record<string, Tensor>, metadata: Record<string, string>): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const names = await this.names();
    if (!names.includes(name) && names.length >= liveLimits.stored) {
      throw new UserError(`At most ${liveLimits.stored} ${this.#noun}s are kept; remove one first.`);
    }
    await writeDurably(this.#path(name), encodeSafetensors(tensors, metadata));
  }

  /** @throws UserError where there is none of that name, or the file is damaged */
  async get(name: string): Promise<Shelved> {
    const path = this.#path(name);
    const found = await stat(path).catch(absent);
    if (found === undefined) {
      const names = await this.names();
      const there =
        names.length === 0 ? `there are no ${this.#noun}s yet` : `there are ${names.slice(0, 20).join(", ")}`;
      throw new UserError(`There is no ${this.#noun} named ${name}; ${there}.`);
    }
    const stamp = `${found.mtimeMs} ${found.size} ${found.ino}`;
    const known = this.#read.get(name);
    if (known?.stamp === stamp) return known.file;
    let file: Shelved;
    try {
      const decoded = decodeSafetensors(await readFile(path));
      file = { ...decoded, name, sha256: hashTensors(decoded.tensors), created: found.mtimeMs / 1000 };
    } catch (error) {
      throw new UserError(`The ${this.#noun} ${name} cannot be read: ${(error as Error).message}`);
    }
    this.#read.set(name, { stamp, file });
    return file;
  }

  async names(): Promise<string[]> {
    const names = (await readdir(this.#folder).catch(absent)) ?? [];
    return names
      .filter((name) => name.endsWith(extension))
      .map((name) => name.slice(0, -extension.length))
      .sort();
  }

  /** Whether there was one. */
  async remove(name: string): Promise<boolean> {
    if (!(await this.names()).includes(name)) return false;
    await rm(this.#path(name), { force: true });
    await syncFolder(this.#folder);
    this.#read.delete(name);
    return true;
  }

  #path(name: string): string {
    return join(this.#folder, `${name}${extension}`);
  }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
  return undefined;
}
