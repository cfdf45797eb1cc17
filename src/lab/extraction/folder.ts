import { mkdir, readdir, readFile, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UserError } from "../../contracts/user-error.js";
import { absent } from "../../files/absent.js";
import { syncFolder, writeDurably } from "../../files/durable.js";
import { bytesText } from "../../text/words.js";
import { differenceOf } from "../difference.js";
import { type Lock, lock } from "../lock.js";
import { indexName, type Plan, type Shard } from "./plan.js";

/** How an extraction's index says what it is: the first thing its readers look at. */
export const extractionFormat = "tapline extraction 1";

/** What an extraction's index says, beside what its shards hold. */
export interface IndexHead {
  format: typeof extractionFormat;
  /** Everything that decides the numbers: two extractions that agree here are the same. */
  source: Record<string, unknown>;
  made_with: Record<string, string>;
}

export type ExtractionIndex = IndexHead & Plan & { complete: boolean };

/** An index as its file holds it. */
export function indexText(head: IndexHead, plan: Plan, complete: boolean): string {
  const index: ExtractionIndex = { ...head, complete, ...plan };
  return `${JSON.stringify(index, null, 1)}\n`;
}

/** The folder that an extraction is written into, shard by shard; one process at a time for each part of it. */
export class ExtractionFolder {
  readonly path: string;
  readonly index: string;
  readonly #lock: Lock | undefined;

  private constructor(path: string, index: string, held: Lock | undefined) {
    this.path = path;
    this.index = index;
    this.#lock = held;
  }

  /** A folder of somebody's own: made where it is not there, and locked. @throws UserError */
  static async open(path: string, part: readonly [number, number]): Promise<ExtractionFolder> {
    const index = indexName(part);
    try {
      // One level: above it somebody else decides, and Node's own way to make several never ends in /proc.
      await mkdir(path, { mode: 0o700 }).then(
        () => syncFolder(dirname(path)),
        (error: NodeJS.ErrnoException) => {
          if (error.code !== "EEXIST") throw error;
        },
      );
      const held = await lock(join(path, `${index}.lock`), (holder) =>
        holder === null
          ? `${path} could not be locked; another process begins there.`
          : `Process ${holder.pid} writes this extraction into ${path}, since ${holder.since}.`,
      );
      return new ExtractionFolder(path, index, held);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw code === undefined ? error : new UserError(`Nothing can be written to ${path} (${code}).`);
    }
  }

  /**
   * Says what is to be there, and finds out what is there already: shards of the same extraction that were finished
   * before a process ended.
   * @returns the files that are finished
   * @throws UserError where the folder holds another extraction, or something else of a shard's name
   */
  async begin(head: IndexHead, plan: Plan): Promise<Set<string>> {
    const known = await this.#read();
    if (known !== undefined) {
      const other = differenceOf(
        { ...known.source, shards: known.shards },
        { ...head.source, shards: plan.shards },
      );
      if (other !== undefined) {
        throw new UserError(`${this.path} holds another extraction: ${other}. Choose another folder.`);
      }
    }
    const finished = new Set<string>();
    for (const shard of plan.shards) {
      const size = await this.#sizeOf(shard);
      if (size === undefined) continue;
      if (known === undefined || size !== shard.bytes) {
        throw new UserError(`${join(this.path, shard.file)} is there and is not of this extraction.`);
      }
      finished.add(shard.file);
    }
    // What a process was writing when it ended.
    const names = new Set(plan.shards.map(({ file }) => `${file}.partial`));
    for (const name of await readdir(this.path)) if (names.has(name)) await rm(join(this.path, name));
    if (known === undefined) await this.write(head, plan, false);
    const missing = plan.shards.filter(({ file }) => !finished.has(file));
    await this.#checkRoom(missing);
    return finished;
  }

  async write(head: IndexHead, plan: Plan, complete: boolean): Promise<void> {
    await writeDurably(join(this.path, this.index), indexText(head, plan, complete));
  }

  async close(): Promise<void> {
    await this.#lock?.release();
  }

  async #read(): Promise<ExtractionIndex | undefined> {
    const text = await readFile(join(this.path, this.index), "utf8").catch(absent);
    if (text === undefined) return undefined;
    try {
      const read = JSON.parse(text) as ExtractionIndex;
      if (read.format === extractionFormat && Array.isArray(read.shards)) return read;
    } catch {
      // told below
    }
    throw new UserError(`${join(this.path, this.index)} is no index of an extraction.`);
  }

  async #sizeOf({ file }: Shard): Promise<number | undefined> {
    return stat(join(this.path, file)).then(
      ({ size }) => size,
      () => undefined,
    );
  }

  /** Said before hours of work, not after. */
  async #checkRoom(missing: readonly Shard[]): Promise<void> {
    const needed = missing.reduce((sum, { bytes }) => sum + bytes, 0);
    const { bavail, bsize } = await statfs(this.path);
    if (needed <= bavail * bsize) return;
    throw new UserError(
      `What is to be written has ${bytesText(needed)}, and the disk of ${this.path} has ${bytesText(bavail * bsize)} free.`,
    );
  }
}
