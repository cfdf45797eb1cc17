import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { Operation } from "../contracts/index.js";
import { defaults, limits } from "../contracts/limits.js";
import {
  alignedPositions,
  blockPoints,
  changedPoints,
  innerPoints,
  interventions,
  type LensView,
  lensViews,
  patchDirections,
  positionNames,
  spanMarks,
  strengthUnits,
  textRows,
} from "../contracts/names.js";
import { UsageError } from "./exit-code.js";
import { anyLayers, layerList } from "./layers.js";
import { integerBetween } from "./options.js";
import { labOption, origin } from "./service-address.js";

/** What all experiments take. */
export interface CommonOptions {
  model?: string;
  revision?: string;
  layers?: number[];
  maxInputTokens?: number;
  seed?: number;
  config?: string;
  lab?: string;
  out?: string | false;
  json?: boolean;
  detach?: boolean;
  quiet?: boolean;
}

interface InspectOptions extends CommonOptions {
  target?: string;
  points?: string[];
  lens?: string;
  show?: LensView;
  decompose?: boolean;
  attention?: number[];
  heads?: number[];
  routing?: boolean;
}

interface CompareOptions extends CommonOptions {
  intervention?: string;
  strengths?: number[];
  targetToken?: string;
  prompts?: string;
  donorPrompt?: string;
  positive?: string;
  negative?: string;
  positives?: string;
  negatives?: string;
  feature?: [string, number];
  swap?: string;
  with?: string;
  lens?: string;
  strengthUnit?: string;
  positions?: string | Array<[number, number]>;
  point?: string;
  heads?: number[];
  min?: number;
  max?: number;
  controls?: boolean;
  maxTokens?: number;
}

interface ProbeOptions extends CommonOptions {
  examples?: string;
  point?: string;
  rows?: string;
}

