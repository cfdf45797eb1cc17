import { type Config, type Job, type JobStatus, type JobSummary, limits } from "../contracts/index.js";
import { HttpError } from "../http/index.js";
import { JobStore, plainProgress, type StoredJob, summarize } from "./store.js";
import { type Outcome, runWorker, type WorkerProgram } from "./supervisor.js";
import type { LoadSettings } from "./worker/messages.js";

export interface LabOptions {
  /** tapline's data folder; jobs are in its `lab` subfolder. */
  home: string;
  /** Folder of the library that jobs read; by default `home`. */
  library?: string;
  /** Number of jobs that may wait, in addition to the running one. */
  queueCapacity?: number;
  /** How jobs load their models. */
  load?: LoadSettings;
  /** Overrides a worker's deadline, for tests. */
  deadlineMs?: number;
  /** Overrides the worker's program, for tests. */
  worker?: WorkerProgram;
  log?: (line: string) => void;
}

/** A queued or running job, in memory until its final state is on disk. */
interface ActiveJob {
  job: Job;
  stored: Promise<void>;
  /** Whether it is on disk; it is not listed before that. */
  isStored: boolean;
  /** Set by the code that will finish the job: its run, or a stop while it is queued. */
  claimed: boolean;
  stop: AbortController;
  /** The job's status after stopping. */
  stopStatus: "cancelled" | "interrupted";
  ended: Promise<void>;
  markEnded: () => void;
}

const progressOf = (stage: string) => ({ stage, done: 0, total: 0 });

/**
 * The jobs of one folder: submission, order, state. One isolated job runs at a time. Callers see only states that
 * have been written to disk.
 */
export class Lab {
  readonly queueCapacity: number;
  readonly #store: JobStore;
  readonly #options: LabOptions;
  readonly #log: (line: string) => void;
  /** Finished jobs by id, in order of creation. */
  readonly #finished = new Map<string, StoredJob>();
  /** Finished jobs whose final state could not be written. */
  readonly #unsaved = new Map<string, Job>();
  /** The running job and the queued ones, in order of submission. */
  readonly #active: ActiveJob[] = [];
  #running: ActiveJob | null = null;
  #lastCreated: number;
  #closing: Promise<void> | undefined;

  private constructor(store: JobStore, jobs: StoredJob[], options: LabOptions) {
    this.#store = store;
    this.#options = options;
    this.#log = logOf(options);
    this.queueCapacity = options.queueCapacity ?? 0;
    for (const stored of jobs) this.#finished.set(stored.summary.id, stored);
    this.#lastCreated = jobs.at(-1)?.summary.created ?? 0;
  }

