import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { liveLimits } from "../contracts/live-limits.js";
import { UserError } from "../contracts/user-error.js";
import { absent } from "../files/absent.js";
import { makeFolderDurably, syncFolder, writeDurably } from "../files/durable.js";

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

/** The named files of one kind in the user's library: each private, there whole or not at all. */
export class NamedFiles {
  readonly #folder: string;
  readonly #plural: string;
  readonly #noun: string;

  /** @param noun how sentences name one of them, e.g. `vector` */
  constructor(home: string, noun: string, plural = `${noun}s`) {
    this.#folder = join(home, "library", plural);
    this.#noun = noun;
    this.#plural = plural;
  }

  /**
   * Writes a file under a name, in place of one that had it.
   * @throws UserError where there are as many as are kept
   */
  async put(
    name: string,
    content: Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  ): Promise<void> {
    await makeFolderDurably(this.#folder);
    const names = await this.names();
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
  async find(name: string): Promise<NamedFile> {
    const path = this.#path(name);
    const found = await stat(path).catch(absent);
    if (found === undefined) {
      const names = await this.names();
      const there =
        names.length === 0
          ? `there are no ${this.#plural} yet`
          : `there are ${names.slice(0, 20).join(", ")}`;
      throw new UserError(`There is no ${this.#noun} named ${name}; ${there}.`);
    }
    const { mtimeMs, size, ino } = found;
    return { path, size, created: mtimeMs / 1000, stamp: `${mtimeMs} ${size} ${ino}` };
  }

  /** What is said of a file that is there and cannot be read. */
  unreadable(name: string, error: unknown): UserError {
    return new UserError(`The ${this.#noun} ${name} cannot be read: ${(error as Error).message}`);
  }

  async names(): Promise<string[]> {
    const names = (await readdir(this.#folder).catch(absent)) ?? [];
    return names
      .filter((name) => name.endsWith(extension))
      .map((name) => name.slice(0, -extension.length))
      .sort();
  }

  /** Each as `read` gives it, by name. What somebody removes meanwhile is left out: it does not cost the others. */
  async all<T>(read: (name: string) => Promise<T>): Promise<T[]> {
    const found = await Promise.all(
      (await this.names()).map((name) =>
        read(name).catch(async (error: unknown) => {
          if ((await stat(this.#path(name)).catch(absent)) !== undefined) throw error;
        }),
      ),
    );
    return found.filter((each) => each !== undefined);
  }

  /** Whether there was one. */
  async remove(name: string): Promise<boolean> {
    if (!(await this.names()).includes(name)) return false;
    await rm(this.#path(name), { force: true });
    await syncFolder(this.#folder);
    return true;
  }

  #path(name: string): string {
    return join(this.#folder, `${name}${extension}`);
  }
}
