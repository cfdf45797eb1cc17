import { resolve } from "node:path";
import type { Command } from "commander";
import type { Job } from "../../contracts/index.js";
import { integerBetween } from "../options.js";
import { labOption, usualLab } from "../service-address.js";

interface LabOptions {
  lab?: string;
  json?: boolean;
}

interface JobOptions extends LabOptions {
  wait?: boolean;
  out?: string;
}

interface ListOptions extends LabOptions {
  limit?: number;
  submitted?: boolean;
}

/** `tapline jobs`, `job` and `cancel`: the jobs of a running Lab. */
export function registerJobs(program: Command): void {
  const withLab = (name: string, description: string) =>
    program
      .command(name)
      .description(description)
      .addOption(labOption())
      .option("--json", "print the Lab's response as JSON");

  withLab("jobs", "List a running Lab's jobs, newest first.")
    .option("--limit <number>", "number of jobs to show", integerBetween(1, 100), 20)
    .option("--submitted", "list what was submitted to an engine with --submit instead, with its progress")
    .addHelpText(
      "after",
      `
Examples:
  tapline jobs
  tapline jobs --json | jq -r '.jobs[] | select(.status == "completed").id'`,
    )
    .action(list);

  withLab("job", "Show a job of a running Lab, with its results if it has finished.")
    .argument(
      "<id>",
      "the job's id, a prefix of it, last for the newest job, a job.json file, or a submission's id (s-…)",
    )
    .option("--wait", "wait until it ends; exit with code 1 unless it completes")
    .option("--out <folder>", "download its artifacts to this folder")
    .addHelpText(
      "after",
      `
Examples:
  tapline job last
  tapline job 3f2a --wait --out results
  tapline job results/job.json`,
    )
    .action(show);

  withLab("cancel", "Cancel a job. Finished jobs are not affected.")
    .argument("<id>", "the job's id, a prefix of it, last for the newest job, or a submission's id (s-…)")
    .addHelpText("after", "\nExamples:\n  tapline cancel last")
    .action(cancel);
}

/** Whether a name is the id of what was submitted with --submit, or a prefix of it. */
function isSubmission(name: string): boolean {
  return /^s-[0-9a-f]*$/.test(name);
}

async function list(options: ListOptions): Promise<void> {
  if (options.submitted) return (await import("../submit.js")).listSubmissions(options);
  const [{ Lab }, { canvasOf, dim, jobList }, { print, printJson }] = await Promise.all([
    import("../../client/index.js"),
    import("../../terminal/index.js"),
    import("../output.js"),
  ]);
  const jobs = await new Lab(options.lab ?? usualLab).jobs();
  if (options.json) return printJson({ jobs });
  const canvas = canvasOf(process.stdout);
  const shown = jobs.slice(0, options.limit);
  const rest = jobs.length - shown.length;
  const lines = jobList(shown, canvas);
  if (rest > 0) lines.push(dim(`… and ${rest} older; see --limit`, canvas.colors));
  return print(lines.join("\n"));
}

async function show(name: string, options: JobOptions): Promise<void> {
  if (isSubmission(name)) return (await import("../submit.js")).showSubmission(name, options);
  const [
    { Lab },
    { findJob },
    { download, makeFolder },
    { intervalMs },
    { printJob },
    { printJson },
    { endBy, stoppable },
  ] = await Promise.all([
    import("../../client/index.js"),
    import("../lab-session.js"),
    import("../run-experiment.js"),
    import("../../client/run-job.js"),
    import("../conduct.js"),
    import("../output.js"),
    import("../stop-signal.js"),
  ]);
  if (name.endsWith(".json")) {
    const job = await readJob(name);
    return options.json ? printJson(job) : printJob(job, []);
  }
  const lab = new Lab(options.lab ?? usualLab);
  const signal = stoppable();
  try {
    const id = await findJob(lab, name);
    const job = options.wait ? await waited(id) : await lab.job(id, { signal });
    const { files, unwritten } = await saved(job);
    await (options.json ? printJson(job) : printJob(job, files));
    if (unwritten !== undefined) throw unwritten;
    if (options.wait && job.status !== "completed") process.exitCode = 1;
  } catch (error) {
    // Another command submitted the job: it continues.
    if (signal.aborted) return endBy(signal.reason);
    throw error;
  }

  /** An error while writing is reported after the job is shown. */
  async function saved(job: Job): Promise<{ files: string[]; unwritten?: unknown }> {
    if (options.out === undefined) return { files: [] };
    try {
      const folder = await makeFolder(resolve(options.out));
      return { files: await download(lab, job, folder.path, signal) };
    } catch (unwritten) {
      signal.throwIfAborted();
      return { files: [], unwritten };
    }
  }

  async function waited(id: string): Promise<Job> {
    const { JobProgress } = await import("../../terminal/index.js");
    const progress = new JobProgress(process.stderr);
    try {
      await lab.wait(id, { intervalMs, signal, onProgress: (job) => progress.show(job) });
    } catch (error) {
      const job = await lab.job(id);
      if (job.status === "queued" || job.status === "running") throw error;
    } finally {
      progress.clear();
    }
    return lab.job(id);
  }
}

/** A job from the job.json next to an experiment's artifacts. @throws UsageError, InvalidInput */
async function readJob(path: string): Promise<Job> {
  const [{ readConfig }, { Job: schema, validate }] = await Promise.all([
    import("../input-files.js"),
    import("../../contracts/index.js"),
  ]);
  return validate(schema, await readConfig(path)) as unknown as Job;
}

async function cancel(name: string, options: LabOptions): Promise<void> {
  if (isSubmission(name)) return (await import("../submit.js")).stopSubmission(name, options);
  const [{ Lab }, { findJob }, { print, printJson }] = await Promise.all([
    import("../../client/index.js"),
    import("../lab-session.js"),
    import("../output.js"),
  ]);
  const lab = new Lab(options.lab ?? usualLab);
  const job = await lab.cancel(await findJob(lab, name));
  await (options.json ? printJson(job) : print(`Job ${job.id} is ${job.status}.`));
}