  /** Opens the folder and marks jobs that an earlier service left unfinished. @throws UserError */
  static async open(options: LabOptions): Promise<Lab> {
    const store = await JobStore.open(options.home);
    try {
      return new Lab(store, await store.load(logOf(options)), options);
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  get folder(): string {
    return this.#store.folder;
  }

  /** Id of the running job. */
  get activeJob(): string | null {
    return this.#running?.job.id ?? null;
  }

  get queued(): number {
    return this.#active.length - (this.#running === null ? 0 : 1);
  }

  /** Accepts a validated submission. @throws HttpError 409 if the queue is full */
  async submit(config: Config): Promise<Job> {
    if (this.#closing !== undefined) throw new HttpError(503, "The service is shutting down.");
    // The slot is taken before anything is awaited, so that two submissions cannot get the same one.
    if (this.#active.length >= limits.concurrent_jobs + this.queueCapacity) {
      const places =
        this.queueCapacity === 1
          ? "the only place in the queue is"
          : `all ${this.queueCapacity} places in the queue are`;
      throw new HttpError(
        409,
        this.queueCapacity === 0
          ? "A job is running, and this service has no queue (--queue)."
          : `A job is running, and ${places} taken.`,
      );
    }
    const active = this.#newJob(config);
    const submitted = active.job;
    this.#active.push(active);
    try {
      await active.stored;
      active.isStored = true;
    } catch (error) {
      this.#drop(active);
      this.#log(`job ${submitted.id} could not be written: ${(error as Error).message}`);
      throw new HttpError(500, `The job could not be written to ${this.folder}; is the disk full?`);
    }
    this.#startNext();
    return submitted;
  }

  #newJob(config: Config): ActiveJob {
    // Strictly increasing, so that jobs sort by creation time.
    this.#lastCreated = Math.max(Date.now() / 1000, this.#lastCreated + 1e-5);
    const job = {
      id: JobStore.newId(),
      created: this.#lastCreated,
      started: null,
      ended: null,
      status: "queued",
      operation: config.operation,
      model: config.model,
      progress: progressOf("queued"),
      config,
    } as Job;
    let markEnded = () => {};
    const ended = new Promise<void>((resolve) => {
      markEnded = resolve;
    });
    const stored = this.#store.create(job);
    const stop = new AbortController();
    const state = { isStored: false, claimed: false, stop, stopStatus: "cancelled" as const };
    return { job, stored, ...state, ended, markEnded };
  }

  #startNext(): void {
    const next = this.#active.find(({ claimed }) => !claimed);
    if (next === undefined || this.#running !== null) return;
    next.claimed = true;
    this.#running = next;
    void this.#run(next);
  }

  async #run(active: ActiveJob): Promise<void> {
    let outcome: Outcome;
    try {
      await active.stored;
    } catch {
      return this.#drop(active); // submit() reports that it could not be written
    }
    try {
      outcome = active.stop.signal.aborted ? { kind: "stopped" } : await this.#work(active);
    } catch (error) {
      this.#log(`job ${active.job.id}: ${(error as Error).stack}`);
      outcome = {
        kind: "failure",
        message: `The service could not run the job: ${(error as Error).message}.`,
      };
    }
    await this.#finish(active, outcome);
  }

  async #work(active: ActiveJob): Promise<Outcome> {
    const running: Job = {
      ...active.job,
      status: "running",
      started: Date.now() / 1000,
      progress: progressOf("starting"),
    };
    await this.#store.write(running);
    active.job = running;
    const log = await this.#store.openLog(active.job.id);
    const { home, library = home, load, deadlineMs, worker } = this.#options;
    try {
      return await runWorker({
        config: active.job.config,
        folder: this.#store.jobFolder(active.job.id),
        log: log.fd,
        onProgress: (progress) => {
          active.job = { ...active.job, progress };
        },
        signal: active.stop.signal,
        ...{ load, library, deadlineMs, program: worker },
      });
    } finally {
      await log.close();
    }
  }

