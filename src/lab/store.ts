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
/** Files in every job's folder besides artifacts. */
const ownFiles = ["job.json", "worker.log"];

/** The in-memory part of a job on disk. */
export interface StoredJob {
  summary: JobSummary;
  artifacts: string[];
}

/**
 * Jobs on disk: `<home>/lab/<id>/` with job.json, worker.log and artifacts; folders 0700, files 0600. One process
 * uses the folder at a time.
 */
export class JobStore {
  private constructor(
    readonly folder: string,
    private readonly lock: Lock,
  ) {}

  /** @throws UserError if the folder cannot be written, or another process uses it */
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

  /** Replaces job.json atomically. */
  async write(job: Job): Promise<void> {
    await writeDurably(join(this.jobFolder(job.id), "job.json"), JSON.stringify(job));
  }

  /** Reads the whole job from disk. */
  async read(id: string): Promise<Job> {
    return JSON.parse(await readRegular(join(this.jobFolder(id), "job.json"))) as Job;
  }

  /**
   * Removes a job with all its files. Its folder is renamed first, so that it cannot partially reappear; remaining
   * files are removed at the next start.
   * @throws if the job still exists
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
      log(`job ${id} was deleted, but some of its files remain until the next start: ${error.message}`),
    );
  }

  /** The log file of a job's worker, for writing. */
  openLog(id: string) {
    const { O_APPEND, O_CREAT, O_WRONLY } = constants;
    return openRegular(join(this.jobFolder(id), "worker.log"), O_APPEND | O_CREAT | O_WRONLY, 0o600);
  }

  /** Removes unreachable files of a job: unfinished ones, and all artifacts if it has no result. */
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
   * Loads all jobs, oldest first. Jobs that an earlier service left unfinished are marked as interrupted. Folders
   * without a readable job.json are skipped: they were never acknowledged, or are not ours.
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
          log(`job ${name} is skipped: its job.json is invalid (${(error as Error).message})`);
        }
      }
    }
    return jobs.sort((a, b) => a.summary.created - b.summary.created);
  }

  async #recover(id: string): Promise<StoredJob> {
    let job = await this.read(id);
    // Before anything is deleted, in case a later version wrote the job.
    validate(JobSummary, job);
    if (job.id !== id) throw new Error("it belongs to another job");
    const finished = terminalStatuses.includes(job.status);
    await this.removeLeftovers(id, finished);
    if (!finished) {
      job = {
        ...job,
        status: "interrupted",
        ended: Date.now() / 1000,
        error: `The service shut down while the job was ${job.status}.`,
      };
      await this.write(job);
    }
    return { summary: summarize(job), artifacts: job.result?.artifacts ?? [] };
  }

  /** Unlocks the folder. Idempotent. */
  close(): Promise<void> {
    return this.lock.release();
  }
}

/** A job without its configuration and result. */
export function summarize({ config: _config, result: _result, ...summary }: Job): JobSummary {
  return { ...summary, progress: plainProgress(summary.progress) };
}

/** A job's progress without partial results. */
export function plainProgress({ growth: _, ...progress }: Progress): Progress {
  return progress;
}
