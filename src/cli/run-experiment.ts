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
  /** Output folder; by default a new one named after the job, none if false. */
  out: string | false | undefined;
  signal: AbortSignal;
  onStage: (stage: string) => void;
  onProgress: (job: Job) => void;
}

/** Output of `--json`: the whole job, and the paths of its files. */
export interface ExperimentReport {
  /** Origin of the Lab that still has the job; null if the Lab was temporary. */
  lab: string | null;
  job: CompletedJob;
  folder: string | null;
  files: string[];
}

export interface Experimented {
  report: ExperimentReport;
  /** Why the files could not be written, although there is a result. */
  unwritten?: unknown;
}

/**
 * Submits an experiment, waits for it and downloads its artifacts. After a signal, the job is cancelled. A temporary Lab
 * is always stopped.
 * @throws TaplineError, UserError, the signal's reason
 */
export async function runExperiment(options: Experiment): Promise<Experimented> {
  const { operation, model, settings, out, signal } = options;
  // Checks that the folder is writable before computing anything.
  const named = typeof out === "string" ? await makeFolder(resolve(out)) : undefined;
  if (out === undefined) await checkFolder(resolve("."));
  const session = await openLab(options.lab, () => options.onStage("starting a temporary Lab"), {
    unlimited: isPart(options),
  }).catch(async (error) => {
    await named?.undo();
    throw error;
  });
  let made = named;
  try {
    signal.throwIfAborted();
    // Ignores the signal, because cancelling an accepted job needs its id.
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

/** The scheduler that runs a part of an extraction decides how long it may take, not the Lab, unless others share that. */
function isPart({ settings }: Experiment): boolean {
  return settings.shard !== undefined;
}

async function waitFor(session: LabSession, id: string, options: Experiment): Promise<CompletedJob> {
  const unlimited = session.own && isPart(options);
  try {
    return await waitOrCancel(session.lab, id, {
      ...{ signal: options.signal, onProgress: options.onProgress },
      ...(unlimited && { timeoutMs: Number.POSITIVE_INFINITY }),
    });
  } catch (error) {
    const log = resolve(`tapline-${options.operation}-${id.slice(0, 8)}.log`);
    if (options.signal.aborted || !(await session.keepLog(id, log))) throw error;
    throw new UserError(`${(error as Error).message}\nThe worker's log is saved in ${shortPath(log)}.`);
  }
}

interface MadeFolder {
  path: string;
  /** Removes the folder and its content, unless it existed before. */
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

/** @throws UserError if a folder is not writable */
async function checkFolder(path: string): Promise<void> {
  try {
    await rmdir(await mkdtemp(join(path, ".tapline-")));
  } catch (error) {
    throw nothingCanBeWritten(path, error);
  }
}

function nothingCanBeWritten(path: string, error: unknown): UserError {
  return new UserError(`Cannot write to ${path} (${(error as NodeJS.ErrnoException).code}); see --out.`);
}

/** Downloads a completed job's artifacts into a folder, and writes job.json next to them. @returns the paths */
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