/** `tapline inspect`, `compare`, `probe`, `features` and `patch`: one experiment in a Lab, drawn. */
export function registerExperiments(program: Command): void {
  withPrompt(experiment(program, "inspect", "Look inside one forward pass: logit lens, norms, next tokens."))
    .option(
      "--target <token>",
      "one token to follow through every cell of the lens (default: the model's answer, after the last token)",
    )
    .option(
      "--points <list>",
      `also read inside the blocks: ${innerPoints.join(", ")}`,
      pointList(innerPoints),
    )
    .option("--lens <name>", "read them through this lens, too (tapline lens)")
    .addOption(
      new Option("--show <what>", "what the cells of the lenses show (default: token)").choices([
        ...lensViews,
      ]),
    )
    .option("--attention <layers>", "what the heads of these blocks look at, as 4,6 or 4-7", layerList)
    .option("--heads <list>", "of these heads only, as 0,3 or 0-7 (default: all)", anyLayers)
    .option("--routing", "which experts these blocks chose for each token")
    .option("--decompose", "what every block adds to the logit of the target, or of the answer")
    .addHelpText(
      "after",
      examples(`
  tapline inspect "The capital of France is"
  tapline inspect "The capital of France is" --target " Tokyo"
  tapline inspect "The capital of France is" --points attn_out --decompose
  tapline inspect "The capital of France is" --lens demo --show divergence
  tapline inspect --model ./model.gguf --layers 0-7 \\
    "When Mary and John went to the store, John gave a drink to"
  echo "The capital of Japan is" | tapline inspect --json - > lens.json`),
    )
    .action(async (prompt: string | undefined, options: InspectOptions) => {
      await run("inspect", options, {
        prompt: await promptOf(prompt),
        target_token: options.target,
        points: options.points,
        lens: options.lens,
        // What is shown has to be there.
        ...(options.show !== undefined && options.lens === undefined && { measures: true }),
        attention: attentionFor(options),
        routing: options.routing,
        decompose: options.decompose,
      });
    });

  withPrompt(experiment(program, "compare", "Change a block's output and see what follows: dose-response."))
    .addOption(
      new Option(
        "--intervention <kind>",
        `what is done to the block's output (default: ${defaults.intervention})`,
      ).choices([...interventions]),
    )
    .option(
      "--strengths <list>",
      `up to ${limits.strengths} numbers from -${limits.strength} to ${limits.strength}, for steer in vectors to ${limits.strength_vector} (default: ${defaults.strengths.join(",")})`,
      numberList,
    )
    .option(
      "--target-token <text>",
      "one token to follow (default: what the model says without intervention)",
    )
    .option("--prompts <file>", "compare these prompts: a line each, JSON, JSON Lines or CSV")
    .option("--donor-prompt <text>", "for patch: the text whose activation is put in")
    .option("--positive <text>", "for steer, project_out and clamp: the direction leads here …")
    .option("--negative <text>", "… from here")
    .option(
      "--positives <file>",
      `or from up to ${limits.direction_texts} texts: their mean; a file as --prompts …`,
    )
    .option("--negatives <file>", "… and this one")
    .option("--swap <token>", "for swap: the token whose coordinate is exchanged …")
    .option("--with <token>", "… with this one's")
    .option("--lens <name>", "for swap: in this lens's directions (default: the logit lens)")
    .option("--feature <dictionary:index>", "or the decoder row of a stored dictionary's feature", featureOf)
    .addOption(
      new Option(
        "--strength-unit <unit>",
        "what a strength of 1 adds in steer: the unit vector, the difference as it is, or a row's length (default: unit)",
      ).choices([...strengthUnits]),
    )
    .option(
      "--positions <which>",
      "last, all, prompt, generated, or token indices as 0:3,-2:-1 (default: last)",
      positions,
    )
    .option(
      "--min <number>",
      "for clamp: the least projection on the direction, in the strength's unit",
      aNumber,
    )
    .option("--max <number>", "for clamp: the greatest projection", aNumber)
    .addOption(
      new Option("--point <point>", "what of the block is changed (default: block_out)").choices([
        ...changedPoints,
      ]),
    )
    .option("--heads <list>", "for --point head_out: these heads, as 0,3 (default: all)", anyLayers)
    .option("--controls", "also try a random vector of the same length")
    .option(
      "--max-tokens <number>",
      `tokens of a continuation, at most ${limits.max_tokens} (default: ${defaults.max_tokens})`,
      integerBetween(1, limits.max_tokens),
    )
    .addHelpText(
      "after",
      examples(`
  tapline compare "The capital of France is" --layers 5 --intervention patch \\
    --donor-prompt "The capital of Japan is"
  tapline compare "The capital of France is" --layers 5 --intervention steer \\
    --strength-unit vector --positives invented.txt --negatives real.txt \\
    --strengths 0,1,1.5,2 --target-token " unknown" --controls
  tapline compare --prompts prompts.txt --layers 3 --intervention ablate \\
    --strengths 0,1
  tapline compare "red blue green red blue" --layers 6 --intervention ablate \\
    --point head_out --heads 0,3 --positions all --strengths 0,1`),
    )
    .action(async (prompt: string | undefined, options: CompareOptions) => {
      const [layer, ...others] = options.layers ?? [];
      if (others.length > 0 && options.intervention !== "swap") {
        throw new UsageError(
          `--layers: compare changes one block at a time, got ${[layer, ...others].join(", ")}; run it once for each.`,
        );
      }
      const { readPrompts } = await import("./input-files.js");
      const prompts = options.prompts === undefined ? undefined : await readPrompts(options.prompts);
      await run("compare", options, {
        prompt: await promptOf(prompt),
        prompts,
        intervention: options.intervention,
        strengths: options.strengths,
        target_token: options.targetToken,
        donor_prompt: options.donorPrompt,
        positive: options.positive,
        negative: options.negative,
        positives: options.positives === undefined ? undefined : await readPrompts(options.positives),
        feature: options.feature,
        negatives: options.negatives === undefined ? undefined : await readPrompts(options.negatives),
        strength_unit: options.strengthUnit,
        positions: options.positions,
        swap: swapFor(options),
        lens: options.lens,
        point: options.point,
        heads: options.heads,
        min: options.min,
        max: options.max,
        controls: options.controls,
        max_tokens: options.maxTokens,
      });
    });

  experiment(program, "probe", "Train a linear probe: can a property be read off a block?")
    .option(
      "--examples <file>",
      "JSON, JSON Lines or CSV with text, label (0 or 1) and split (train or test); - is standard input",
    )
    .addOption(readPointOption())
    .addOption(
      new Option(
        "--rows <which>",
        "of each text the last token's, the mean, the mean behind its prompt, or every token's (default: last)",
      ).choices([...textRows]),
    )
    .addHelpText(
      "after",
      examples(`
  tapline probe --examples reviews.csv --layers 0-7
  tapline probe --examples reviews.jsonl --model ./model.gguf --layers 12 \\
    --out sentiment
  tapline probe --examples reviews.csv --layers 5 --rows all`),
    )
    .action(async (options: ProbeOptions) => {
      const { readExamples } = await import("./input-files.js");
      const examples = options.examples === undefined ? undefined : await readExamples(options.examples);
      await run("probe", options, { examples, point: options.point, rows: options.rows });
    });

  registerFeatures(program);
  registerPatch(program);
}

