import { readFile } from "node:fs/promises";
import {
  decodeSafetensors,
  encodeSafetensors,
  type SafetensorsFile,
  type Tensor,
} from "../formats/safetensors.js";
import { hashTensors } from "./identity.js";
import { NamedFiles } from "./named-files.js";

/** A file on a shelf: its tensors, what it says of itself, and when it was put there (Unix seconds). */
export interface Shelved extends SafetensorsFile {
  name: string;
  /** Of its numbers; taken once, when the file is read. */
  sha256: string;
  created: number;
}

/**
 * Named things of one kind on disk that are held in memory once they are read. Several processes may use a shelf: a
 * file is read again when it has changed.
 */
export class Shelf {
  readonly #files: NamedFiles;
  readonly #read = new Map<string, { stamp: string; file: Shelved }>();

  /** @param noun how sentences name a thing on it, e.g. `vector` */
  constructor(home: string, noun: string) {
    this.#files = new NamedFiles(home, noun);
  }

  put(name: string, tensors: Record<string, Tensor>, metadata: Record<string, string>): Promise<void> {
    return this.#files.put(name, encodeSafetensors(tensors, metadata));
  }

  /** @throws UserError where there is none of that name, or the file is damaged */
  async get(name: string): Promise<Shelved> {
    const { path, stamp, created } = await this.#files.find(name);
    const known = this.#read.get(name);
    if (known?.stamp === stamp) return known.file;
    let file: Shelved;
    try {
      const decoded = decodeSafetensors(await readFile(path));
      file = { ...decoded, name, sha256: hashTensors(decoded.tensors), created };
    } catch (error) {
      throw this.#files.unreadable(name, error);
    }
    this.#read.set(name, { stamp, file });
    return file;
  }

  /** Each as `read` gives it, by name, without what is removed meanwhile. */
  all<T>(read: (name: string) => Promise<T>): Promise<T[]> {
    return this.#files.all(read);
  }

  /** Whether there was one. */
  async remove(name: string): Promise<boolean> {
    this.#read.delete(name);
    return this.#files.remove(name);
  }
}
