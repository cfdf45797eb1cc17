import { link, readdir, readFile, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
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

/** Files being written are never idle for longer. */
const abandonedMs = 3_600_000;

/** A saved file. */
export interface NamedFile {
  path: string;
  /** Bytes. */
  size: number;
  /** When it was saved, in Unix seconds. */
  created: number;
  /** Changes when the file is replaced. */
  stamp: string;
}

/** Objects of one kind in the user's library, one private file per name, written atomically. */
export abstract class Shelf<Stored> {
  readonly #folder: string;
  readonly #plural: string;
  readonly #extension: string;
  protected readonly noun: string;

  /**
   * @param noun how messages refer to one, e.g. `vector`
   * @param extension of its files
   */
  constructor(home: string, noun: string, plural = `${noun}s`, extension = ".safetensors") {
    this.#folder = join(home, "library", plural);
    this.noun = noun;
    this.#plural = plural;
    this.#extension = extension;
  }

  /** The description of one. @throws UserError if there is none of that name, or its file is damaged */
  abstract get(name: string): Promise<Stored>;

  /** Descriptions of all, by name. Listings skip files that are deleted while they are being read. */
  async list(): Promise<Stored[]> {
    const found = await Promise.all(
      (await this.names()).map((name) =>
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

  /** Writes a file under a name, replacing any existing one. @throws UserError if the limit is reached */
  protected async write(
    name: string,
    content: Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  ): Promise<void> {
    await makeFolderDurably(this.#folder);
    const names = await this.names();
    if (!names.includes(name) && names.length >= liveLimits.stored) {
      throw new UserError(`At most ${liveLimits.stored} ${this.#plural} can be saved; delete one first.`);
    }
    await this.#removeLeftovers();
    await writeDurably(this.#path(name), content);
  }

  /** Removes partial files of killed processes, which are unreachable and may be large. */
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
      const names = await this.names();
      const there =
        names.length === 0
          ? `there are no ${this.#plural} yet`
          : `there are ${names.slice(0, 20).join(", ")}`;
      throw new UserError(`There is no ${this.noun} named ${name}; ${there}.`);
    }
    const { mtimeMs, size, ino } = found;
    return { path, size, created: mtimeMs / 1000, stamp: `${mtimeMs} ${size} ${ino}` };
  }

  /** The error for a file that exists but cannot be read. */
  protected unreadable(name: string, error: unknown): UserError {
    return new UserError(`The ${this.noun} ${name} cannot be read: ${(error as Error).message}`);
  }

  /** Their names, sorted, without reading them. */
  async names(): Promise<string[]> {
    const names = (await readdir(this.#folder).catch(absent)) ?? [];
    return names
      .filter((name) => name.endsWith(this.#extension))
      .map((name) => name.slice(0, -this.#extension.length))
      .sort();
  }

  /** Whether there was one. */
  async remove(name: string): Promise<boolean> {
    if (!(await this.names()).includes(name)) return false;
    await rm(this.#path(name), { force: true });
    await syncFolder(this.#folder);
    return true;
  }

  /** Gives one another name. @returns its description @throws UserError if there is none, or the new name is taken */
  async rename(name: string, to: string): Promise<Stored> {
    const { path } = await this.find(name);
    try {
      // Fails for a name that is taken, where a rename would replace the other one.
      await link(path, this.#path(to));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      throw new UserError(`There is already a ${this.noun} named ${to}.`);
    }
    await rm(path, { force: true });
    await syncFolder(dirname(path));
    return this.get(to);
  }

  #path(name: string): string {
    return join(this.#folder, `${name}${this.#extension}`);
  }
}

/** A saved file: its tensors, its metadata, and when it was saved (Unix seconds). */
export interface Shelved extends SafetensorsFile {
  name: string;
  /** Hash of its tensors, computed once when the file is read. */
  sha256: string;
  created: number;
}

/** Small objects, kept in memory. Several processes may use a shelf, so changed files are read again. */
export abstract class CachedShelf<Stored, Content> extends Shelf<Stored> {
  readonly #read = new Map<string, { stamp: string; content: Content }>();

  protected abstract read(name: string, file: NamedFile): Promise<Content>;

  /** An object's content. @throws UserError if there is none of that name, or the file is damaged */
  protected async content(name: string): Promise<Content> {
    const file = await this.find(name);
    const known = this.#read.get(name);
    if (known?.stamp === file.stamp) return known.content;
    let content: Content;
    try {
      content = await this.read(name, file);
    } catch (error) {
      throw this.unreadable(name, error);
    }
    this.#read.set(name, { stamp: file.stamp, content });
    return content;
  }

  override async remove(name: string): Promise<boolean> {
    this.#read.delete(name);
    return super.remove(name);
  }
}

/** Small objects in .safetensors files. */
export abstract class SmallShelf<Stored> extends CachedShelf<Stored, Shelved> {
  protected keep(
    name: string,
    tensors: ReadonlyMap<string, Tensor>,
    metadata: Record<string, string>,
  ): Promise<void> {
    return this.write(name, encodeSafetensors(Object.fromEntries(tensors), metadata));
  }

  protected async read(name: string, { path, created }: NamedFile): Promise<Shelved> {
    const decoded = decodeSafetensors(await readFile(path));
    return { ...decoded, name, sha256: hashTensors(decoded.tensors), created };
  }

  /** An object's file. @throws UserError if there is none of that name, or the file is damaged */
  file(name: string): Promise<Shelved> {
    return this.content(name);
  }

  /** The hash of an object's tensors. @throws UserError like `file` */
  async hash(name: string): Promise<string> {
    return (await this.file(name)).sha256;
  }
}

/** Large objects, of which only the file's head is read. */
export abstract class LargeShelf<
  Stored,
  Open extends { stored: Stored & { sha256: string } },
> extends Shelf<Stored> {
  /** An object located for native code. @throws UserError if there is none of that name, or its file is damaged */
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

  /** The hash of an object's tensors, as its file states it. @throws UserError like `open` */
  async hash(name: string): Promise<string> {
    return (await this.open(name)).stored.sha256;
  }
}