interface FeaturesOptions extends CommonOptions {
  dictionary?: string;
  texts?: string;
  top?: number;
  pages?: number[];
  labels?: string;
}

function registerFeatures(program: Command): void {
  withPrompt(
    experiment(program, "features", "Read a text through a sparse dictionary: which features are active?"),
  )
    .option("--dictionary <name>", "one that tapline dictionary add has kept")
    .option("--texts <file>", "read these texts: a line each, JSON, JSON Lines or CSV")
    .option(
      "--top <number>",
      `features named of each token, at most ${limits.feature_top} (default: ${defaults.feature_top})`,
      integerBetween(1, limits.feature_top),
    )
    .option(
      "--pages <list>",
      `up to ${limits.feature_pages} features as 3,17 that are looked at one by one`,
      featureList,
    )
    .option(
      "--labels <file>",
      "with --pages: Neuronpedia's export, or an address that is asked for each of them",
    )
    .addHelpText(
      "after",
      examples(`
  tapline features --dictionary mine "The capital of France is"
  tapline features --dictionary mine --texts texts.txt --pages 3,17
  tapline features --dictionary gemma --model ./gemma-2-2b-Q8_0.gguf \\
    --texts texts.txt --out read`),
    )
    .action(async (prompt: string | undefined, options: FeaturesOptions) => {
      if (options.layers !== undefined) {
        throw new UsageError("--layers: a dictionary reads one block, its own.");
      }
      const { readPrompts } = await import("./input-files.js");
      await run("features", options, {
        prompt: await promptOf(prompt),
        dictionary: options.dictionary,
        texts: options.texts === undefined ? undefined : await readPrompts(options.texts),
        top: options.top,
        pages: options.pages,
        labels: labelsPlace(options.labels),
      });
    });
}

/** A file is the Lab's to read: said from the root. */
function labelsPlace(labels: string | undefined): string | undefined {
  return labels === undefined || /^https?:\/\//.test(labels) ? labels : resolve(labels);
}

function featureList(text: string): number[] {
  const features = text.split(",").map((part) => (/^\s*\d+\s*$/.test(part) ? Number(part) : Number.NaN));
  if (features.every((feature) => feature <= limits.feature_index)) return features;
  throw new InvalidArgumentError("Write feature indices as 3,17.");
}

interface PatchOptions extends CommonOptions {
  corrupted?: string;
  points?: string[];
  heads?: number[];
  pairs?: string;
  target?: string;
  foil?: string;
  positions?: number[] | typeof alignedPositions;
  direction?: string;
  controls?: boolean;
}

function registerPatch(program: Command): void {
  experiment(program, "patch_sweep", "Patch one prompt's states into another's run: where does it happen?")
    .argument("[clean]", "raw text that is answered as it should be; - reads it from standard input")
    .option("--corrupted <text>", "as many tokens that are answered otherwise")
    .option(
      "--pairs <file>",
      `up to ${limits.patch_pairs} pairs: JSON, JSON Lines or CSV with clean and corrupted`,
    )
    .option("--target <token>", "one token (default: what the model says after the clean text)")
    .option("--foil <token>", "the one that it is measured against (default: the corrupted text's)")
    .option(
      "--points <list>",
      `what is patched of each block, of ${changedPoints.join(", ")} (default: ${defaults.patch_points.join(",")})`,
      pointList(changedPoints),
    )
    .option("--heads <list>", "of head_out: these heads, each by itself, as 0,3 (default: all)", anyLayers)
    .option(
      "--positions <list>",
      `token indices as 3,4,-1; negative from the end; or aligned: spans between ${spanMarks.join(" and ")} in both texts (default: all)`,
      patchPositions,
    )
    .addOption(
      new Option(
        "--direction <direction>",
        `denoise: clean states into the corrupted run; noise: the other way (default: ${defaults.patch_direction})`,
      ).choices([...patchDirections]),
    )
    .option("--no-controls", "no random changes beside the patches")
    .addHelpText(
      "after",
      examples(`
  tapline patch "The capital of France is" \\
    --corrupted "The capital of Japan is"
  tapline patch --pairs docs/examples/pairs.jsonl --direction noise --out noise
  tapline patch "Mary and John went out, John gave a drink to" \\
    --corrupted "Mary and John went out, Mary gave a drink to" \\
    --layers 3-7 --positions -4,-3,-2,-1 --points attn_out,ffn_out
  tapline patch "The capital of France is" \\
    --corrupted "The capital of Japan is" --points head_out
  tapline patch "The capital of [[France]] [[is]]" --positions aligned \\
    --corrupted "The capital of [[the United States]] [[is]]"`),
    )
    .action(async (clean: string | undefined, options: PatchOptions) => {
      const { readPairs } = await import("./input-files.js");
      await run("patch_sweep", options, {
        clean: await promptOf(clean),
        corrupted: options.corrupted,
        pairs: options.pairs === undefined ? undefined : await readPairs(options.pairs),
        target_token: options.target,
        foil_token: options.foil,
        points: options.points,
        heads: options.heads,
        positions: options.positions,
        direction: options.direction,
        controls: options.controls === false ? false : undefined,
      });
    });
}

