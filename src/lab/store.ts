import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Job, JobSummary, jobIdPattern, type Progress, terminalStatuses } from "../contracts/index.js";
import { UserError } from "../contracts/user-error.js";
import { validate } from "../contracts/validate.js";
import { makeFolderDurably, syncFolder, writeDurably } from "../files/durable.js";
import { NotRegular, openRegular, readRegular } from "../files/regular.js";
import { type Lock, lockFolder } from "./lock.js";

const idPattern = new RegExp(jobIdPattern);
/** What every job's folder holds besides artifacts. */
const ownFiles = ["job.json", "worker.log"];

/** What the service keeps in memory of a job on disk. */
export interface StoredJob {
  summary: JobSummary;
  artifacts: string[];
}

/**
 * Jobs on disk: `<home>/lab/<id>/` with job.json, worker.log and artifacts; folders 0700, files 0600.
 * One process holds the folder at a time.
 */
export class JobStore {
  readonly folder: string;
  readonly #lock: Lock;

  private constructor(folder: string, lock: Lock) {
    this.folder = folder;
    this.#lock = lock;
  }

  /** @throws UserError when the folder cannot be written, or another process holds it */
  static async open(home: string): Promise<JobStore> {
    const folder = join(home, "lab");
    try {
      await makeFolderDurably(folder);
      return new JobStore(folder, await lockFolder(folder));
    } catch (error) {
      if (error instanceof UserError) throw error;
      if (error instanceof NotRegular) throw new UserError(`${error.message}; remove it.`);
      const reason = (error as NodeJS.ErrnoException).code ?? (error as Error).message;
      throw new UserError(`${folder} cannot be written (${reason}); choose another folder with --home.`);
    }
  }

  static newId(): string {
    return randomBytes(16).toString("hex");
  }

  jobFolder(id: string): string {
    return join(this.folder, id);
  }

  artifactPath(id: string, name: string): string {
    return join(this.folder, id, name);
  }

  async create(job: Job): Promise<void> {
    await mkdir(this.jobFolder(job.id), { mode: 0o700 });
    try {
      await this.write(job);
      await syncFolder(this.folder);
    } catch (error) {
      await rm(this.jobFolder(job.id), { recursive: true, force: true });
      throw error;
    }
  }

  /** Replaces job.json: readers and crashes see the old one or the new one whole. */
  async write(job: Job): Promise<void> {
    await writeDurably(join(this.jobFolder(job.id), "job.json"), JSON.stringify(job));
  }

  /** The whole job as it stands on disk. */
  async read(id: string): Promise<Job> {
    return JSON.parse(await readRegular(join(this.jobFolder(id), "job.json"))) as Job;
  }

  /**
   * Removes a job with everything it left. Its name goes first, so that no half of it can come back; what is then
   * still there, the next start removes.
   * @throws where the job is still there, whole
   */
  async remove(id: string, log: (line: string) => void): Promise<void> {
    const trash = join(this.folder, `.removed-${id}`);
    await rename(this.jobFolder(id), trash);
    try {
      await syncFolder(this.folder);
    } catch (error) {
      await rename(trash, this.jobFolder(id));
      throw error;
    }
    await rm(trash, { recursive: true, force: true }).catch((error: Error) =>
      log(`job ${id} is removed, but files of it stay until the next start: ${error.message}`),
    );
  }

  /** The log file of a job's worker, for writing. */
  openLog(id: string) {
    const { O_APPEND, O_CREAT, O_WRONLY } = constants;
    return openRegular(join(this.jobFolder(id), "worker.log"), O_APPEND | O_CREAT | O_WRONLY, 0o600);
  }

  /** Removes what a job left that nobody can ask for: unfinished files, and all artifacts where it has no result. */
  async removeLeftovers(id: string, hasResult: boolean): Promise<void> {
    const names = await readdir(this.jobFolder(id));
    const leftovers = names.filter((name) =>
      hasResult ? name.endsWith(".partial") || name.endsWith(".tmp") : !ownFiles.includes(name),
    );
    await Promise.all(
      leftovers.map((name) => rm(this.artifactPath(id, name), { recursive: true, force: true })),
    );
  }

  /**
   * All jobs found on disk, oldest first. Jobs that an earlier service left unfinished are marked interrupted;
   * folders without a readable job.json were never acknowledged to anybody, or are not ours: left out.
   */
  async load(log: (line: string) => void): Promise<StoredJob[]> {
    const jobs: StoredJob[] = [];
    for (const name of await readdir(this.folder)) {
      if (name.startsWith(".removed-")) await rm(join(this.folder, name), { recursive: true, force: true });
      if (!idPattern.test(name)) continue;
      try {
        jobs.push(await this.#recover(name));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") {
          await rm(this.jobFolder(name), { recursive: true, force: true });
        } else {
          log(`job ${name} is left out: its job.json cannot be used (${(error as Error).message})`);
        }
      }
    }
    return jobs.sort((a, b) => a.summary.created - b.summary.created);
  }

  async #recover(id: string): Promise<StoredJob> {
    let job = await this.read(id);
    // Before anything is deleted: of a job that this version cannot read, say of a later one, nothing is known.
    validate(JobSummary, job);
    if (job.id !== id) throw new Error("it belongs to another job");
    const finished = terminalStatuses.includes(job.status);
    await this.removeLeftovers(id, finished);
    if (!finished) {
      job = {
        ...job,
        status: "interrupted",
        ended: Date.now() / 1000,
        error: `The service ended while the job was ${job.status}.`,
      };
      await this.write(job);
    }
    return { summary: summarize(job), artifacts: job.result?.artifacts ?? [] };
  }

  /** Gives the folder free. Idempotent. */
  close(): Promise<void> {
    return this.#lock.release();
  }
}

/** A job without its configuration and result. */
export function summarize({ config: _config, result: _result, ...summary }: Job): JobSummary {
  return { ...summary, progress: plainProgress(summary.progress) };
}

/** How far a job is, without what is known of its result. */
export function plainProgress({ growth: _, ...progress }: Progress): Progress {
  return progress;
}
