import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Operation } from "../contracts/index.js";
import { defaults, limits } from "../contracts/limits.js";
import { blockPoints, targetPoints } from "../contracts/names.js";
import type { ConductOptions } from "./conduct.js";
import { UsageError } from "./exit-code.js";
import { integerBetween, layerList, numbersThat } from "./options.js";
import { ofSubmit, type PartOptions } from "./part-options.js";
import { labOption, origin } from "./service-address.js";
import type { SubmitOptions } from "./submit.js";

/** Options of all experiments. */
export interface CommonOptions extends ConductOptions {
  model?: string;
  revision?: string;
  layers?: number[];
  maxInputTokens?: number;
  seed?: number;
  config?: string;
}

/** `--point` of operations that read activations. */
export function readPointOption(): Option {
  return new Option("--point <point>", "hook point to read (default: block_out)").choices([...blockPoints]);
}

/** The option of a transcoder's target. */
export function targetOption(help: string): Option {
  return new Option("--target <point>", help).choices([...targetPoints]);
}

/** A command's option for blocks: flags, help and parser. */
type LayersOption = [flags: string, help: string, read: (text: string) => unknown];

/** `--layers` of operations that take up to eight blocks. */
export function layersOption(otherwise = defaults.layers.join(",")): LayersOption {
  return [
    "--layers <list>",
    `up to ${limits.layers} blocks, such as 0,3,7 or 0-7 (default: ${otherwise})`,
    layerList,
  ];
}

/** The command of each operation, for the names of its options. */
const commands = new Map<Operation, Command>();

/** A command that runs one operation, with the options of all operations. */
export function experiment(
  program: Command,
  operation: Operation,
  description: string,
  layers = layersOption(),
  name: string = operation,
): Command {
  const command = program.command(name);
  commands.set(operation, command);
  return command
    .description(description)
    .option("--model <model>", "demo, a .gguf file, a directory with one model, or a hub id (default: demo)")
    .option("--revision <revision>", "pin a hub revision")
    .option(...layers)
    .option(
      "--max-input-tokens <number>",
      `maximum length of a text in tokens, at most ${limits.max_input_tokens} (default: ${defaults.max_input_tokens})`,
      integerBetween(1, limits.max_input_tokens),
    )
    .option("--seed <number>", `experiment seed (default: ${defaults.seed})`, integerBetween(0, limits.seed))
    .option(
      "--config <file>",
      "file with a submission or a job.json (- for standard input); options override its fields",
    )
    .addOption(labOption().argParser((text) => (text === "new" ? text : origin(text))))
    .option(
      "--out <folder>",
      `output folder for artifacts (default: tapline-${operation}-<first 8 of the id>)`,
    )
    .option("--no-out", "do not download artifacts")
    .option("--json", "print the whole job as JSON")
    .option("--detach", "submit to a running Lab, print the job's id and exit")
    .option("--quiet", "hide progress");
}

export function withPrompt(command: Command): Command {
  return command.argument("[prompt]", "raw text without a chat template; - reads standard input");
}

/** Help after the options. */
export function examples(text: string): string {
  return `
Runs in the Lab at the default port, or in a temporary Lab if none is running
or with "--lab new".

Examples:${text}`;
}

export async function promptOf(prompt: string | undefined): Promise<string | undefined> {
  if (prompt !== "-") return prompt;
  const { readInput } = await import("./input-files.js");
  // The final line break belongs to the file, not to the text.
  return (await readInput("-")).replace(/\r?\n$/, "");
}

/** The parsed content of an option's file. */
export async function contentOf(
  path: string | undefined,
  read: "readPrompts" | "readExamples" | "readPairs" | "readInput",
): Promise<unknown> {
  return path === undefined ? undefined : (await import("./input-files.js"))[read](path);
}

/**
 * Assembles a submission, runs it, and prints the result. Each option is the field of the same name, with underscores.
 * @param given fields that replace options; undefined removes the option's field
 * @param complete fills in fields that depend on others
 */
