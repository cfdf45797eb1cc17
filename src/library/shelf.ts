import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { liveLimits } from "../contracts/live-limits.js";
import { UserError } from "../contracts/user-error.js";
import { absent } from "../files/absent.js";
import { makeFolderDurably, syncFolder, writeDurably } from "../files/durable.js";
import {
  decodeSafetensors,
  encodeSafetensors,
  type SafetensorsFile,
  type Tensor,
  type TensorPlace,
} from "../formats/safetensors.js";
import { hashTensors } from "./identity.js";
import { tensorPlaces } from "./tensor-files.js";

const extension = ".safetensors";

/** Nobody who writes a file pauses for so long. */
const abandonedMs = 3_600_000;

/** A file that is there under a name. */
export interface NamedFile {
  path: string;
  /** Bytes. */
  size: number;
  /** When it was put there, in Unix seconds. */
  created: number;
  /** Differs once the file has been replaced. */
  stamp: string;
}

/** Things of one kind in the user's library, a file each under a name: private, there whole or not at all. */
export abstract class Shelf<Stored> {
  readonly #folder: string;
  readonly #plural: string;
  protected readonly noun: string;

  /** @param noun how sentences name one of them, e.g. `vector` */
  constructor(home: string, noun: string, plural = `${noun}s`) {
    this.#folder = join(home, "library", plural);
    this.noun = noun;
    this.#plural = plural;
  }

  /** What is known of one of them. @throws UserError where there is none of that name, or its file is damaged */
  abstract get(name: string): Promise<Stored>;

  /** What is known of all of them, by name. What somebody removes meanwhile is left out: it does not cost the others. */
  async list(): Promise<Stored[]> {
    const found = await Promise.all(
      (await this.#names()).map((name) =>
        this.inList(name).catch(async (error: unknown) => {
          if ((await stat(this.#path(name)).catch(absent)) !== undefined) throw error;
        }),
      ),
    );
    return found.filter((each) => each !== undefined) as Stored[];
  }

  protected inList(name: string): Promise<Stored> {
    return this.get(name);
  }

  /**
   * Writes a file under a name, in place of one that had it.
   * @throws UserError where there are as many as are kept
   */
  protected async write(
    name: string,
    content: Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  ): Promise<void> {
    await makeFolderDurably(this.#folder);
    const names = await this.#names();
    if (!names.includes(name) && names.length >= liveLimits.stored) {
      throw new UserError(`At most ${liveLimits.stored} ${this.#plural} are kept; remove one first.`);
    }
    await this.#removeLeftovers();
    await writeDurably(this.#path(name), content);
  }

  /** What processes were writing when they were killed: it has no name that anybody asks for, and may be large. */
  async #removeLeftovers(): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      if (!name.endsWith(".tmp")) continue;
      const path = join(this.#folder, name);
      const found = await stat(path).catch(absent);
      if (found !== undefined && Date.now() - found.mtimeMs > abandonedMs) await rm(path, { force: true });
    }
  }

  /** @throws UserError where there is none of that name */
  protected async find(name: string): Promise<NamedFile> {
    const path = this.#path(name);
    const found = await stat(path).catch(absent);
    if (found === undefined) {
      const names = await this.#names();
      const there =
        names.length === 0
          ? `there are no ${this.#plural} yet`
          : `there are ${names.slice(0, 20).join(", ")}`;
      throw new UserError(`There is no ${this.noun} named ${name}; ${there}.`);
    }
    const { mtimeMs, size, ino } = found;
    return { path, size, created: mtimeMs / 1000, stamp: `${mtimeMs} ${size} ${ino}` };
  }

  /** What is said of a file that is there and cannot be read. */
  protected unreadable(name: string, error: unknown): UserError {
    return new UserError(`The ${this.noun} ${name} cannot be read: ${(error as Error).message}`);
  }

  async #names(): Promise<string[]> {
    const names = (await readdir(this.#folder).catch(absent)) ?? [];
    return names
      .filter((name) => name.endsWith(extension))
      .map((name) => name.slice(0, -extension.length))
      .sort();
  }

  /** Whether there was one. */
  async remove(name: string): Promise<boolean> {
    if (!(await this.#names()).includes(name)) return false;
    await rm(this.#path(name), { force: true });
    await syncFolder(this.#folder);
    return true;
  }

  #path(name: string): string {
    return join(this.#folder, `${name}${extension}`);
  }
}

/** A file on a shelf: its tensors, what it says of itself, and when it was put there (Unix seconds). */
export interface Shelved extends SafetensorsFile {
  name: string;
  /** Of its numbers; taken once, when the file is read. */
  sha256: string;
  created: number;
}

/** Small things, held in memory once they are read. Several processes may use a shelf: a file that changed is read again. */
export abstract class SmallShelf<Stored> extends Shelf<Stored> {
  readonly #read = new Map<string, { stamp: string; file: Shelved }>();

  protected keep(
    name: string,
    tensors: ReadonlyMap<string, Tensor>,
    metadata: Record<string, string>,
  ): Promise<void> {
    return this.write(name, encodeSafetensors(Object.fromEntries(tensors), metadata));
  }

  /** A thing's file, as it is kept. @throws UserError where there is none of that name, or the file is damaged */
  async file(name: string): Promise<Shelved> {
    const { path, stamp, created } = await this.find(name);
    const known = this.#read.get(name);
    if (known?.stamp === stamp) return known.file;
    let file: Shelved;
    try {
      const decoded = decodeSafetensors(await readFile(path));
      file = { ...decoded, name, sha256: hashTensors(decoded.tensors), created };
    } catch (error) {
      throw this.unreadable(name, error);
    }
    this.#read.set(name, { stamp, file });
    return file;
  }

  override async remove(name: string): Promise<boolean> {
    this.#read.delete(name);
    return super.remove(name);
  }
}

/** Large things, whose numbers stay in the file: only its head is read, where they say what they are. */
export abstract class LargeShelf<Stored, Open extends { stored: Stored }> extends Shelf<Stored> {
  /** A thing as native code reads it. @throws UserError where there is none of that name, or its file is damaged */
  async open(name: string): Promise<Open> {
    const { path, size, created } = await this.find(name);
    try {
      const { places, metadata } = await tensorPlaces(path);
      const said = JSON.parse(metadata[this.noun] ?? "") as Omit<Stored, "name" | "created" | "bytes">;
      return this.opened({ name, ...said, bytes: size, created } as Stored, path, places);
    } catch (error) {
      throw this.unreadable(name, error);
    }
  }

  protected abstract opened(stored: Stored, path: string, places: ReadonlyMap<string, TensorPlace>): Open;

  async get(name: string): Promise<Stored> {
    return (await this.open(name)).stored;
  }
}
