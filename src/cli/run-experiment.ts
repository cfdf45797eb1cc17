import { mkdir, mkdtemp, rm, rmdir } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import type { CompletedJob, Lab, Settings } from "../client/index.js";
import { waitOrCancel } from "../client/run-job.js";
import { writeWhole } from "../client/whole-file.js";
import type { Job, Operation } from "../contracts/index.js";
import { UserError } from "../contracts/user-error.js";
import { type LabSession, openLab } from "./lab-session.js";
import { shortPath, unwritable } from "./output.js";

export interface Experiment {
  operation: Operation;
  model: string;
  settings: Record<string, unknown>;
  /** A running Lab, `new`, or nothing: see {@link openLab}. */
  lab: string | undefined;
  /** Folder for results; a new one named after the job unless told otherwise, none when false. */
  out: string | false | undefined;
  signal: AbortSignal;
  onStage: (stage: string) => void;
  onProgress: (job: Job) => void;
}

/** What `--json` prints: the whole job, and where its files are. */
export interface ExperimentReport {
  /** Origin of the Lab that still has the job; null when it was started for the occasion and has ended. */
  lab: string | null;
  job: CompletedJob;
  folder: string | null;
  files: string[];
}

export interface Experimented {
  report: ExperimentReport;
  /** Why files that were wanted are not there; the result is, nevertheless. */
  unwritten?: unknown;
}

/**
 * Submits an experiment, waits for it and downloads what it made. When the signal comes, the job is cancelled;
 * a Lab started for the occasion ends in any case.
 * @throws TaplineError, UserError, the signal's reason
 */
export async function runExperiment(options: Experiment): Promise<Experimented> {
  const { operation, model, settings, out, signal } = options;
  // A place that cannot be written to is told before anything is computed.
  const named = typeof out === "string" ? await makeFolder(resolve(out)) : undefined;
  if (out === undefined) await checkFolder(resolve("."));
  const session = await openLab(options.lab, () => options.onStage("starting a Lab for the occasion")).catch(
    async (error) => {
      await named?.undo();
      throw error;
    },
  );
  let made = named;
  try {
    signal.throwIfAborted();
    // Not ended by the signal: a job that was accepted must have a name to be cancelled by.
    const { id } = await session.lab.submit(operation, model, settings as unknown as Settings<Operation>);
    const job = await waitFor(session, id, options);
    const report = { lab: session.own ? null : session.url, job, folder: null, files: [] };
    if (out === false) return { report };
    try {
      made ??= await makeFolder(resolve(`tapline-${operation}-${id.slice(0, 8)}`));
      const files = await download(session.lab, job as Job, made.path, signal);
      return { report: { ...report, folder: made.path, files } };
    } catch (error) {
      signal.throwIfAborted();
      await made?.undo();
      return { report, unwritten: error };
    }
  } catch (error) {
    await made?.undo();
    throw error;
  } finally {
    await session.close();
  }
}

async function waitFor(session: LabSession, id: string, options: Experiment): Promise<CompletedJob> {
  try {
    return await waitOrCancel(session.lab, id, options);
  } catch (error) {
    const log = resolve(`tapline-${options.operation}-${id.slice(0, 8)}.log`);
    if (options.signal.aborted || !(await session.keepLog(id, log))) throw error;
    throw new UserError(`${(error as Error).message}\nThe worker's log is kept in ${shortPath(log)}.`);
  }
}

interface MadeFolder {
  path: string;
  /** Takes away what was made, with what was written into it; a folder that was there before stays. */
  undo(): Promise<void>;
}

/** @throws UserError */
export async function makeFolder(path: string): Promise<MadeFolder> {
  try {
    const first = await mkdir(path, { recursive: true });
    await checkFolder(path);
    return {
      path,
      async undo() {
        if (first !== undefined) await rm(first, { recursive: true, force: true });
      },
    };
  } catch (error) {
    throw error instanceof UserError ? error : nothingCanBeWritten(path, error);
  }
}

/** @throws UserError where nothing can be made in a folder */
async function checkFolder(path: string): Promise<void> {
  try {
    await rmdir(await mkdtemp(join(path, ".tapline-")));
  } catch (error) {
    throw nothingCanBeWritten(path, error);
  }
}

function nothingCanBeWritten(path: string, error: unknown): UserError {
  return new UserError(
    `Nothing can be written to ${path} (${(error as NodeJS.ErrnoException).code}); see --out.`,
  );
}

/** Downloads a completed job's artifacts into a folder and writes the job beside them. @returns the paths */
export async function download(lab: Lab, job: Job, folder: string, signal: AbortSignal): Promise<string[]> {
  const files: string[] = [];
  const written = async (name: string, write: (path: string) => Promise<unknown>) => {
    const path = join(folder, name);
    await write(path).catch((error) => Promise.reject(unwritable(path, error)));
    files.push(path);
  };
  for (const name of job.result?.artifacts ?? []) {
    await written(basename(name), (path) => lab.artifact(job.id, name, path, { signal }));
  }
  await written("job.json", (path) => writeWhole(path, [Buffer.from(`${JSON.stringify(job, null, 2)}\n`)]));
  return files;
}
