import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Job, JobSummary } from "../contracts/index.js";
import type { JobNoteRequest } from "../contracts/workbench.js";
import type { Events } from "./events.js";
import { titleOf } from "./job-titles.js";
import { writePrivately } from "./private-file.js";
import type { JobNote } from "./wire.js";

/** Notes of jobs that the Lab no longer lists; of those without a word of the user's, the oldest go first. */
const mostNotes = 2000;

/** Titles, notes and pins of the Lab's jobs, in one private file. */
export class JobNotes {
  readonly #notes: Map<string, JobNote>;
  #saving: Promise<unknown> = Promise.resolve();
  #following: Promise<void> | undefined;

  private constructor(
    private readonly file: string,
    private readonly events: Events,
    private readonly readJob: (id: string) => Promise<Job>,
    notes: readonly [string, JobNote][],
  ) {
    this.#notes = new Map(notes);
  }

  /** @param readJob reads a job of the Lab, whose configuration its title is made from */
  static async open(
    folder: string,
    events: Events,
    readJob: (id: string) => Promise<Job>,
  ): Promise<JobNotes> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = join(folder, "jobs.json");
    const notes = await readFile(file, "utf8")
      .then(parse)
      .catch(() => []);
    return new JobNotes(file, events, readJob, notes);
  }

  get all(): Record<string, JobNote> {
    return Object.fromEntries(this.#notes);
  }

  /** Changes what the user wrote; an empty title brings back the one made from the prompt. */
  async change(id: string, { title, note, pinned }: JobNoteRequest): Promise<JobNote> {
    const before = this.#notes.get(id) ?? { title: titled(await this.readJob(id)) };
    const after: JobNote = {
      title: before.title,
      ...kept("own", title === undefined ? before.own : title.trim()),
      ...kept("note", note === undefined ? before.note : note.trim()),
      ...((pinned ?? before.pinned) ? { pinned: true } : {}),
    };
    this.#notes.set(id, after);
    this.#changed();
    return after;
  }

  /** Forgets a deleted job. */
  drop(id: string): void {
    if (this.#notes.delete(id)) this.#changed();
  }

  /** Makes the titles of jobs that have none yet, one after the other. */
  follow(jobs: readonly JobSummary[]): Promise<void> {
    this.#following ??= this.#name(jobs).finally(() => {
      this.#following = undefined;
    });
    return this.#following;
  }

  /** Resolves when everything is saved. */
  async settled(): Promise<void> {
    await this.#following;
    await this.#saving;
  }

  async #name(jobs: readonly JobSummary[]): Promise<void> {
    let made = 0;
    for (const { id } of jobs) {
      if (this.#notes.has(id)) continue;
      // A job that was deleted in the meantime needs no title.
      const job = await this.readJob(id).catch(() => undefined);
      if (job === undefined || this.#notes.has(id)) continue;
      this.#notes.set(id, { title: titled(job) });
      made += 1;
    }
    if (made > 0) this.#changed();
  }

  #changed(): void {
    for (const [id, { own, note, pinned }] of this.#notes) {
      if (this.#notes.size <= mostNotes) break;
      if (own === undefined && note === undefined && pinned !== true) this.#notes.delete(id);
    }
    this.events.publish({ type: "notes", notes: this.all });
    const text = JSON.stringify([...this.#notes]);
    this.#saving = this.#saving
      .then(() => writePrivately(this.file, text))
      .catch((error: Error) => {
        process.stderr.write(`tapline: could not save the jobs' notes: ${error.message}\n`);
      });
  }
}

function titled({ operation, config }: Pick<Job, "operation" | "config">): string {
  return titleOf(operation, config as Record<string, unknown>);
}

function kept<Name extends string>(name: Name, text: string | undefined): { [name in Name]?: string } {
  return text === undefined || text === "" ? {} : ({ [name]: text } as { [name in Name]: string });
}

function parse(text: string): [string, JobNote][] {
  const read: unknown = JSON.parse(text);
  if (!Array.isArray(read)) return [];
  return read.filter(
    (one): one is [string, JobNote] =>
      Array.isArray(one) && typeof one[0] === "string" && typeof one[1]?.title === "string",
  );
}
