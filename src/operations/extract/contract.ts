import Type, { type Static } from "typebox";
import { checkPrompts } from "../../contracts/check-examples.js";
import { Excluded } from "../../contracts/excluded.js";
import { InvalidInput } from "../../contracts/invalid-input.js";
import { defaults, limits } from "../../contracts/limits.js";
import { optional } from "../../contracts/optional.js";
import { notedResultFields, orNull, pointRead } from "../../contracts/result-fields.js";
import {
  type CommonDefaults,
  closed,
  commonOfExtract,
  type Filled,
  path,
  promptOfExample,
  readPoint,
  split,
  text,
} from "../../contracts/submission-fields.js";
import type { Contract } from "../contract.js";

export const ExtractExample = Type.Object(
  {
    text: text("Raw text."),
    prompt: promptOfExample,
    label: Type.Optional(Type.Enum([0, 1], { description: "Not used." })),
    split: Type.Optional(split),
  },
  { ...closed, title: "ExtractExample" },
);

export const extractRows = ["all", "last", "mean", "response"] as const;

export const extractTypes = ["f32", "f16", "bf16"] as const;

export const ExtractSubmission = Type.Object(
  {
    operation: Type.Literal("extract"),
    ...commonOfExtract,
    examples: Type.Optional(Type.Array(ExtractExample, { minItems: 1, maxItems: limits.examples })),
    data: path(
      "In place of `examples`: a file on the Lab's machine, from the root: .txt, a text a line, or .jsonl, whose " +
        "entries are texts or have a `text` or a `prompt`.",
    ),
    point: readPoint(),
    rows: optional.Enum([...extractRows], {
      default: defaults.extract_rows,
      description:
        "Every token's block output, the last token's of each text, their mean, which leaves a BOS token out, or the mean of a " +
        "response behind its prompt; a data file's entries then have both.",
    }),
    dtype: optional.Enum([...extractTypes], {
      default: defaults.extract_dtype,
      description: "Numbers in the files.",
    }),
    too_long: optional.Enum(["refuse", "cut"], {
      default: defaults.too_long,
      description:
        "What happens to a text of more than max_input_tokens; the result counts those that are cut.",
    }),
    shard: optional.Array(Type.Integer({ minimum: 0, maximum: limits.extract_parts }), {
      minItems: 2,
      maxItems: 2,
      description:
        "[i, n]: of n machines this is number i, from 0; it takes the texts whose index leaves i when divided by n.",
    }),
    shard_tokens: optional.Integer({
      minimum: limits.shard_tokens_min,
      maximum: limits.shard_tokens,
      default: defaults.shard_tokens,
      description: "Tokens of a file: what is lost when the machine fails.",
    }),
    out: path(
      "A folder on the Lab's machine, from the root, that the files are written into (made where the folder above is " +
        "there); where it holds finished files " +
        "of the same extraction, the job goes on behind them. Otherwise they are artifacts.",
    ),
    plan: optional.Boolean({
      description: "Only count texts, tokens and bytes: nothing is computed or written.",
    }),
  },
  {
    ...closed,
    title: "ExtractSubmission",
    description: "Write the block outputs of a data set to disk, in .safetensors files.",
  },
);

export type ExtractConfig = Filled<
  Static<typeof ExtractSubmission>,
  CommonDefaults | "rows" | "dtype" | "too_long" | "shard_tokens"
>;

export const ExtractResult = Type.Object(
  {
    folder: Type.Union([Type.String(), Type.Null()], {
      description: "Where the files are, on the Lab's machine; null where they are artifacts.",
    }),
    index: Type.Union([Type.String(), Type.Null()], {
      description: "Name of the file that lists the others; null where only a plan was asked for.",
    }),
    data: Type.Object({ name: Type.String(), sha256: Type.String() }),
    layers: Type.Array(Type.Integer()),
    point: pointRead,
    hidden: Type.Integer({ description: "Numbers in a row." }),
    rows: Type.Enum([...extractRows]),
    dtype: Type.Enum([...extractTypes]),
    shard: Type.Array(Type.Integer(), { description: "[i, n]: the part of the texts that this is." }),
    texts: Type.Integer(),
    cut_texts: Type.Integer({ description: "Texts whose end was left out." }),
    tokens: Type.Integer(),
    row_count: Type.Integer({ description: "Rows of each layer." }),
    bytes: Type.Integer({ description: "Of all files." }),
    files: Type.Integer({ description: "Files of rows." }),
    kept_files: Type.Integer({ description: "Those of them that were there already." }),
    tokens_per_second: orNull("Of the files that this job made, the disk included; null where it made none."),
    excluded: optional.Array(Type.Object({ layer: Type.Integer(), ...Excluded.properties }), {
      description: "For means: activations that those of this job's files leave out.",
    }),
    ...notedResultFields,
  },
  { title: "ExtractResult" },
);
export type ExtractResult = Static<typeof ExtractResult>;

export default {
  submission: ExtractSubmission,
  result: ExtractResult,
  forAgents: "(examples or data, out)",
  places: { data: "path", out: "path" },
  check({ examples, data, shard, rows }: ExtractConfig): void {
    if ((examples === undefined) === (data === undefined)) {
      throw new InvalidInput("examples", "give either examples or data.");
    }
    if (examples !== undefined) checkPrompts(examples, rows);
    const [index, count] = shard ?? [0, 1];
    if (!((index as number) < (count as number))) {
      throw new InvalidInput("shard", `is [i, n] with i from 0 to n - 1, got [${shard?.join(", ")}].`);
    }
  },
} satisfies Contract;
