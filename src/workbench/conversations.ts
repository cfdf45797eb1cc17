import { randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { conversationPattern } from "../contracts/workbench.js";
import { workbenchLimits } from "../contracts/workbench-limits.js";
import { HttpError } from "../http/index.js";
import type { Events } from "./events.js";
import type { Branch, Conversation, ConversationSummary, Turn } from "./wire.js";

const idPattern = new RegExp(conversationPattern);

/** The conversations: in this process for all tabs, and each as a private file for the next start. */
export class Conversations {
  readonly #folder: string;
  readonly #events: Events;
  readonly #all = new Map<string, Conversation>();
  /** Files are written one after the other. */
  #writing: Promise<unknown> = Promise.resolve();

  private constructor(folder: string, events: Events) {
    this.#folder = folder;
    this.#events = events;
  }

  static async open(folder: string, events: Events): Promise<Conversations> {
    const store = new Conversations(folder, events);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const name of await readdir(folder)) {
      // Not what was half written, which may be of one that is deleted since.
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
    if (found === undefined) throw new HttpError(404, `There is no conversation ${id.slice(0, 32)}.`);
    return found;
  }

  /** @param from where it leaves another one, whose questions up to there are `turns` */
  create(raw: boolean, title: string, turns: Turn[] = [], from?: Branch): Conversation {
    const id = randomBytes(8).toString("hex");
    const created = Date.now() / 1000;
    const named = { id, title: title.replace(/\s+/g, " ").slice(0, 80), ...(from !== undefined && { from }) };
    const conversation: Conversation = { ...named, created, raw, turns };
    this.#all.set(id, conversation);
    const surplus = this.list().slice(workbenchLimits.conversations);
    for (const { id } of surplus.filter(({ running }) => !running)) {
      this.#drop(id).catch((error: Error) =>
        say(`a conversation that made room was not deleted: ${error.message}`),
      );
    }
    this.told();
    return conversation;
  }

  /** @throws HttpError 404, 409, 500 where its file is still there, and it is, too */
  async remove(id: string): Promise<void> {
    const conversation = this.get(id);
    if (conversation.turns.some(isRunning)) throw new HttpError(409, "Stop the answer first.");
    try {
      await this.#drop(id);
    } catch (error) {
      this.#all.set(id, conversation);
      throw new HttpError(500, `It could not be deleted (${(error as Error).message}) and is kept.`);
    } finally {
      this.told();
    }
  }

  /** Tells the list to every page. */
  told(): void {
    this.#events.publish({ type: "conversations", conversations: this.list() });
  }

  /** Writes a conversation to its file. Where that fails it is still in this process; why is said once. */
  keep(conversation: Conversation): Promise<unknown> {
    const path = join(this.#folder, `${conversation.id}.json`);
    const text = JSON.stringify(conversation);
    this.#writing = this.#writing
      .then(async () => {
        if (!this.#all.has(conversation.id)) return;
        await writeFile(`${path}.part`, text, { mode: 0o600 });
        await rename(`${path}.part`, path);
      })
      .catch((error: Error) => say(`a conversation was not written: ${error.message}`));
    return this.#writing;
  }

  /** Everything that was to be written is. */
  settled(): Promise<unknown> {
    return this.#writing;
  }

  async #drop(id: string): Promise<void> {
    this.#all.delete(id);
    const path = join(this.#folder, `${id}.json`);
    const dropped = this.#writing.then(async () => {
      for (const each of [`${path}.part`, path]) await rm(each, { force: true });
    });
    // What is written behind it is written all the same.
    this.#writing = dropped.catch(() => {});
    return dropped;
  }
}

function say(what: string): void {
  process.stderr.write(`tapline: ${what}\n`);
}

export function isRunning({ answers }: Turn): boolean {
  return answers.some(({ state }) => state === "running");
}

/** A conversation of an earlier start; what ran then was cut off. */
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
