import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import type { Card } from "../../contracts/card.js";
import type { Job, JobStatus } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import { version } from "../../contracts/version.js";
import type { Assembled, Evidence, Words } from "../../study/index.js";
import { UsageError } from "../exit-code.js";
import { labOption, serverOption, usualLab } from "../service-address.js";
import { environmentHelp } from "./study-client.js";

interface PackageOptions extends Partial<Omit<Words, "omissions">> {
  job?: string[];
  execution?: string[];
  card?: string[];
  lab?: string;
  url: string;
  words?: string;
  omission?: string[];
  edit: boolean;
  draft?: boolean;
  out?: string;
}

const fields = ["title", "question", "hypothesis", "method", "finding", "limitations", "license"] as const;

/** `tapline study package`: makes a study of experiments. */
export function registerStudyPackage(study: Command): void {
  study
    .command("package")
    .description("Create a study package from jobs, requests and cards. You write the text in your editor.")
    .option(
      "--job <job...>",
      "jobs: ids, prefixes of ids, last, or experiments' output folders (or their job.json)",
    )
    .option("--execution <id...>", "requests to a running tapline serve: ids, prefixes of ids, or last")
    .option("--card <file...>", "cards of profiles: card.json, or the folder that tapline card wrote")
    .addOption(labOption())
    .addOption(serverOption())
    .option("--title <text>", "title of the study")
    .option("--question <text>", "research question")
    .option("--hypothesis <text>", "hypothesis")
    .option("--method <text>", "method (default: a description of the jobs)")
    .option("--finding <text>", "finding")
    .option("--limitations <text>", "limitations of the finding")
    .option("--license <license>", "CC-BY-4.0 or CC0-1.0")
    .option("--omission <text...>", "something you left out, and why")
    .option(
      "--words <file>",
      "file with the text in the editor's format (- for standard input); options override it",
    )
    .option("--no-edit", "do not open an editor; take the text from options or --words")
    .option(
      "--draft",
      "save the package as a private draft on the studies service, where a person can publish it",
    )
    .option(
      "--out <file>",
      "output file, or - for standard output (default without --draft: tapline-study.json)",
    )
    .addHelpText(
      "after",
      `${environmentHelp}

Examples:
  tapline study package --job last --title "Where the capital comes up"
  tapline study package --job tapline-inspect-0f3a6c1d \\
    tapline-compare-91b2c3d4 --draft
  tapline study package --job last --words words.md --no-edit --out study.json
  tapline study package --card tapline-card-polite`,
    )
    .action(packageStudy);
}

async function packageStudy(options: PackageOptions): Promise<void> {
  const { emptyWords, methodText, readWords, assemble, faultsOf } = await import("../../study/index.js");
  const evidence = await gather(options);
  const kept = options.words === undefined ? emptyWords : readWords(await readWordsFile(options.words));
  const flags = Object.fromEntries(
    fields.map((name) => [name, options[name]]).filter(([, text]) => text !== undefined),
  );
  const words: Words = {
    ...kept,
    ...flags,
    omissions: [...kept.omissions, ...(options.omission ?? [])],
  };
  if (words.method.trim() === "") words.method = methodText(evidence);
  const { finished, kept: file } = options.edit
    ? await writeInEditor(words, evidence)
    : { finished: assemble(words, evidence) };
  const faults = faultsOf(finished);
  if (faults.length > 0) throw new UsageError(`The package is incomplete: ${faults.join(" ")}`);
  await save(finished, options).catch((error: Error) => {
    if (file !== undefined) error.message += ` ${savedIn(file)}`;
    throw error;
  });
  if (file !== undefined) await rm(dirname(file), { recursive: true, force: true });
}

function savedIn(file: string): string {
  return `Your text is saved in ${file}; use --words to continue with it.`;
}

/** Jobs first, then requests and cards, in the order given. */
async function gather({
  job = [],
  execution = [],
  card = [],
  lab,
  url,
}: PackageOptions): Promise<Evidence[]> {
  if (job.length + execution.length + card.length === 0) {
    throw new UsageError("At least one job (--job), request (--execution) or card (--card) is required.");
  }
  const { executionEvidence, jobEvidence } = await import("../../study/index.js");
  const evidence: Evidence[] = [];
  for (const name of job) evidence.push(jobEvidence(await findJobNamed(name, lab)));
  if (execution.length > 0) {
    const [{ Transport }, { findExecution }] = await Promise.all([
      import("../../client/transport.js"),
      import("./executions-find.js"),
    ]);
    const http = new Transport(url, 10_000, { service: "serve" });
    for (const name of execution) {
      evidence.push(executionEvidence(await findExecution(http, name), `tapline ${version}`));
    }
  }
  if (card.length > 0) {
    const { cardEvidence } = await import("../../card/evidence.js");
    for (const file of card) evidence.push(cardEvidence(await readCard(file)));
  }
  return evidence;
}