export async function run(
  operation: Operation,
  options: CommonOptions,
  given: Record<string, unknown>,
  complete?: (submission: Record<string, unknown>) => Promise<void>,
): Promise<void> {
  try {
    const { shard, submit } = options as PartOptions;
    if (operation !== "extract" && (shard !== undefined || submit !== undefined)) {
      return await runInParts(operation, options, given, complete);
    }
    const submission = await submissionOf(operation, options, given, complete);
    await (await import("./conduct.js")).conduct(operation, submission, options);
  } catch (error) {
    throw inOptions(error, commands.get(operation));
  }
}

/** A refusal because of a missing field names the option or argument instead. */
function inOptions(error: unknown, command: Command | undefined): unknown {
  const { name = "", message = "" } = error instanceof Error ? error : {};
  if (name !== "InvalidInput" || !/ (is|are) required\b/.test(message)) return error;
  const written = (word: string) =>
    command?.options.find((option) => fieldOf(option.attributeName()) === word)?.long ??
    (command?.registeredArguments.some((argument) => argument.name() === word) ? `<${word}>` : word);
  return new UsageError(message.replace(/(?<!for )\b[a-z_]+\b(?!\[)/g, written));
}

/** The field of an option, by the name that commander gives it. */
function fieldOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** One part of an experiment, or all of them on an engine. */
async function runInParts(
  operation: Operation,
  options: CommonOptions & PartOptions,
  given: Record<string, unknown>,
  complete?: (submission: Record<string, unknown>) => Promise<void>,
): Promise<void> {
  const { shard, submit, out } = options;
  if (shard !== undefined && submit !== undefined) {
    throw new UsageError("--submit and --shard cannot be combined: --parts says how many there are.");
  }
  const rest = Object.fromEntries(
    Object.entries(options).filter(([name]) => name !== "shard" && !ofSubmit.includes(name as never)),
  );
  const submission = await submissionOf(operation, rest, given, complete);
  if (shard !== undefined) {
    return (await import("./compute-part.js")).computePart(operation, submission, shard, options);
  }
  if (typeof out !== "string") {
    throw new UsageError("--submit requires --out, a folder that all machines see.");
  }
  await (await import("./submit.js")).submit(operation, submission, out, options as SubmitOptions);
}

/** The submission of options and a configuration file, without its operation. */
export async function submissionOf(
  operation: Operation,
  options: CommonOptions,
  given: Record<string, unknown>,
  complete?: (submission: Record<string, unknown>) => Promise<void>,
): Promise<Record<string, unknown>> {
  const { readSubmission } = await import("./input-files.js");
  const config = options.config === undefined ? {} : await readSubmission(options.config);
  if (config.operation !== undefined && config.operation !== operation) {
    throw new UsageError(`${options.config} is a submission of ${config.operation}, not of ${operation}.`);
  }
  const flags = {
    ...Object.fromEntries(
      Object.entries(options).flatMap(([name, value]) => (own.has(name) ? [] : [[fieldOf(name), value]])),
    ),
    ...given,
  };
  const { operation: _operation, ...submission } = {
    model: "demo",
    ...config,
    ...Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined)),
  } as Record<string, unknown>;
  if (typeof submission.model === "string") submission.model = localPath(submission.model);
  await complete?.(submission);
  return submission;
}

/** The Lab has a different working directory, so paths must be absolute. */
export function localPath(model: string): string {
  return model !== "demo" && existsSync(model) ? resolve(model) : model;
}

/** Options of the command itself, which are not fields of a submission. */
const own = new Set(["config", "lab", "out", "json", "detach", "quiet", "show"]);

/** A parser of hook point names. */
export function pointList(known: readonly string[]): (text: string) => string[] {
  return (text) => {
    const names = text.split(",").map((part) => part.trim());
    const odd = names.find((name) => !known.includes(name));
    if (odd !== undefined) throw new InvalidArgumentError(`“${odd}” is not one of ${known.join(", ")}.`);
    if (new Set(names).size !== names.length) throw new InvalidArgumentError("A hook point occurs twice.");
    return names;
  };
}

export const indexList = numbersThat(Number.isInteger, "Write token indices such as 3,4,-1.");

export function aNumber(text: string): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (!Number.isFinite(value)) throw new InvalidArgumentError("Write a number.");
  return value;
}
