import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rm, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { UserError } from "../../contracts/user-error.js";
import { absent } from "../../files/absent.js";
import { syncFolder, writeDurably } from "../../files/durable.js";
import { differenceOf } from "../../formats/difference.js";
import { bytesText } from "../../text/words.js";
import { Artifacts } from "../artifacts.js";
import { type Lock, lock } from "../lock.js";
import { indexName, type Plan, type Shard, tableName } from "./plan.js";

/** Format marker of an extraction's index, which readers check first. */
export const extractionFormat = "tapline extraction 1";

/** The head of an extraction's index, before the list of shards. */
export interface IndexHead {
  format: typeof extractionFormat;
  /** Everything that determines the numbers: extractions that agree here are identical. */
  source: Record<string, unknown>;
  made_with: Record<string, string>;
  /** Most tokens per file; missing in indices of earlier versions. */
  shard_tokens?: number;
}

export type ExtractionIndex = IndexHead & Plan & { complete: boolean };

/** Where an extraction's files go, one by one. */
export interface ShardFolder {
  path: string;
  /** Receives new files. */
  artifacts: Artifacts;
  /** Starts or resumes an extraction. @returns finished shards @throws UserError */
  begin(head: IndexHead, plan: Plan): Promise<Set<string>>;
  /** Called for each complete file. @throws UserError */
  keep(name: string): Promise<void>;
  /** Writes the index. */
  write(head: IndexHead, plan: Plan, complete: boolean): Promise<void>;
  close(): Promise<void>;
}

/** The content of an index file. @throws UserError */
export function parseIndex(text: string, path: string): ExtractionIndex {
  try {
    const read = JSON.parse(text) as ExtractionIndex;
    if (read.format === extractionFormat && Array.isArray(read.shards)) return read;
  } catch {
    // reported below
  }
  throw new UserError(`${path} is not an extraction index.`);
}

/** @throws UserError if a folder's index is of a different extraction */
export function checkSame(
  path: string,
  known: ExtractionIndex | undefined,
  head: IndexHead,
  plan: Plan,
): void {
  if (known === undefined) return;
  const other = differenceOf(
    { ...known.source, shards: known.shards },
    { ...head.source, shards: plan.shards },
  );
  if (other === undefined) return;
  throw new UserError(`${path} contains a different extraction: ${other}. Choose another folder.`);
}

/** The name that a partial file will have once it is complete. */
const completeName = (name: string) => /^(.*?)(?:\.[0-9a-f]{12})?\.partial$/.exec(name)?.[1];

/** The contents of an index file. */
export function indexText(head: IndexHead, plan: Plan, complete: boolean): string {
  const index: ExtractionIndex = { ...head, complete, ...plan };
  return `${JSON.stringify(index, null, 1)}\n`;
}

/** The folder of an extraction in progress, written shard by shard; one process at a time per part. */
export class ExtractionFolder implements ShardFolder {
  readonly path: string;
  readonly index: string;
  readonly artifacts: Artifacts;
  readonly #lock: Lock | undefined;

  private constructor(path: string, index: string, held: Lock | undefined) {
    this.path = path;
    this.index = index;
    // A lock cannot tell whether a process of another machine is alive: if a cluster takes that for lost and starts the part
    // again, both may write the same file. Each then completes only its own, with the same bytes.
    this.artifacts = new Artifacts(path, `.${randomBytes(6).toString("hex")}.partial`);
    this.#lock = held;
  }

  /** Opens a user's folder: creates it if missing, and locks it. @throws UserError */
  static async open(path: string, part: readonly [number, number]): Promise<ExtractionFolder> {
    const index = indexName(part);
    try {
      // Only one level: parents are the user's decision, and Node's recursive mkdir hangs in /proc.
      await mkdir(path, { mode: 0o700 }).then(
        () => syncFolder(dirname(path)),
        (error: NodeJS.ErrnoException) => {
          if (error.code !== "EEXIST") throw error;
        },
      );
      const held = await lock(join(path, `${index}.lock`), (holder) =>
        holder === null
          ? `${path} could not be locked, because another process is starting there.`
          : `Process ${holder.pid} has been writing this extraction to ${path} since ${holder.since}.`,
      );
      return new ExtractionFolder(path, index, held);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      throw code === undefined ? error : new UserError(`Cannot write to ${path} (${code}).`);
    }
  }

  /**
   * Writes the index, unless it exists, and finds finished shards of the same extraction.
   * @returns the finished files
   * @throws UserError if the folder has a different extraction, or other files with a shard's name
   */
  async begin(head: IndexHead, plan: Plan): Promise<Set<string>> {
    const known = await this.#read();
    checkSame(this.path, known, head, plan);
    const finished = new Set<string>();
    for (const shard of plan.shards) {
      const size = await this.#sizeOf(shard);
      if (size === undefined) continue;
      if (known === undefined || size !== shard.bytes) {
        throw new UserError(`${join(this.path, shard.file)} exists and does not belong to this extraction.`);
      }
      finished.add(shard.file);
    }
    // Partial files of an interrupted process.
    const names = new Set<string | undefined>([
      ...plan.shards.map(({ file }) => file),
      tableName(this.index),
    ]);
    for (const name of await readdir(this.path)) {
      if (names.has(completeName(name))) await rm(join(this.path, name), { force: true });
    }
    if (known === undefined) await this.write(head, plan, false);
    const missing = plan.shards.filter(({ file }) => !finished.has(file));
    await this.#checkRoom(missing);
    return finished;
  }

  async write(head: IndexHead, plan: Plan, complete: boolean): Promise<void> {
    await writeDurably(join(this.path, this.index), indexText(head, plan, complete));
  }

  /** Files are in the folder already. */
  async keep(): Promise<void> {}

  async close(): Promise<void> {
    await this.#lock?.release();
  }

  async #read(): Promise<ExtractionIndex | undefined> {
    const text = await readFile(join(this.path, this.index), "utf8").catch(absent);
    return text === undefined ? undefined : parseIndex(text, join(this.path, this.index));
  }

  async #sizeOf({ file }: Shard): Promise<number | undefined> {
    return stat(join(this.path, file)).then(
      ({ size }) => size,
      () => undefined,
    );
  }

  /** Checked before hours of work, not after. */
  async #checkRoom(missing: readonly Shard[]): Promise<void> {
    const needed = missing.reduce((sum, { bytes }) => sum + bytes, 0);
    const { bavail, bsize } = await statfs(this.path);
    if (needed <= bavail * bsize) return;
    throw new UserError(
      `The extraction needs ${bytesText(needed)}, but only ${bytesText(bavail * bsize)} are free on the disk of ${this.path}.`,
    );
  }
}