/** A card's file, or the folder that contains it. @throws UsageError if it is not a card as it was written */
async function readCard(path: string): Promise<Card> {
  const [{ stat }, { readConfig }, { intactCard }] = await Promise.all([
    import("node:fs/promises"),
    import("../input-files.js"),
    import("../intact-card.js"),
  ]);
  const folder = await stat(path).catch(() => undefined);
  const file = folder?.isDirectory() ? join(path, "card.json") : path;
  return intactCard(await readConfig(file), file);
}

async function findJobNamed(name: string, lab: string | undefined): Promise<Job> {
  const [{ Job: schema, terminalStatuses, validate }, { jobFile }, { readConfig }] = await Promise.all([
    import("../../contracts/index.js"),
    import("./report.js"),
    import("../input-files.js"),
  ]);
  const file = await jobFile(name);
  let found: unknown;
  if (file !== undefined) {
    const read = await readConfig(file);
    found = read.job ?? read;
  } else {
    const [{ Lab }, { findJob }] = await Promise.all([
      import("../../client/index.js"),
      import("../lab-session.js"),
    ]);
    const service = new Lab(lab ?? usualLab);
    found = await service.job(await findJob(service, name));
  }
  const job = validate(schema, found) as Job;
  if (!terminalStatuses.includes(job.status as JobStatus)) {
    throw new UserError(`Job ${job.id} is still ${job.status}; wait until it has ended.`);
  }
  return job;
}

async function readWordsFile(path: string): Promise<string> {
  const { readInput } = await import("../input-files.js");
  return readInput(path);
}

/**
 * Opens the text in an editor until it makes a valid package. If the user gives up (no text, or no changes after an
 * error), the file is kept.
 */
async function writeInEditor(
  words: Words,
  evidence: readonly Evidence[],
): Promise<{ finished: Assembled; kept: string }> {
  const [{ assemble, faultsOf, isBlank, readWords, writeWords }, { edit, editorCommand }] = await Promise.all(
    [import("../../study/index.js"), import("../editor.js")],
  );
  const command = editorCommand();
  const folder = await mkdtemp(join(tmpdir(), "tapline-study-"));
  const file = join(folder, "words.md");
  const giveUp = (why: string) => new UserError(`${why} ${savedIn(file)}`);
  let text = writeWords(words);
  for (;;) {
    await writeFile(file, text, { mode: 0o600 });
    await edit(command, file).catch((error) => {
      throw error instanceof UserError ? giveUp(error.message) : error;
    });
    const after = await readFile(file, "utf8");
    const written = readWords(after);
    if (isBlank(written)) {
      await rm(folder, { recursive: true, force: true });
      throw new UserError("The file is empty; no package was created.");
    }
    const finished = assemble(written, evidence);
    const faults = faultsOf(finished);
    if (faults.length === 0) return { finished, kept: file };
    // No changes since the errors were shown: the user has given up.
    if (after === text && text.startsWith("<!-- !"))
      throw giveUp(`No changes were made: ${faults.join(" ")}`);
    text = writeWords(written, faults);
  }
}

async function save({ study, bytes }: Assembled, options: PackageOptions): Promise<void> {
  const [{ print, shortPath, writeOut }, { safeLines, researchClient }] = await Promise.all([
    import("../output.js"),
    import("./study-client.js"),
  ]);
  if (options.out === "-") await print(bytes.toString());
  else if (options.out !== undefined || !options.draft) {
    const path = resolve(options.out ?? "tapline-study.json");
    await writeOut(path, bytes);
    const size = [
      counted(study.entries.length, "entry", "entries"),
      counted(bytes.length, "byte", "bytes"),
      counted(study.omissions.length, "omission", "omissions"),
    ].join(", ");
    await print(`Saved ${shortPath(path)} (${size})`);
  }
  if (!options.draft) return;
  const client = await researchClient();
  const saved = await client.savePrivateDraft(bytes).catch(async (error) => {
    if (options.out !== undefined) throw error;
    const kept = resolve("tapline-study.json");
    await writeOut(kept, bytes);
    (error as Error).message += ` The package is saved in ${shortPath(kept)}; see tapline study draft.`;
    throw error;
  });
  const lines = [
    `Saved as private draft ${saved.id}.`,
    ...safeLines(`Review and publish it at ${saved.review_url}`),
  ];
  if (options.out === "-") process.stderr.write(`${lines.join("\n")}\n`);
  else await print(lines.join("\n"));
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
