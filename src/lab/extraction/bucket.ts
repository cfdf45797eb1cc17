import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { rm, stat, statfs } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../../contracts/user-error.js";
import { bytesText } from "../../text/words.js";
import { Artifacts } from "../artifacts.js";
import {
  checkSame,
  type ExtractionIndex,
  type IndexHead,
  indexText,
  parseIndex,
  type ShardFolder,
} from "./folder.js";
import { Requests } from "./helper.js";
import { indexName, type Plan } from "./plan.js";

/** Shards on the local disk at once: one that is computed, one that is uploaded. */
const localShards = 2;

/**
 * The folder of an extraction in object storage. A complete file is uploaded, read back, compared by size and sha256, and removed from
 * the local disk. `index.sha256` lists the files that passed, in the format of `sha256sum`; a repeated extraction resumes after them. It
 * needs no lock: two processes that write the same part upload the same bytes.
 */
export class BucketFolder implements ShardFolder {
  readonly artifacts: Artifacts;
  readonly #requests: Requests;
  readonly #index: string;
  #checked: string[] = [];

  /** @param scratch a local folder for files that are not uploaded yet */
  constructor(
    readonly path: string,
    part: readonly [number, number],
    private readonly scratch: string,
  ) {
    this.#requests = new Requests(path);
    this.artifacts = new Artifacts(scratch);
    this.#index = indexName(part);
  }

  async begin(head: IndexHead, plan: Plan): Promise<Set<string>> {
    const text = await this.#read(this.#index);
    const known: ExtractionIndex | undefined =
      text === null ? undefined : parseIndex(text, `${this.path}/${this.#index}`);
    checkSame(this.path, known, head, plan);
    const { files } = await this.#requests.ask<{ files: Record<string, number> }>({ do: "list" });
    const lines = known === undefined ? [] : ((await this.#read(this.#sums)) ?? "").split("\n");
    const passed = new Set(lines.map((line) => line.slice(66)));
    const finished = new Set<string>();
    for (const { file, bytes } of plan.shards) {
      if (files[file] === undefined) continue;
      if (known === undefined) {
        throw new UserError(`${this.path}/${file} exists and does not belong to this extraction.`);
      }
      // Files that were not compared after their upload are replaced.
      if (files[file] === bytes && passed.has(file)) finished.add(file);
    }
    this.#checked = lines.filter((line) => finished.has(line.slice(66)));
    await this.#checkRoom(Math.max(0, ...plan.shards.map(({ bytes }) => bytes)));
    if (known === undefined) await this.write(head, plan, false);
    return finished;
  }

  /** Uploads a file, compares it, and removes it from the local disk. @throws UserError if it differs after its upload */
  async keep(name: string): Promise<void> {
    const path = join(this.scratch, name);
    const content = createHash("sha256");
    for await (const bytes of createReadStream(path) as AsyncIterable<Buffer>) content.update(bytes);
    const sha256 = content.digest("hex");
    const { size } = await stat(path);
    await this.#requests.ask({ do: "put", name, path, bytes: size, sha256 });
    this.#checked.push(`${sha256}  ${name}`);
    await this.#requests.ask({ do: "write", name: this.#sums, text: `${this.#checked.join("\n")}\n` });
    await rm(path);
  }

  async write(head: IndexHead, plan: Plan, complete: boolean): Promise<void> {
    await this.#requests.ask({ do: "write", name: this.#index, text: indexText(head, plan, complete) });
  }

  async close(): Promise<void> {
    await this.#requests.close();
  }

  get #sums(): string {
    return this.#index.replace(/\.json$/, ".sha256");
  }

  async #read(name: string): Promise<string | null> {
    return (await this.#requests.ask<{ text: string | null }>({ do: "read", name })).text;
  }

  async #checkRoom(largest: number): Promise<void> {
    const { bavail, bsize } = await statfs(this.scratch);
    const [needed, free] = [localShards * largest, bavail * bsize];
    if (needed <= free) return;
    throw new UserError(
      `The files are written to ${this.scratch} before they are uploaded, which needs ${bytesText(needed)}, but only ${bytesText(free)} are free there.`,
    );
  }
}
