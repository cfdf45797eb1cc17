import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { checkSubmission, type Operation } from "../contracts/index.js";
import type { EngineName } from "../contracts/names.js";
import { taplineHome } from "../files/home.js";
import { count } from "../findings/numbers.js";
import {
  engineOf,
  type Followed,
  findSubmission,
  follow,
  planned,
  progressOf,
  type Submission,
  start,
  stop,
  submissions,
} from "../submit/index.js";
import { canvasOf, dim, JobProgress, submissionList } from "../terminal/index.js";
import { bytesText } from "../text/words.js";
import { UsageError } from "./exit-code.js";
import { print, printJson, shortPath } from "./output.js";
import { endBy, stoppable } from "./stop-signal.js";

export interface SubmitOptions {
  submit: EngineName;
  parts?: number;
  workers?: number;
  devices?: string[];
  sbatch?: string[];
  dryRun?: boolean;
  detach?: boolean;
  json?: boolean;
  quiet?: boolean;
}

/** The command for a part: this program, by paths that all machines of a cluster have to see. */
const program = [process.execPath, fileURLToPath(new URL("../../bin/tapline.js", import.meta.url))];

/** How often the engine and the files are looked at. A cluster's controller serves others, too. */
const intervalMs: Record<EngineName, number> = { local: 1000, slurm: 5000 };

/** `tapline extract --submit`, or of another experiment: starts it in parts, follows it and merges its files. */
export async function submit(
  operation: Operation,
  settings: Record<string, unknown>,
  out: string,
  options: SubmitOptions,
): Promise<void> {
  const { submit: engine, devices = [], sbatch = [] } = options;
  const { shard, ...rest } = settings;
  if (shard !== undefined)
    throw new UsageError("--submit and --shard cannot be combined: --parts says how many there are.");
  if (engine !== "local" && devices.length > 0) throw new UsageError("--devices belongs to --submit local.");
  if (engine !== "slurm" && sbatch.length > 0) throw new UsageError("--sbatch belongs to --submit slurm.");
  const known = (await submissions(taplineHome())).find((each) => each.out === resolve(out));
  const parts = options.parts ?? known?.parts;
  if (parts === undefined) throw new UsageError("--submit requires --parts, the number of parts.");
  // Rejects invalid settings before anything is started.
  const isExtract = operation === "extract";
  const config = checkSubmission({
    ...{ operation, ...rest },
    ...(isExtract && { shard: [0, parts], out: resolve(out) }),
  });
  if (!isExtract) {
    const { runOf } = await import("../operations/runs.js");
    const most = runOf(operation).split?.count(config as never) ?? 0;
    if (parts > most) {
      throw new UsageError(`--parts: the experiment has ${most} items to divide, got ${parts}.`);
    }
  }
  const workers = options.workers ?? (engine === "slurm" ? parts : Math.max(devices.length, 1));
  const engineOptions = engine === "slurm" ? sbatch : devices;
  const wanted = planned(rest, {
    ...(!isExtract && { operation }),
    engine,
    out: resolve(out),
    parts,
    workers,
    engineOptions,
  });
  if (options.dryRun) return print(engineOf(wanted, program).script(wanted).trimEnd());
  const { submission, joined } = await start(taplineHome(), wanted, program);
  if (options.detach) return options.json ? printJson(submission) : print(submission.id);
  if (!options.quiet) process.stderr.write(`${joined ? "Joined" : "Submitted as"} ${submission.id}.\n`);
  return followed(submission, options);
}

/** `tapline job s-…`: its state, or with `wait` everything until its files are merged. */
export async function showSubmission(
  name: string,
  options: { wait?: boolean; json?: boolean },
): Promise<void> {
  const submission = await findSubmission(taplineHome(), name);
  if (options.wait) return followed(submission, options);
  const progress = await progressOf(submission);
  if (options.json) return printJson({ ...submission, progress });
  return print((await listed([submission])).join("\n"));
}

/** `tapline cancel s-…`. */
export async function stopSubmission(name: string, options: { json?: boolean }): Promise<void> {
  const submission = await findSubmission(taplineHome(), name);
  await stop(taplineHome(), submission, program);
  return options.json
    ? printJson(submission)
    : print(
        `${submission.id} is stopped. Its finished files stay in ${submission.out}; the same command resumes after them.`,
      );
}

/** `tapline jobs --submitted`. */
export async function listSubmissions(options: { json?: boolean; limit?: number }): Promise<void> {
  const all = (await submissions(taplineHome())).slice(0, options.limit);
  if (!options.json) return print((await listed(all)).join("\n"));
  return printJson({
    submissions: await Promise.all(all.map(async (each) => ({ ...each, progress: await progressOf(each) }))),
  });
}

async function listed(all: readonly Submission[]): Promise<string[]> {
  const states = await Promise.all(
    all.map(async (submission) => {
      const { id, engine, submitted, out, parts, stopped, merged } = submission;
      const [progress, active] = await Promise.all([
        progressOf(submission),
        // The list is of use even where the engine cannot be asked.
        engineOf(submission, program)
          .active(submission)
          .catch(() => undefined),
      ]);
      return {
        ...{ id, engine, submitted: Date.parse(submitted) / 1000, out: shortPath(out), parts },
        ...{ stopped, merged: merged === true, active: active?.size },
        ...{ complete: progress.complete, done: progress.done, tokens: progress.tokens },
      };
    }),
  );
  return submissionList(states, canvasOf(process.stdout));
}

async function followed(submission: Submission, options: { json?: boolean; quiet?: boolean }): Promise<void> {
  const signal = stoppable();
  const progress = new JobProgress(options.quiet ? { write: () => {} } : process.stderr);
  const show = (stage: string, done: number, total: number) =>
    progress.show({ status: "running", progress: { stage, done, total } });
  try {
    const merged = await follow(submission, {
      ...{ home: taplineHome(), engine: engineOf(submission, program), signal },
      intervalMs: intervalMs[submission.engine],
      onProgress: ({ done, tokens = 0 }) =>
        show(`computing in ${count(submission.parts, "part")}`, done, tokens),
      onRestart: (parts) => {
        progress.clear();
        if (!options.quiet)
          process.stderr.write(`Starting again: ${parts.map((part) => `part ${part}`).join(", ")}.\n`);
      },
      onCopy: (parts) => {
        progress.clear();
        if (!options.quiet)
          process.stderr.write(
            `Running a second time, because it is slow: ${parts.map((part) => `part ${part}`).join(", ")}.\n`,
          );
      },
      onMerge: (done, total) => show("merging", done, total),
    });
    progress.clear();
    await (options.json ? printJson({ id: submission.id, ...merged }) : print(mergedLine(merged)));
  } catch (error) {
    progress.clear();
    if (!signal.aborted) throw error;
    process.stderr.write(
      `${submission.id} keeps running. Join it: tapline job ${submission.id} --wait. Stop it: tapline cancel ${submission.id}.\n`,
    );
    return endBy(signal.reason);
  }
}

/** The result of a merge in one sentence. */
export function mergedLine(merged: Followed): string {
  const folder = dim(shortPath(merged.folder), canvasOf(process.stdout).colors);
  const parts = `Merged ${count(merged.parts, "part")}`;
  if ("files" in merged) return `${parts}: ${merged.files.join(", ")} in ${folder}.`;
  const { texts, tokens, bytes, shards } = merged.plan;
  return (
    `${parts}: ${count(texts, "text")}, ${count(tokens, "token")}, ${bytesText(bytes)} in ` +
    `${count(shards.length, "file")} in ${folder}.`
  );
}
