import { stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Command } from "commander";
import { UsageError } from "../exit-code.js";
import { filled } from "../options.js";
import { labOption, usualLab } from "../service-address.js";

interface ReportOptions {
  lab?: string;
  json?: string;
  out?: string;
}

/** `tapline report`: exports a job as one HTML file. */
export function registerReport(program: Command): void {
  program
    .command("report")
    .description("Export a job as a self-contained HTML report.")
    .argument("[job]", "a job's id, a prefix of it, last, or an experiment's output folder (default: last)")
    .addOption(labOption())
    .option("--json <file>", "read the job from this file instead (- for standard input)", filled)
    .option(
      "--out <file>",
      "output file, or - for standard output (default: tapline-<experiment>-<first 8 of the id>.html)",
      filled,
    )
    .addHelpText(
      "after",
      `
Examples:
  tapline report                              the newest job of the default Lab
  tapline report 0f3a6c1d --out lens.html
  tapline report tapline-inspect-0f3a6c1d     output of tapline inspect
  tapline inspect --json "The capital of France is" |
    tapline report --json - --out lens.html`,
    )
    .action(report);
}

async function report(name: string | undefined, options: ReportOptions): Promise<void> {
  if (name !== undefined && options.json !== undefined) {
    throw new UsageError("A job and --json cannot be combined.");
  }
  const [{ readJob, renderReport }, { print, shortPath, writeOut }] = await Promise.all([
    import("../../report/index.js"),
    import("../output.js"),
  ]);
  const job = readJob(await find(name, options));
  const page = await renderReport(job);
  if (options.out === "-") return print(page);
  const suffix = job.id === undefined ? "" : `-${job.id.slice(0, 8)}`;
  const path = resolve(options.out ?? `tapline-${job.operation}${suffix}.html`);
  await writeOut(path, Buffer.from(page));
  await print(`Report saved to ${shortPath(path)}`);
}

async function find(name: string | undefined, { json, lab }: ReportOptions): Promise<unknown> {
  const { readConfig } = await import("../input-files.js");
  if (json !== undefined) return readConfig(json);
  const file = name === undefined ? undefined : await jobFile(name);
  if (file !== undefined) return readConfig(file);
  const [{ Lab }, { findJob }] = await Promise.all([
    import("../../client/index.js"),
    import("../lab-session.js"),
  ]);
  const service = new Lab(lab ?? usualLab);
  return service.job(await findJob(service, name ?? "last"));
}

/**
 * The file of a job, if the name is a file or the output folder of an experiment or the demo.
 * @throws UsageError for any other folder
 */
export async function jobFile(name: string): Promise<string | undefined> {
  const found = await stat(name).catch(() => undefined);
  if (found === undefined) return undefined;
  if (!found.isDirectory()) return name;
  for (const file of ["job.json", "report.json"]) {
    const path = join(name, file);
    if ((await stat(path).catch(() => undefined)) !== undefined) return path;
  }
  throw new UsageError(`${name} has no job.json: it is not an experiment's output folder.`);
}
