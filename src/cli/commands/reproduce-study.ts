import { join, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import { readPublished } from "../../client/published-study.js";
import { runJob } from "../../client/run-job.js";
import { writeWhole } from "../../client/whole-file.js";
import type { Job, Result } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import { figureOf } from "../../findings/numbers.js";
import { repetitionPage } from "../../recipe/repetition-page.js";
import { readJob, renderReport } from "../../report/index.js";
import {
  assemble,
  type Compared,
  compareFigures,
  type Evidence,
  faultsOf,
  isPublicModel,
  jobEvidence,
  methodText,
  outcomeOf,
  type Repeated,
  reproductionWords,
  requestsIn,
  type StudyRequest,
  usualTolerances,
} from "../../study/index.js";
import { ProgressLine } from "../../terminal/index.js";
import { UsageError } from "../exit-code.js";
import { type LabSession, openLab } from "../lab-session.js";
import { print, printJson, shortPath } from "../output.js";
import { makeFolder } from "../run-experiment.js";
import { endBy, stoppable } from "../stop-signal.js";
import { researchClient, safeLines } from "./study-client.js";

export interface StudyOptions {
  model?: string;
  lab?: string;
  out?: string;
  yes?: boolean;
  draft?: boolean;
  json?: boolean;
  quiet?: boolean;
}

/**
 * Repeats a published study: reads it, shows what it will run, asks for confirmation, runs its Lab requests, compares the
 * results and drafts the reproduction. @returns whether every value was within tolerance
 */
export async function reproduceStudy(address: string, options: StudyOptions): Promise<{ held: boolean }> {
  const signal = stoppable();
  const published = await readPublished(address, { signal });
  const { asked, refused } = requestsIn(published.package);
  const repeatable = asked.filter(({ original }) => original !== null);
  if (repeatable.length === 0) {
    throw new UserError(
      "The study contains no repeatable Lab request with its result (blocks tapline-request and tapline-result). Nothing was run.",
    );
  }
  const left = [
    ...refused.map((why) => `Invalid request: ${why}`),
    ...asked
      .filter(({ original }) => original === null)
      .map((one) => `${one.request.operation} without a result.`),
  ].map((line) => safeLines(line).join(" "));
  const models = modelsOf(repeatable, options.model);
  await show(published.package.title, repeatable, models, left, options);
  if (!(options.yes ?? (await confirmed(signal)))) {
    throw new UserError("Nothing was run.");
  }
  const line = new ProgressLine(options.quiet ? { write: () => {} } : process.stderr);
  const folder = await makeFolder(resolve(options.out ?? `tapline-reproduce-${published.id.slice(0, 8)}`));
  let session: LabSession | undefined;
  try {
    session = await openLab(options.lab, () => line.show("starting a temporary Lab", "Lab"));
    const evidence: Evidence[] = [];
    const compared: Compared[] = [];
    const jobs: Job[] = [];
    for (const [at, one] of repeatable.entries()) {
      const job = await run(session, one, models[at] as string, signal, (stage) =>
        line.show(`${at + 1}/${repeatable.length}: ${one.request.operation} ${stage}`, `${at}`),
      );
      evidence.push(jobEvidence(job));
      jobs.push(job);
      const { operation, result } = one.original as NonNullable<StudyRequest["original"]>;
      const figures = compareFigures(operation, result, job.result as Result);
      const which = repeatable.length > 1 ? `${at + 1}. ${operation}: ` : "";
      compared.push(...figures.map((figure) => ({ ...figure, title: which + figure.title })));
    }
    line.clear();
    const outcome = outcomeOf(compared);
    const repeated: Repeated = {
      study: published.id,
      version: published.version,
      package_sha256: published.package_sha256,
      address: `${new URL(address).origin}/studies/${published.id}/v/${published.version}`,
      content: published.package,
      outcome,
      compared,
      tolerances: usualTolerances,
      left,
    };
    const words = reproductionWords(repeated, methodText(evidence));
    const made = assemble(words, evidence);
    const [fault] = faultsOf(made);
    if (fault !== undefined) throw new UserError(`The draft cannot be made: ${fault}`);
    const file = join(folder.path, "study.json");
    await writeWhole(file, [made.bytes]);
    const page = join(folder.path, "index.html");
    const runs = jobs.map(({ operation }, at) => ({ what: operation, file: `request-${at + 1}.html` }));
    await writeWhole(page, [Buffer.from(repetitionPage(repeated, [...new Set(models)], runs))]);
    for (const [at, job] of jobs.entries()) {
      const report = await renderReport(readJob(job as Job & { result: Result }));
      await writeWhole(join(folder.path, (runs[at] as { file: string }).file), [Buffer.from(report)]);
    }
    const saved = options.draft ? await save(made.bytes) : null;
    if (options.json) await printJson({ outcome, figures: compared, file, page, draft: saved });
    else await print(picture(outcome, compared, page, file, saved?.review_url).join("\n"));
    return { held: outcome === "held" };
  } catch (error) {
    line.clear();
    await folder.undo();
    if (signal.aborted) {
      await session?.close();
      session = undefined;
      endBy(signal.reason);
    }
    throw error;
  } finally {
    await session?.close();
  }
}

/** @throws UsageError if a model was a file on the author's machine and --model is missing */
function modelsOf(asked: readonly StudyRequest[], named: string | undefined): string[] {
  return asked.map(({ request }) => {
    if (named !== undefined) return named;
    if (isPublicModel(request.model)) return request.model;
    const [shown] = safeLines(request.model);
    throw new UsageError(
      `The study used ${shown}, a local file of its author. Choose your copy with --model.`,
    );
  });
}

async function show(
  title: string,
  asked: readonly StudyRequest[],
  models: readonly string[],
  left: readonly string[],
  { json, yes }: StudyOptions,
): Promise<void> {
  const lines = [
    ...safeLines(title.replace(/\s+/g, " ")),
    "",
    "These requests will run in your Lab, and nothing else. Their texts were written by the study's author:",
    ...asked.flatMap(({ request }, at) => [
      `  ${at + 1}. ${request.operation} on ${models[at]}`,
      ...safeLines(JSON.stringify({ ...request, operation: undefined, model: undefined })).map(
        (line) => `     ${line}`,
      ),
    ]),
    ...(left.length === 0 ? [] : ["", "Skipped:", ...left.map((line) => `  ${line}`)]),
    "",
  ];
  const text = lines.map((line) => `${line}\n`).join("");
  // With --yes and --json, prints only JSON.
  if (!(json && yes)) process.stderr.write(text);
}

async function confirmed(signal: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY) {
    throw new UsageError("Confirmation is required: run this in a terminal, or use --yes.");
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question("Run this? [y/N] ", { signal })).trim());
  } finally {
    terminal.close();
  }
}

