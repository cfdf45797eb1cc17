import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { conversationPattern } from "../contracts/workbench.js";
import { workbenchLimits } from "../contracts/workbench-limits.js";
import { HttpError } from "../http/index.js";
import type { Events } from "./events.js";
import { writePrivately } from "./private-file.js";
import type { Branch, Conversation, ConversationSummary, Turn } from "./wire.js";

const idPattern = new RegExp(conversationPattern);

/** The conversations, in memory and each in a private file. */
export class Conversations {
  readonly #all = new Map<string, Conversation>();
  /** Writes happen one after the other. */
  #writing: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly folder: string,
    private readonly events: Events,
  ) {}

  static async open(folder: string, events: Events): Promise<Conversations> {
    const store = new Conversations(folder, events);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(folder)) {
      // Skip partial files, whose conversation may have been deleted.
      const id = name.replace(/\.json$/, "");
      if (id === name || !idPattern.test(id)) continue;
      const found = await readFile(join(folder, name), "utf8").then(parse, () => undefined);
      if (found?.id === id) store.#all.set(id, found);
    }
    return store;
  }

  list(): ConversationSummary[] {
    return [...this.#all.values()]
      .sort((a, b) => b.created - a.created)
      .map(({ id, title, from, created, turns }) => ({
        id,
        title,
        ...(from !== undefined && { from }),
        created,
        turns: turns.length,
        running: turns.some(isRunning),
      }));
  }

  /** @throws HttpError 404 */
  get(id: string): Conversation {
    const found = this.#all.get(id);
    if (found === undefined) throw new HttpError(404, `Conversation ${id.slice(0, 32)} does not exist.`);
    return found;
  }

  /** @param from where it branches off another one, whose earlier questions are `turns` */
  create(raw: boolean, title: string, turns: Turn[] = [], from?: Branch): Conversation {
    const id = randomBytes(8).toString("hex");
    const created = Date.now() / 1000;
    const named = { id, title: title.replace(/\s+/g, " ").slice(0, 80), ...(from !== undefined && { from }) };
    const conversation: Conversation = { ...named, created, raw, turns };
    this.#all.set(id, conversation);
    const surplus = this.list().slice(workbenchLimits.conversations);
    for (const { id } of surplus.filter(({ running }) => !running)) {
      this.#drop(id).catch((error: Error) => warn(`could not delete an old conversation: ${error.message}`));
    }
    this.publish();
    return conversation;
  }

  /** @throws HttpError 404, 409, or 500 if its file, and so the conversation, still exists */
  async remove(id: string): Promise<void> {
    const conversation = this.get(id);
    if (conversation.turns.some(isRunning)) throw new HttpError(409, "Stop the answer first.");
    try {
      await this.#drop(id);
    } catch (error) {
      this.#all.set(id, conversation);
      throw new HttpError(500, `The conversation could not be deleted: ${(error as Error).message}.`);
    } finally {
      this.publish();
    }
  }

  /** Sends the list to every page. */
  publish(): void {
    this.events.publish({ type: "conversations", conversations: this.list() });
  }

  /** Saves a conversation. If that fails, it stays in memory, with a warning. */
  save(conversation: Conversation): Promise<unknown> {
    const path = join(this.folder, `${conversation.id}.json`);
    const text = JSON.stringify(conversation);
    this.#writing = this.#writing
      .then(async () => {
        if (!this.#all.has(conversation.id)) return;
        await writePrivately(path, text);
      })
      .catch((error: Error) => warn(`could not save a conversation: ${error.message}`));
    return this.#writing;
  }

  /** Resolves when all writes are done. */
  settled(): Promise<unknown> {
    return this.#writing;
  }

  async #drop(id: string): Promise<void> {
    this.#all.delete(id);
    const path = join(this.folder, `${id}.json`);
    const dropped = this.#writing.then(async () => {
      for (const each of [`${path}.part`, path]) await rm(each, { force: true });
    });
    // Later writes happen even if this fails.
    this.#writing = dropped.catch(() => {});
    return dropped;
  }
}

function warn(message: string): void {
  process.stderr.write(`tapline: ${message}\n`);
}

export function isRunning({ answers }: Turn): boolean {
  return answers.some(({ state }) => state === "running");
}

/** A saved conversation; answers that were running then are marked as stopped. */
function parse(text: string): Conversation | undefined {
  try {
    const read = JSON.parse(text) as Conversation;
    if (!Array.isArray(read.turns)) return undefined;
    for (const { answers } of read.turns) {
      for (const answer of answers) if (answer.state === "running") answer.state = "stopped";
    }
    return read;
  } catch {
    return undefined;
  }
}