/** `--point` of what reads blocks. */
export function readPointOption(): Option {
  return new Option("--point <point>", "what of the blocks is read (default: block_out)").choices([
    ...blockPoints,
  ]);
}

/** The command of an operation. */
function commandOf(operation: Operation): string {
  return operation === "patch_sweep" ? "patch" : operation;
}

/** A command that runs one operation, with the options of all. */
export function experiment(program: Command, operation: Operation, description: string): Command {
  const command = program
    .command(commandOf(operation))
    .description(description)
    .option("--model <model>", "demo, a .gguf file, a directory with one model, or a hub id (default: demo)")
    .option("--revision <revision>", "pins a hub revision");
  if (operation === "explain") {
    command.option(
      "--layer <index>",
      "the block whose output is explained",
      integerBetween(0, limits.layer_index),
    );
  } else {
    command.option(
      "--layers <list>",
      layersHelp(operation),
      operation === "patch_sweep" ? anyLayers : layerList,
    );
  }
  return command
    .option(
      "--max-input-tokens <number>",
      `tokens that a text may have, at most ${limits.max_input_tokens} (default: ${defaults.max_input_tokens})`,
      integerBetween(1, limits.max_input_tokens),
    )
    .option("--seed <number>", `experiment seed (default: ${defaults.seed})`, integerBetween(0, limits.seed))
    .option("--config <file>", "a submission or a job.json (- is standard input); flags win over its fields")
    .addOption(labOption().argParser((text) => (text === "new" ? text : origin(text))))
    .option("--out <folder>", `where artifacts go (default: tapline-${operation}-<first 8 of the id>)`)
    .option("--no-out", "write nothing")
    .option("--json", "print the whole job as JSON, for programs")
    .option("--detach", "only submit to a running Lab, and print the job's id")
    .option("--quiet", "no progress");
}

function layersHelp(name: Operation): string {
  if (name === "patch_sweep") return "blocks as 0,3,7 or 0-7 (default: all)";
  if (name === "compare") return `the block that is changed (default: ${defaults.layers.join(",")})`;
  const otherwise = name === "inspect" ? "evenly spread" : defaults.layers.join(",");
  return `up to ${limits.layers} blocks as 0,3,7 or 0-7 (default: ${otherwise})`;
}

export function withPrompt(command: Command): Command {
  return command.argument("[prompt]", "raw text, no chat template; - reads it from standard input");
}

/** Help that stands behind the options. */
export function examples(text: string): string {
  return `
Without --lab the Lab at the usual port takes the job; where none runs, one is
started for it ("--lab new" always does that) and ended.

Examples:${text}`;
}

export async function promptOf(prompt: string | undefined): Promise<string | undefined> {
  if (prompt !== "-") return prompt;
  const { readInput } = await import("./input-files.js");
  // The line's end belongs to the file, not to the text.
  return (await readInput("-")).replace(/\r?\n$/, "");
}