async function run(
  { lab }: LabSession,
  { request }: StudyRequest,
  model: string,
  signal: AbortSignal,
  onStage: (stage: string) => void,
): Promise<Job> {
  signal.throwIfAborted();
  onStage("");
  const { operation, model: _, ...settings } = request;
  return (await runJob(lab, { operation, model, settings }, signal, onStage)) as Job;
}

async function save(bytes: Buffer): Promise<{ id: string; review_url: string }> {
  return (await researchClient()).savePrivateDraft(bytes);
}

function picture(
  outcome: string,
  compared: readonly Compared[],
  page: string,
  file: string,
  review: string | undefined,
): string[] {
  return [
    ...compared.map(({ title, values, within, held, worst }) => {
      const far =
        worst === null
          ? ""
          : `; ${worst.what}: published ${figureOf(worst.before)}, measured ${figureOf(worst.after)}`;
      return `${held ? "held   " : "differs"}  ${title}: ${within} of ${values} values within tolerance${held ? "" : far}`;
    }),
    "",
    `Outcome: ${outcome}. Every figure is in ${shortPath(page)}.`,
    `The draft is in ${shortPath(file)}. Review it and add your interpretation.`,
    ...(review === undefined
      ? ["Save it as a private draft with: tapline study draft"]
      : safeLines(`Saved as a private draft; review and publish it at ${review}`)),
  ];
}
