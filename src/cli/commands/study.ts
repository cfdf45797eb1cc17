import { type Command, InvalidArgumentError } from "commander";
import type { Discussion } from "../../contracts/studies/index.js";
import { studyLimits } from "../../contracts/studies/limits.js";
import { uuidPattern } from "../../contracts/studies/uuid.js";
import { UsageError } from "../exit-code.js";
import { integerBetween } from "../options.js";
import { environmentHelp } from "./study-client.js";
import { registerStudyPackage } from "./study-package.js";

interface ListOptions {
  limit?: number;
  offset?: number;
  json?: boolean;
}

interface GetOptions {
  discussion?: boolean;
  versionNumber?: number;
  json?: boolean;
}

interface DraftOptions {
  key?: string;
  json?: boolean;
}

/** `tapline study`: published studies and private drafts on a studies service. */
export function registerStudy(program: Command): void {
  const study = program
    .command("study")
    .description("Read published studies and save private drafts.")
    .addHelpText("after", environmentHelp);

  study
    .command("list")
    .description("List published studies, newest first, optionally only those that match all given words.")
    .argument("[words...]", "words that must all occur; the last may be a prefix")
    .option("--limit <number>", "number of studies to show", integerBetween(1, studyLimits.list_limit))
    .option("--offset <number>", "number of studies to skip", integerBetween(0, studyLimits.offset))
    .option("--json", "print the service's response as JSON")
    .addHelpText(
      "after",
      `${environmentHelp}

Examples:
  tapline study list
  tapline study list steering politeness --limit 5
  tapline study list --json | jq -r '.items[].id'`,
    )
    .action(list);

  study
    .command("get")
    .description("Show a published study, or a draft that this token saved.")
    .argument("<id>", "the study's id, a UUID", studyId)
    .option("--discussion", "show its comments instead")
    .option(
      "--version-number <n>",
      "show this version (default: the newest published one)",
      integerBetween(1, 999_999_999),
    )
    .option("--json", "print the service's response as JSON")
    .addHelpText(
      "after",
      `${environmentHelp}

Examples:
  tapline study get 12345678-1234-4234-8234-123456789abc
  tapline study get 12345678-1234-4234-8234-123456789abc --json |
    jq .package > package.json
  tapline study get 12345678-1234-4234-8234-123456789abc --discussion
  tapline study get 12345678-1234-4234-8234-123456789abc --version-number 1`,
    )
    .action(get);

  study
    .command("draft")
    .description("Save a study package as a private draft; a person reviews and publishes it on the website.")
    .argument("<file>", "the package as JSON; - reads standard input")
    .option(
      "--key <text>",
      "idempotency key: repeating it with the same package within 24 hours creates no second draft",
    )
    .option("--json", "print the service's response as JSON")
    .addHelpText(
      "after",
      `${environmentHelp}

Examples:
  tapline study draft package.json
  jq '.title = "Another title"' package.json | tapline study draft -`,
    )
    .action(draft);

  registerStudyPackage(study);
}

async function list(words: string[], { json, ...page }: ListOptions): Promise<void> {
  const { canvasOf, pageText, print, printStudyJson, run } = await modules();
  const query = words.length === 0 ? undefined : words.join(" ");
  await run(async (client, signal) => {
    const found = await client.listStudies({ query, ...page, signal });
    return json ? printStudyJson(found) : print(pageText(found, canvasOf(process.stdout)));
  });
}

async function get(id: string, options: GetOptions): Promise<void> {
  const { canvasOf, discussionText, print, printStudyJson, run, studyText } = await modules();
  if (options.discussion && options.versionNumber !== undefined)
    throw new UsageError(
      "--discussion and --version-number cannot be combined: a discussion covers all versions.",
    );
  await run(async (client, signal) => {
    if (options.discussion) {
      const first = await client.getDiscussion(id, { signal });
      const whole: Discussion = { ...first, comments: [...first.comments], next_offset: null };
      for (let next = first.next_offset; next !== null && next <= studyLimits.offset; ) {
        const page = await client.getDiscussion(id, { offset: next, signal });
        whole.comments.push(...page.comments);
        next = page.next_offset;
      }
      return options.json ? printStudyJson(whole) : print(discussionText(whole, canvasOf(process.stdout)));
    }
    const study = await client.getStudy(id, { version: options.versionNumber, signal });
    return options.json ? printStudyJson(study) : print(studyText(study, canvasOf(process.stdout)));
  });
}

async function draft(file: string, options: DraftOptions): Promise<void> {
  const { print, printStudyJson, run, safeLines } = await modules();
  const bytes = await readPackage(file);
  await run(async (client, signal) => {
    const { DraftMayExistError } = await import("../../client/index.js");
    const saved = await client
      .savePrivateDraft(bytes, { idempotencyKey: options.key, signal })
      .catch((error) => {
        if (error instanceof DraftMayExistError) error.message += ` To retry: --key ${error.idempotencyKey}`;
        throw error;
      });
    if (options.json) return printStudyJson(saved);
    return print(
      [
        `Saved as private draft ${saved.id}.`,
        ...safeLines(`Review and publish it at ${saved.review_url}`),
      ].join("\n"),
    );
  });
}

async function modules() {
  const [terminal, output, text, { printStudyJson, researchClient, safeLines }, { endBy, stoppable }] =
    await Promise.all([
      import("../../terminal/index.js"),
      import("../output.js"),
      import("./study-text.js"),
      import("./study-client.js"),
      import("../stop-signal.js"),
    ]);
  /** Runs a command with the environment's client until it is done or a signal stops it. */
  const run = async (
    command: (client: Awaited<ReturnType<typeof researchClient>>, signal: AbortSignal) => Promise<void>,
  ): Promise<void> => {
    const client = await researchClient();
    const signal = stoppable();
    try {
      await command(client, signal);
    } catch (error) {
      if (signal.aborted) return endBy(signal.reason);
      throw error;
    }
  };
  return { ...terminal, ...output, ...text, printStudyJson, run, safeLines };
}

function studyId(text: string): string {
  if (!new RegExp(uuidPattern).test(text)) throw new InvalidArgumentError("A study id must be a UUID.");
  return text;
}

/** The unmodified bytes of a package, which the service stores exactly. @throws UsageError */
async function readPackage(file: string): Promise<Buffer> {
  const { createReadStream } = await import("node:fs");
  const source = file === "-" ? process.stdin : createReadStream(file);
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of source) {
      size += (part as Buffer).length;
      if (size > studyLimits.package_bytes) {
        throw new UsageError(`The package is larger than the limit of ${studyLimits.package_bytes} bytes.`);
      }
      parts.push(part as Buffer);
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === undefined ? error : new UsageError(`Cannot read ${file} (${code}).`);
  }
  return Buffer.concat(parts);
}
