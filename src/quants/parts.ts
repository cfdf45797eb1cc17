import { join } from "node:path";
import type { CompletedJob } from "../client/index.js";
import { runJob } from "../client/run-job.js";
import { runApart } from "./apart.js";
import type { OpenedFile } from "./files.js";
import type { QuantsOptions } from "./request.js";
import type { Steps } from "./steps.js";

/** Makes the parts of a run that are not finished in its folder, and shows how far it is. */
export class Parts {
  readonly #jobs = new Map<string, CompletedJob>();
  readonly #counted = new Set<string>();
  /** Finished parts, and all. */
  done = 0;
  all = 1;

  constructor(
    readonly steps: Steps,
    readonly options: QuantsOptions,
  ) {}

  /** A job of the Lab, which the study will have. */
  async job(
    name: string,
    what: string,
    job: Parameters<typeof runJob>[1],
    onDone: (job: CompletedJob) => Promise<void> = async () => {},
  ): Promise<CompletedJob> {
    const made = await this.part(name, what, job, async (done) => {
      await onDone(done);
      return done;
    });
    this.#jobs.set(made.id, made);
    return made;
  }

  /** The stored part of a job of the Lab. */
  async part<T>(
    name: string,
    what: string,
    job: Parameters<typeof runJob>[1],
    keep: (job: CompletedJob) => Promise<T>,
  ): Promise<T> {
    const { lab, signal } = this.options;
    this.show(what);
    const kept = await this.steps.once(name, async () => {
      const began = performance.now();
      const done = await runJob(lab, job, signal, (stage) => this.show(`${what}, ${stage}`));
      const kept = await keep(done);
      await this.#took(began);
      return kept;
    });
    // The reference's parts are read once for all forms.
    if (!this.#counted.has(name)) this.advance(what);
    this.#counted.add(name);
    return kept;
  }

  /** A task in a separate process. */
  async apart(task: Parameters<typeof runApart>[0], onLine: Parameters<typeof runApart>[2]): Promise<void> {
    const began = performance.now();
    await runApart(task, this.options.signal, onLine);
    await this.#took(began);
  }

  #took(began: number): Promise<void> {
    return this.steps.append("seconds.jsonl", (performance.now() - began) / 1000);
  }

  get jobs(): CompletedJob[] {
    return [...this.#jobs.values()];
  }

  async seconds(): Promise<number> {
    return (await this.steps.lines<number>("seconds.jsonl")).reduce((sum, one) => sum + one, 0);
  }

  advance(what: string): void {
    this.done++;
    this.show(what);
  }

  show(what: string): void {
    this.options.onProgress(what, Math.min(1, this.done / this.all));
  }
}

/** A part of a form: forms are distinguished by their weights, not by their names. */
export const partOf = ({ fingerprint }: OpenedFile, name: string) => join(fingerprint.slice(0, 16), name);