/** Puts a submission together, has it run, and shows what came out. */
export async function run(
  operation: Operation,
  options: CommonOptions,
  given: Record<string, unknown>,
): Promise<void> {
  const { readSubmission } = await import("./input-files.js");
  const config = options.config === undefined ? {} : await readSubmission(options.config);
  if (config.operation !== undefined && config.operation !== operation) {
    throw new UsageError(`${options.config} is a configuration of ${config.operation}, not of ${operation}.`);
  }
  const flags = {
    model: options.model,
    revision: options.revision,
    layers: options.layers,
    max_input_tokens: options.maxInputTokens,
    seed: options.seed,
    ...given,
  };
  const { operation: _operation, ...submission } = {
    model: "demo",
    ...config,
    ...Object.fromEntries(Object.entries(flags).filter(([, value]) => value !== undefined)),
  } as Record<string, unknown>;
  if (typeof submission.model === "string") submission.model = localPath(submission.model);
  if (operation === "inspect") {
    submission.layers ??= await spreadLayers(submission.model, submission.revision, options.quiet);
    submission.follow_answer = submission.target_token === undefined;
  }
  const { conduct } = await import("./conduct.js");
  await conduct(operation, submission, options);
}

/** The Lab has a folder of its own: paths are said from the root. */
export function localPath(model: string): string {
  return model !== "demo" && existsSync(model) ? resolve(model) : model;
}

/** Up to eight of the model's blocks, evenly spread. Where nobody here can count them, that is said. */
async function spreadLayers(model: unknown, revision: unknown, quiet = false): Promise<number[] | undefined> {
  if (typeof model !== "string") return undefined;
  const [{ blockCount }, findings] = await Promise.all([
    import("../models/block-count.js"),
    import("../findings/layers.js"),
  ]);
  const count = await blockCount(model, typeof revision === "string" ? { revision } : {});
  if (count !== undefined) return findings.spreadLayers(count, limits.layers);
  if (!quiet) {
    const { shown } = await import("../contracts/validate.js");
    process.stderr.write(
      `tapline: The blocks of ${shown(model)} cannot be counted from here; layer ${defaults.layers.join(", ")} is ` +
        "inspected unless --layers names others.\n",
    );
  }
  return undefined;
}

function featureOf(text: string): [dictionary: string, index: number] {
  const [, name, index] = /^(.+):(\d+)$/.exec(text) ?? [];
  if (name === undefined) throw new InvalidArgumentError("Write a dictionary and a feature as mine:12.");
  return [name, Number(index)];
}

/** A name of the contract's, or ranges as 0:3,-2:-1 and single indices. */
function positions(text: string): string | Array<[number, number]> {
  if ((positionNames as readonly string[]).includes(text)) return text;
  return text.split(",").map((part) => {
    const [, first, last] = /^\s*(-?\d+)(?::(-?\d+))?\s*$/.exec(part) ?? [];
    if (first === undefined)
      throw new InvalidArgumentError(`Write ${positionNames.join(", ")}, or ranges as 0:3,-2:-1.`);
    return [Number(first), Number(last ?? first)];
  });
}

function swapFor({ swap, with: other }: CompareOptions): string[] | undefined {
  if (swap === undefined && other === undefined) return undefined;
  if (swap === undefined || other === undefined) throw new UsageError("--swap and --with go together.");
  return [swap, other];
}

function attentionFor({ attention, heads }: InspectOptions): object | undefined {
  if (attention === undefined) {
    if (heads !== undefined) throw new UsageError("--heads: chooses of what --attention keeps.");
    return undefined;
  }
  return { layers: attention, ...(heads === undefined ? {} : { heads }) };
}

/** Reads names of points of a block. */
function pointList(known: readonly string[]): (text: string) => string[] {
  return (text) => {
    const names = text.split(",").map((part) => part.trim());
    const odd = names.find((name) => !known.includes(name));
    if (odd !== undefined) throw new InvalidArgumentError(`“${odd}” is none of ${known.join(", ")}.`);
    if (new Set(names).size !== names.length) throw new InvalidArgumentError("A point appears twice.");
    return names;
  };
}

function patchPositions(text: string): number[] | typeof alignedPositions {
  return text === alignedPositions ? text : indexList(text);
}

export function indexList(text: string): number[] {
  return text.split(",").map((part) => {
    if (!/^\s*-?\d+\s*$/.test(part)) throw new InvalidArgumentError("Write token indices as 3,4,-1.");
    return Number(part);
  });
}

export function aNumber(text: string): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (!Number.isFinite(value)) throw new InvalidArgumentError("Write a number.");
  return value;
}

function numberList(text: string): number[] {
  const numbers = text.split(",").map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  if (numbers.some((number) => !Number.isFinite(number))) {
    throw new InvalidArgumentError("Write numbers as 0,0.5,1.");
  }
  return numbers;
}