  /**
   * Finishes a job, on disk first, then in memory. Its final state becomes visible at the same time as its slot is
   * freed.
   */
  async #finish(active: ActiveJob, outcome: Outcome): Promise<void> {
    const { id } = active.job;
    await this.#store.removeLeftovers(id, outcome.kind === "result").catch(() => {});
    let last = lastState(active.job, outcome, active.stopStatus);
    try {
      await this.#store.write(last);
    } catch (error) {
      const message = `The job's final state could not be written (${(error as Error).message}).`;
      last = lastState(active.job, { kind: "failure", message }, active.stopStatus);
      try {
        await this.#store.write(last);
        await this.#store.removeLeftovers(id, false).catch(() => {});
      } catch {
        // It is only in memory; a restart will mark the job as interrupted.
        this.#unsaved.set(id, last);
        this.#log(`job ${id}: ${message}`);
      }
    }
    this.#finished.set(id, { summary: summarize(last), artifacts: last.result?.artifacts ?? [] });
    this.#drop(active);
  }

  #drop(active: ActiveJob): void {
    const index = this.#active.indexOf(active);
    if (index !== -1) this.#active.splice(index, 1);
    if (this.#running === active) this.#running = null;
    active.markEnded();
    this.#startNext();
  }

  /** The newest summaries, newest first. */
  list(): JobSummary[] {
    const all = [
      ...[...this.#finished.values()].map(({ summary }) => summary),
      ...this.#active.filter(({ isStored }) => isStored).map(({ job }) => summarize(job)),
    ];
    return all.sort((a, b) => b.created - a.created).slice(0, limits.job_list);
  }

  /** The whole job. @throws HttpError 404 */
  async get(id: string): Promise<Job> {
    const active = this.#active.find(({ job }) => job.id === id);
    if (active !== undefined) return active.job;
    if (!this.#finished.has(id)) throw noSuchJob(id);
    const unsaved = this.#unsaved.get(id);
    if (unsaved !== undefined) return unsaved;
    return this.#store.read(id).catch((error: NodeJS.ErrnoException) => {
      throw error.code === "ENOENT" ? noSuchJob(id) : error; // deleted meanwhile
    });
  }

  /** Cancels a queued or running job; no effect on a finished one. Resolves once its worker has exited. */
  async cancel(id: string): Promise<Job> {
    const active = this.#active.find(({ job }) => job.id === id);
    if (active !== undefined) await this.#stop(active, "cancelled");
    const { result: _result, ...job } = await this.get(id);
    return job;
  }

  async #stop(active: ActiveJob, status: "cancelled" | "interrupted"): Promise<void> {
    if (!active.stop.signal.aborted) {
      active.stopStatus = status;
      active.stop.abort();
    }
    if (active.claimed) return active.ended;
    active.claimed = true;
    await active.stored.then(
      () => this.#finish(active, { kind: "stopped" }),
      () => this.#drop(active), // submit() reports that it could not be written
    );
  }

  /** Removes a finished job with its artifacts. @throws HttpError 404, 409, or 500 if it could not be removed */
  async remove(id: string): Promise<void> {
    const active = this.#active.find(({ job }) => job.id === id);
    if (active !== undefined) {
      throw new HttpError(409, `Job ${id} is ${active.job.status}; cancel it before deleting it.`);
    }
    const stored = this.#finished.get(id);
    if (stored === undefined) throw noSuchJob(id);
    const unsaved = this.#unsaved.get(id);
    // Before anything is awaited, so that only one of two callers removes it.
    this.#finished.delete(id);
    this.#unsaved.delete(id);
    try {
      await this.#store.remove(id, this.#log);
    } catch (error) {
      this.#finished.set(id, stored);
      if (unsaved !== undefined) this.#unsaved.set(id, unsaved);
      throw new HttpError(500, `Job ${id} could not be deleted (${(error as Error).message}).`);
    }
  }

  /** Path of an artifact that a completed job lists. @throws HttpError 404 */
  artifact(id: string, name: string): string {
    const known = this.#finished.has(id) || this.#active.some(({ job }) => job.id === id);
    if (!known) throw noSuchJob(id);
    if (!this.#finished.get(id)?.artifacts.includes(name)) {
      throw new HttpError(404, `Job ${id} has no artifact of that name.`);
    }
    return this.#store.artifactPath(id, name);
  }

  /** Ends the running worker, marks unfinished jobs as interrupted and unlocks the folder. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      // All at the same time, including queued ones, so that none of them starts.
      await Promise.all(this.#active.map((active) => this.#stop(active, "interrupted")));
      await this.#store.close();
    })();
    return this.#closing;
  }
}

function logOf({ log = (line) => void process.stderr.write(`${line}\n`) }: LabOptions) {
  return log;
}

function lastState(job: Job, outcome: Outcome, stopStatus: "cancelled" | "interrupted"): Job {
  const ended = { ...job, ended: Date.now() / 1000, progress: plainProgress(job.progress) };
  const as = (status: JobStatus, rest: object = {}) => ({ ...ended, status, ...rest }) as Job;
  switch (outcome.kind) {
    case "result":
      return as("completed", { progress: { stage: "completed", done: 1, total: 1 }, result: outcome.result });
    case "failure":
      return as("failed", { error: outcome.message });
    case "stopped":
      return stopStatus === "cancelled"
        ? as("cancelled")
        : as("interrupted", { error: `The service shut down while the job was ${job.status}.` });
  }
}

function noSuchJob(id: string): HttpError {
  return new HttpError(404, /^[0-9a-f]{32}$/.test(id) ? `There is no job ${id}.` : "There is no such job.");
}
