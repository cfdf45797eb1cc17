import Type, { type Static } from "typebox";
import { checkPrompts } from "../../contracts/check-examples.js";
import { checkTarget } from "../../contracts/check-target.js";
import { Excluded } from "../../contracts/excluded.js";
import { InvalidInput, missing } from "../../contracts/invalid-input.js";
import { defaults, limits } from "../../contracts/limits.js";
import { optional } from "../../contracts/optional.js";
import { notedResultFields, orNull, pointRead, targetRead } from "../../contracts/result-fields.js";
import {
  type CommonDefaults,
  closed,
  commonOfExtract,
  type Filled,
  path,
  promptOfExample,
  readPoint,
  split,
  targetPoint,
  text,
} from "../../contracts/submission-fields.js";
import type { Contract } from "../contract.js";

export const ExtractExample = Type.Object(
  {
    text: text("Raw text."),
    prompt: promptOfExample,
    label: Type.Optional(Type.Enum([0, 1], { description: "Copied to index.parquet." })),
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
      "Instead of `examples`: absolute path on the Lab's machine, or a URL (s3, gs, https or http), of a .txt file with one text per " +
        "line, of a .jsonl file whose entries are texts or objects with `text` and, optionally, `prompt`, or of a .csv file, a .parquet " +
        "file or a folder of Hugging Face `datasets` (save_to_disk) with columns of these names. URLs and the last three require " +
        "Python with tapline-lab[remote].",
    ),
    point: readPoint(),
    target: targetPoint("Also write this point, for transcoders."),
    rows: optional.Enum([...extractRows], {
      default: defaults.extract_rows,
      description:
        "Activations to write per text: every token's (all), the last token's, their mean (mean, without a BOS token), or the mean " +
        "over a response after its prompt (response), which requires both in each entry of a data file.",
    }),
    dtype: optional.Enum([...extractTypes], {
      default: defaults.extract_dtype,
      description: "Number format of the files.",
    }),
    too_long: optional.Enum(["refuse", "cut"], {
      default: defaults.too_long,
      description:
        "Handling of texts longer than max_input_tokens: refuse fails the job, cut truncates them. The result counts cut texts.",
    }),
    shard: optional.Array(Type.Integer({ minimum: 0, maximum: limits.extract_parts }), {
      minItems: 2,
      maxItems: 2,
      description:
        "[i, n]: process only the texts whose index modulo n is i, to split the work between n machines.",
    }),
    shard_tokens: optional.Integer({
      minimum: limits.shard_tokens_min,
      maximum: limits.shard_tokens,
      default: defaults.shard_tokens,
      description: "Tokens per file: the most work that can be lost if the machine fails.",
    }),
    out: path(
      "Absolute path of a folder on the Lab's machine for the files, created if its parent exists, or a URL (s3 or gs), where each " +
        "file is uploaded once it is complete. If it contains finished files of the same extraction, the job resumes after them. " +
        "Default: the files become artifacts.",
    ),
    plan: optional.Boolean({
      description: "Only count texts, tokens and bytes, without computing or writing anything.",
    }),
  },
  {
    ...closed,
    title: "ExtractSubmission",
    description: "Write the block outputs of a data set to .safetensors files.",
  },
);

export type ExtractConfig = Filled<
  Static<typeof ExtractSubmission>,
  CommonDefaults | "rows" | "dtype" | "too_long" | "shard_tokens"
>;

export const ExtractResult = Type.Object(
  {
    folder: Type.Union([Type.String(), Type.Null()], {
      description: "Folder of the files on the Lab's machine; null if they are artifacts.",
    }),
    index: Type.Union([Type.String(), Type.Null()], {
      description: "Name of the index file; null for a plan.",
    }),
    data: Type.Object({ name: Type.String(), sha256: Type.String() }),
    layers: Type.Array(Type.Integer()),
    point: pointRead,
    target: targetRead,
    hidden: Type.Integer({ description: "Values per activation." }),
    rows: Type.Enum([...extractRows]),
    dtype: Type.Enum([...extractTypes]),
    shard: Type.Array(Type.Integer(), { description: "[i, n]: the processed part of the texts." }),
    texts: Type.Integer(),
    cut_texts: Type.Integer({ description: "Number of truncated texts." }),
    tokens: Type.Integer(),
    row_count: Type.Integer({ description: "Activations per layer." }),
    bytes: Type.Integer({ description: "Total size of all files." }),
    files: Type.Integer({ description: "Number of files with activations." }),
    kept_files: Type.Integer({ description: "Number of these files that already existed." }),
    tokens_per_second: orNull("Speed of this job, including writing to disk; null if it wrote no files."),
    excluded: optional.Array(Type.Object({ layer: Type.Integer(), ...Excluded.properties }), {
      description: "For means: activations that the means in this job's files exclude.",
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
  places: { data: "path or URL", out: "path or bucket" },
  check({ examples, data, shard, rows, point, target }: ExtractConfig): void {
    checkTarget(target, point);
    if ((examples === undefined) === (data === undefined)) {
      throw missing("examples", "or data is required, but not both.");
    }
    if (examples !== undefined) checkPrompts(examples, rows);
    const [index, count] = shard ?? [0, 1];
    if (!((index as number) < (count as number))) {
      throw new InvalidInput("shard", `must be [i, n] with i from 0 to n - 1, got [${shard?.join(", ")}].`);
    }
  },
} satisfies Contract;
