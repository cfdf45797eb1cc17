import { Lab, type Settings } from "../client/index.js";
import { checkSubmission, type Job, type Operation } from "../contracts/index.js";
import type { LensView } from "../contracts/names.js";
import {
  bold,
  type Canvas,
  canvasOf,
  dim,
  JobProgress,
  jobPicture,
  ProgressLine,
} from "../terminal/index.js";
import { UsageError } from "./exit-code.js";
import { print, printJson, shortPath } from "./output.js";
import { runExperiment } from "./run-experiment.js";
import { usualLab } from "./service-address.js";
import { endBy, stoppable } from "./stop-signal.js";

export interface ConductOptions {
  lab?: string;
  out?: string | false;
  json?: boolean;
  detach?: boolean;
  quiet?: boolean;
  /** What the cells of lens grids show. */
  show?: LensView;
}

/** Runs one experiment: shows progress, then prints its picture or JSON. */
export async function conduct(
  operation: Operation,
  submission: Record<string, unknown>,
  options: ConductOptions,
): Promise<void> {
  // Rejects invalid submissions before a Lab is started.
  checkSubmission({ operation, ...submission });
  const { model, ...settings } = submission as { model: string };
  if (options.detach) return detach(operation, model, settings, options);

  const signal = stoppable();
  const quiet = { write: () => {} };
  const progress = new JobProgress(options.quiet ? quiet : process.stderr);
  const line = new ProgressLine(options.quiet ? quiet : process.stderr);
  try {
    const { report, unwritten } = await runExperiment({
      operation,
      model,
      settings,
      lab: options.lab,
      out: options.out,
      signal,
      onStage: (stage) => line.show(stage),
      onProgress: (job) => progress.show(job),
    });
    line.clear();
    progress.clear();
    if (options.json) await printJson(report);
    else await printJob(report.job as Job, report.files, options.show);
    if (unwritten !== undefined) throw unwritten;
  } catch (error) {
    line.clear();
    progress.clear();
    if (signal.aborted) return endBy(signal.reason);
    throw error;
  }
}

async function detach(
  operation: Operation,
  model: string,
  settings: object,
  options: ConductOptions,
): Promise<void> {
  if (options.lab === "new")
    throw new UsageError("--detach and --lab new cannot be combined: a temporary Lab ends with the command.");
  const job = await new Lab(options.lab ?? usualLab).submit(
    operation,
    model,
    settings as Settings<Operation>,
  );
  await (options.json ? printJson(job) : print(job.id));
}

/** Prints a job's picture and lists its files. */
export function printJob(job: Job, files: readonly string[], show?: LensView): Promise<void> {
  const canvas = { ...canvasOf(process.stdout), lensView: show };
  return print([...jobPicture(job, canvas), ...savedLines(files, canvas)].join("\n"));
}

/** The paths of saved files, as lines below a picture. */
export function savedLines(files: readonly string[], { colors }: Canvas): string[] {
  return files.map((file, index) => {
    const path = shortPath(file);
    return dim((index === 0 ? "Saved" : "").padEnd(13), colors) + (index === 0 ? bold(path, colors) : path);
  });
}
