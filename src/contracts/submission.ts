import Type, { type Static } from "typebox";
import { bytesText } from "./bytes-text.js";
import { defaults, limits } from "./limits.js";
import { Name } from "./live.js";
import {
  alignedPositions,
  blockPoints,
  changedPoints,
  innerPoints,
  interventions,
  patchDirections,
  positionNames,
  saeArchitectures,
  spanMarks,
  strengthUnits,
  textRows,
} from "./names.js";

export const operations = [
  "inspect",
  "compare",
  "probe",
  "sae",
  "features",
  "extract",
  "drift",
  "patch_sweep",
  "explain",
] as const;
export type Operation = (typeof operations)[number];

export { interventions, patchDirections, positionNames, saeArchitectures, strengthUnits, textRows };

const text = (description: string) => Type.String({ minLength: 1, description });

const prompt = text("Raw text; no chat template is applied.");

/** Fields that every submission accepts. */
const common = {
  model: Type.String({
    minLength: 1,
    maxLength: limits.model_characters,
    description: "A .gguf file, a directory that holds one model, a hub id, or `demo`, the embedded model.",
  }),
  revision: Type.Optional(Type.String({ minLength: 1, maxLength: 255, description: "Pins a hub revision." })),
  layers: Type.Optional(
    Type.Array(Type.Integer({ minimum: 0, maximum: limits.layer_index }), {
      minItems: 1,
      maxItems: limits.layers,
      uniqueItems: true,
      default: [...defaults.layers],
      description: "Zero-based block indices; each must exist in the model.",
    }),
  ),
  max_input_tokens: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.max_input_tokens,
      default: defaults.max_input_tokens,
      description: "Input token limit of each text. A longer text fails the job; nothing is truncated.",
    }),
  ),
  max_tokens: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: limits.max_tokens,
      default: defaults.max_tokens,
      description: "Greedy continuation budget of comparisons; the other operations generate nothing.",
    }),
  ),
  seed: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: limits.seed,
      default: defaults.seed,
      description: "Experiment seed.",
    }),
  ),
};

const named = (description: string) => Type.Optional({ ...Name, description });

const closed = { additionalProperties: false };

/** What of a block's rows is read. */
const readPoint = (more = "") =>
  Type.Optional(
    Type.Enum([...blockPoints], {
      description:
        "What of each block is read: its output (block_out, the default), what its attention or its MLP adds (attn_out, " +
        `ffn_out), or the stream before them (block_in, mid). A model that has it not is refused.${more}`,
    }),
  );

export const InspectSubmission = Type.Object(
  {
    operation: Type.Literal("inspect"),
    ...common,
    prompt,
    target_token: Type.Optional(
      text(
        "Text that encodes to exactly one token, without special tokens: the lens tells its probability and rank at " +
          "every token.",
      ),
    ),
    follow_answer: Type.Optional(
      Type.Boolean({
        description: "In its place: probability and rank of the model's own answer after the last token.",
      }),
    ),
    lens: named(
      "A lens that is kept by name (tapline lens): read each of the layers through it, too, before the model's own final norm " +
        "and head.",
    ),
    measures: Type.Optional(
      Type.Boolean({
        description:
          "Also the entropy of what is read at each token, and how far the model's output is from it (KL), both in nats. " +
          "With a lens unless told otherwise.",
      }),
    ),
    points: Type.Optional(
      Type.Array(Type.Enum([...innerPoints]), {
        minItems: 1,
        maxItems: innerPoints.length,
        uniqueItems: true,
        description:
          "Points of each of the layers beside its output: block_in, the residual stream before it; attn_out, what " +
          "attention adds; mid, the stream then; ffn_out, what the MLP or the experts add. A model that has one of them " +
          "not is refused.",
      }),
    ),
    attention: Type.Optional(
      Type.Object(
        {
          layers: Type.Optional(
            Type.Array(Type.Integer({ minimum: 0, maximum: limits.layer_index }), {
              minItems: 1,
              maxItems: limits.layers,
              uniqueItems: true,
              description: "Blocks whose attention is kept; otherwise the submission's layers.",
            }),
          ),
          heads: Type.Optional(
            Type.Array(Type.Integer({ minimum: 0, maximum: limits.attention_heads - 1 }), {
              minItems: 1,
              maxItems: limits.attention_heads,
              uniqueItems: true,
              description: "Of each of them; otherwise all.",
            }),
          ),
        },
        {
          ...closed,
          description:
            "How much each token reads of each, after the softmax, as attention.npz, [heads, tokens, tokens] a layer, with " +
            "what each head read; and what each head looks at, as figures.",
        },
      ),
    ),
    routing: Type.Optional(
      Type.Boolean({
        description:
          "Of models with experts: also which experts each of the layers chose for each token, and their weights, as " +
          "routing.npz. A model or a layer without a router that can be read is refused.",
      }),
    ),
    decompose: Type.Optional(
      Type.Boolean({
        description:
          "Also the direct contribution of every block's attention and MLP to one logit after the last token: the " +
          "target's, or that of the model's answer.",
      }),
    ),
  },
  { ...closed, title: "InspectSubmission", description: "Look inside one forward pass over a prompt." },
);

const directionTexts = (description: string) =>
  Type.Optional(
    Type.Array(text("Raw text."), { minItems: 1, maxItems: limits.direction_texts, description }),
  );

const bound = (description: string) =>
  Type.Optional(Type.Number({ minimum: -limits.projection, maximum: limits.projection, description }));

export const CompareSubmission = Type.Object(
  {
    operation: Type.Literal("compare"),
    ...common,
    prompt: Type.Optional(prompt),
    intervention: Type.Optional(
      Type.Enum([...interventions], {
        default: defaults.intervention,
        description:
          "How a row h of the block output changes at strength s on every forward pass: scale s*h; ablate " +
          "(1-s)*h; patch (1-s)*h + s*donor; steer h + s*u; project_out h - s*(h.u)u; clamp " +
          "h + s*(clip(h.u, min, max) - h.u)u, or with a feature of activation f and decoder row d h + s*(clip(f, min, max) - f)d; swap moves h to where two tokens' " +
          "coordinates are exchanged. u is the unit direction of positive against negative.",
      }),
    ),
    strengths: Type.Optional(
      Type.Array(Type.Number({ minimum: -limits.strength_vector, maximum: limits.strength_vector }), {
        minItems: 1,
        maxItems: limits.strengths,
        default: [...defaults.strengths],
        description:
          `Neutral: 1 for scale, 0 for all others. From -${limits.strength} to ${limits.strength}; for steer in the ` +
          `unit vector to ±${limits.strength_vector}, in row_norm to ±${limits.strength_row_norm}; for clamp from 0 to 1, by default ` +
          `${defaults.clamp_strengths.join(", ")}.`,
      }),
    ),
    strength_unit: Type.Optional(
      Type.Enum([...strengthUnits], {
        description:
          "What a strength of 1 adds in steer: the unit vector (default), the difference as it is (vector), or as " +
          "much as the row is long (row_norm), which means the same in every model. Also the unit of min and max.",
      }),
    ),
    positions: Type.Optional(
      Type.Union(
        [
          Type.Enum([...positionNames]),
          Type.Array(
            Type.Array(Type.Integer({ minimum: -limits.token_index, maximum: limits.token_index }), {
              minItems: 2,
              maxItems: 2,
            }),
            { minItems: 1, maxItems: limits.position_ranges },
          ),
        ],
        {
          description:
            "Tokens whose rows are changed: the last one of each forward pass, which is the prompt's last token and " +
            "every generated one (last, the default), all, prompt, generated, or ranges [first, last] of token " +
            "indices, both included, negative from the end of the prompt.",
        },
      ),
    ),
    target_token: Type.Optional(
      text(
        "Text that encodes to exactly one token, without special tokens; otherwise the baseline's top token.",
      ),
    ),
    prompts: Type.Optional(
      Type.Array(prompt, {
        minItems: 1,
        maxItems: limits.prompts,
        description: "Prompts to compare; without them the list is [`prompt`]. One of the two is required.",
      }),
    ),
    donor_prompt: Type.Optional(text("Donor text; required for patch.")),
    positive: Type.Optional(
      text("With `negative`, for steer, project_out and clamp: u is their unit difference."),
    ),
    negative: Type.Optional(text("With `positive`, for steer, project_out and clamp.")),
    positives: directionTexts("In place of `positive` and `negative`: u is the unit difference of means."),
    negatives: directionTexts("With `positives`."),
    feature: Type.Optional(
      Type.Array(Type.Union([Name, Type.Integer({ minimum: 0, maximum: limits.feature_index })]), {
        minItems: 2,
        maxItems: 2,
        description:
          "[dictionary, index]: a stored dictionary and one of its features, in place of texts: the direction is that " +
          "feature's decoder row.",
      }),
    ),
    swap: Type.Optional(
      Type.Array(text("Text that encodes to exactly one token."), {
        minItems: 2,
        maxItems: 2,
        description:
          "For swap: two tokens whose coordinates in the lens's directions are exchanged, at every one of the layers, with " +
          "the values that the prompt's own run has there; at strength s the row goes s of the way.",
      }),
    ),
    lens: named("For swap: the stored lens whose directions they are; otherwise the logit lens."),
    min: bound("For clamp: the least projection on u, in strength_unit; the least activation of a feature."),
    max: bound("For clamp: the greatest projection on u, or a feature's greatest activation."),
    point: Type.Optional(
      Type.Enum([...changedPoints], {
        description:
          "What of the block is changed: its output (block_out, the default), what its attention or its MLP adds (attn_out, " +
          "ffn_out), the stream before them (block_in, mid), or what its heads read (head_out, for scale, ablate and patch).",
      }),
    ),
    heads: Type.Optional(
      Type.Array(Type.Integer({ minimum: 0, maximum: limits.attention_heads - 1 }), {
        minItems: 1,
        maxItems: limits.attention_heads,
        uniqueItems: true,
        description: "Of head_out, the heads that are changed, together; otherwise all.",
      }),
    ),
    controls: Type.Optional(
      Type.Boolean({
        description:
          "Also tries a random vector of the same length, drawn from `seed`, at every strength; for patch, steer, " +
          "project_out and clamp.",
      }),
    ),
  },
  {
    ...closed,
    title: "CompareSubmission",
    description: "Compare the model with and without an intervention at the first selected layer.",
  },
);

const split = Type.Enum(["train", "test"], { description: "Which side of the held-out split." });

const promptOfExample = Type.Optional(
  text(
    "For rows `response`: raw text that `text` follows as it stands; the row is of what `text` adds to it.",
  ),
);

/** Rows that are one a text. */
const rowsOfText = {
  last: "the last token's row",
  mean: "the mean of its tokens' rows, which leaves a BOS token out",
  response: "the mean over the tokens of its text behind its prompt",
} as const;
const rowsText = `Of each example ${rowsOfText.last} (last, the default), ${rowsOfText.mean} (mean), or ${rowsOfText.response} (response)`;

export const ProbeExample = Type.Object(
  {
    text: text("Raw text."),
    prompt: promptOfExample,
    label: Type.Enum([0, 1], { description: "Class." }),
    split,
  },
  { ...closed, title: "ProbeExample" },
);

export const SaeExample = Type.Object(
  {
    text: text("Raw text."),
    prompt: promptOfExample,
    label: Type.Optional(Type.Enum([0, 1], { description: "Not used." })),
    split,
  },
  { ...closed, title: "SaeExample" },
);

const manyExamples = { minItems: limits.examples_min, maxItems: limits.examples };

export const ProbeSubmission = Type.Object(
  {
    operation: Type.Literal("probe"),
    ...common,
    examples: Type.Array(ProbeExample, {
      ...manyExamples,
      description:
        `At least ${limits.examples_per_split_min} in each split, both classes in each split, ` +
        "no text in both splits.",
    }),
    point: readPoint(),
    rows: Type.Optional(
      Type.Enum([...textRows], {
        description:
          `${rowsText}, or every token's (all), each with its text's label: at most ${limits.probe_rows} rows, and ` +
          `${bytesText(limits.probe_bytes)} of them over all layers. Figures are of texts, by the mean of their rows' scores, ` +
          "and of rows beside them.",
      }),
    ),
  },
  {
    ...closed,
    title: "ProbeSubmission",
    description:
      "Train a linear probe on final-token block outputs, or on other rows or another point of blocks.",
  },
);

const path = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: limits.path_characters, description }));

const share = (description: string) => Type.Optional(Type.Number({ minimum: 0, maximum: 1, description }));

export const SaeSubmission = Type.Object(
  {
    operation: Type.Literal("sae"),
    ...common,
    examples: Type.Optional(
      Type.Array(SaeExample, {
        ...manyExamples,
        description: `At least ${limits.examples_per_split_min} in each split, no text in both splits.`,
      }),
    ),
    from: path(
      "In place of `examples`: a folder on the Lab's machine, from the root, that an extraction was written into. Texts " +
        "are held out by their content.",
    ),
    point: readPoint(" An extraction has its own."),
    architecture: Type.Optional(
      Type.Enum([...saeArchitectures], {
        description:
          "relu (the default) with an L1 penalty; topk keeps the k most active features of a row; batchtopk those of a " +
          "batch, then a threshold; jumprelu learns a threshold for each feature.",
      }),
    ),
    rows: Type.Optional(
      Type.Enum([...textRows], {
        description: `${rowsText}, or every token's (all). An extraction has its own.`,
      }),
    ),
    k: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.dictionary_features,
        description: "For topk and batchtopk: features that stay active in a row.",
      }),
    ),
    batch: Type.Optional(
      Type.Integer({ minimum: 1, maximum: limits.sae_batch, description: "Rows of an optimiser step." }),
    ),
    learning_rate: Type.Optional(
      Type.Number({ exclusiveMinimum: 0, maximum: 1, description: "Adam's, after it has risen." }),
    ),
    warmup: share("Share of the steps over which the learning rate rises from 0."),
    decay: share("Share of the steps over which it falls to 0, at the end."),
    sparsity: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: limits.sae_sparsity,
        description:
          "For relu and jumprelu: weight of the penalty, of the L1 term or of each active feature of a row.",
      }),
    ),
    features: Type.Optional(
      Type.Integer({
        minimum: limits.features_min,
        maximum: limits.features,
        default: defaults.features,
        description: "Features of the autoencoder.",
      }),
    ),
    steps: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.steps,
        default: defaults.steps,
        description: "Optimiser steps.",
      }),
    ),
  },
  {
    ...closed,
    title: "SaeSubmission",
    description: "Train a small sparse autoencoder on block outputs.",
  },
);

const { max_tokens: _maxTokens, ...commonOfExtract } = common;
const { layers: _layers, ...commonOfFeatures } = commonOfExtract;

export const FeaturesSubmission = Type.Object(
  {
    operation: Type.Literal("features"),
    ...commonOfFeatures,
    dictionary: Name,
    prompt: Type.Optional(prompt),
    texts: Type.Optional(
      Type.Array(text("Raw text."), {
        minItems: 1,
        maxItems: limits.feature_texts,
        description: "Texts to read in place of `prompt`.",
      }),
    ),
    top: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.feature_top,
        default: defaults.feature_top,
        description: "Features that the result names of each token; the artifact has all.",
      }),
    ),
    pages: Type.Optional(
      Type.Array(Type.Integer({ minimum: 0, maximum: limits.feature_index }), {
        minItems: 1,
        maxItems: limits.feature_pages,
        uniqueItems: true,
        description:
          "Features that are looked at one by one: where they are active, what their decoder rows raise and lower, and " +
          "their neighbours.",
      }),
    ),
    labels: path(
      "With `pages`: what others call features. A file on the Lab's machine, from the root, of Neuronpedia's export; or an " +
        "address that a feature's index is put behind, which is then asked.",
    ),
  },
  {
    ...closed,
    title: "FeaturesSubmission",
    description: "Read texts through a stored sparse dictionary, and see how well it fits them.",
  },
);

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
    rows: Type.Optional(
      Type.Enum([...extractRows], {
        default: defaults.extract_rows,
        description:
          "Every token's block output, the last token's of each text, their mean, which leaves a BOS token out, or the mean of a " +
          "response behind its prompt; a data file's entries then have both.",
      }),
    ),
    dtype: Type.Optional(
      Type.Enum([...extractTypes], { default: defaults.extract_dtype, description: "Numbers in the files." }),
    ),
    too_long: Type.Optional(
      Type.Enum(["refuse", "cut"], {
        default: defaults.too_long,
        description:
          "What happens to a text of more than max_input_tokens; the result counts those that are cut.",
      }),
    ),
    shard: Type.Optional(
      Type.Array(Type.Integer({ minimum: 0, maximum: limits.extract_parts }), {
        minItems: 2,
        maxItems: 2,
        description:
          "[i, n]: of n machines this is number i, from 0; it takes the texts whose index leaves i when divided by n.",
      }),
    ),
    shard_tokens: Type.Optional(
      Type.Integer({
        minimum: limits.shard_tokens_min,
        maximum: limits.shard_tokens,
        default: defaults.shard_tokens,
        description: "Tokens of a file: what is lost when the machine fails.",
      }),
    ),
    out: path(
      "A folder on the Lab's machine, from the root, that the files are written into (made where the folder above is " +
        "there); where it holds finished files " +
        "of the same extraction, the job goes on behind them. Otherwise they are artifacts.",
    ),
    plan: Type.Optional(
      Type.Boolean({ description: "Only count texts, tokens and bytes: nothing is computed or written." }),
    ),
  },
  {
    ...closed,
    title: "ExtractSubmission",
    description: "Write the block outputs of a data set to disk, in .safetensors files.",
  },
);

export const DriftExample = Type.Object(
  {
    text: text("Raw text."),
    label: Type.Optional(Type.Enum([0, 1], { description: "Class; needed for a probe or a vector." })),
    split: Type.Optional(split),
  },
  { ...closed, title: "DriftExample" },
);

export const DriftSubmission = Type.Object(
  {
    operation: Type.Literal("drift"),
    ...commonOfExtract,
    other: Type.String({
      minLength: 1,
      maxLength: limits.model_characters,
      description:
        "The model that is compared with `model`, named as that is: of one architecture and shape.",
    }),
    other_revision: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: "Pins a hub revision of `other`." }),
    ),
    examples: Type.Array(DriftExample, { minItems: limits.drift_examples_min, maxItems: limits.examples }),
    dictionary: named("A stored dictionary: which features stay active, and what it recovers in each model."),
    probe: named("A stored probe: how well it tells the examples' labels in each model."),
    vector: named("A stored vector: how well its projections tell the labels in each model."),
  },
  {
    ...closed,
    title: "DriftSubmission",
    description:
      "What changes between two models of one architecture, such as a model and its quantised form.",
  },
);

const foilOrTarget = (what: string) =>
  Type.Optional(text(`Text that encodes to exactly one token, without special tokens; otherwise ${what}`));
const target_token = foilOrTarget("the clean run's most probable token.");
const foil_token = foilOrTarget("the corrupted run's.");
const clean = text("Raw text that is answered as it should be.");
const corrupted = text("Raw text of as many tokens, unless spans are marked, that is answered otherwise.");

export const PromptPair = Type.Object(
  { clean, corrupted, target_token, foil_token },
  { ...closed, title: "PromptPair" },
);
export type PromptPair = Static<typeof PromptPair>;

export const PatchSweepSubmission = Type.Object(
  {
    operation: Type.Literal("patch_sweep"),
    ...commonOfFeatures,
    clean: Type.Optional(clean),
    corrupted: Type.Optional(corrupted),
    pairs: Type.Optional(
      Type.Array(PromptPair, {
        minItems: 1,
        maxItems: limits.patch_pairs,
        description:
          "Pairs in place of `clean` and `corrupted`: figures are means over them, with intervals.",
      }),
    ),
    target_token,
    foil_token,
    layers: Type.Optional(
      Type.Array(Type.Integer({ minimum: 0, maximum: limits.layer_index }), {
        minItems: 1,
        maxItems: limits.layer_index + 1,
        uniqueItems: true,
        description: "Zero-based block indices, any number of them; otherwise all blocks.",
      }),
    ),
    points: Type.Optional(
      Type.Array(Type.Enum([...changedPoints]), {
        minItems: 1,
        maxItems: changedPoints.length,
        uniqueItems: true,
        default: [...defaults.patch_points],
        description:
          "What is put in of each layer: block_out, its output; attn_out and ffn_out, what its attention and its MLP add to " +
          "the residual stream; block_in and mid, the stream before them; head_out, what each head read, head by head. A " +
          "model that has one of them not is refused.",
      }),
    ),
    heads: Type.Optional(
      Type.Array(Type.Integer({ minimum: 0, maximum: limits.attention_heads - 1 }), {
        minItems: 1,
        maxItems: limits.attention_heads,
        uniqueItems: true,
        description: "Of head_out, the heads that are patched, each by itself; otherwise all.",
      }),
    ),
    positions: Type.Optional(
      Type.Union(
        [
          Type.Enum([alignedPositions]),
          Type.Array(Type.Integer({ minimum: -limits.token_index, maximum: limits.token_index }), {
            minItems: 1,
            maxItems: limits.max_input_tokens,
            uniqueItems: true,
          }),
        ],
        {
          description:
            "Token indices, negative ones from the end: -1 is the last token. Otherwise every token. Pairs of different " +
            `lengths need negative ones. Or aligned: in both texts of every pair as many spans stand between ` +
            `${spanMarks.join(" and ")}, at most ${limits.patch_spans}, and the last token of each is patched into that of its ` +
            "like; the marks are taken out, and the texts may differ in length.",
        },
      ),
    ),
    direction: Type.Optional(
      Type.Enum([...patchDirections], {
        default: defaults.patch_direction,
        description:
          "denoise puts states of the clean run into the corrupted run: where is it enough? noise puts states of the " +
          "corrupted run into the clean run: where is it needed?",
      }),
    ),
    controls: Type.Optional(
      Type.Boolean({
        default: defaults.patch_controls,
        description: "At each site also a random change, drawn from `seed`, as long as the patch's.",
      }),
    ),
  },
  {
    ...closed,
    title: "PatchSweepSubmission",
    description:
      "Put single block outputs of one prompt into the run of another, or what attention, MLPs or single heads add, for each layer and token: where does it happen?",
  },
);

export const ExplainSubmission = Type.Object(
  {
    operation: Type.Literal("explain"),
    ...commonOfFeatures,
    prompt,
    layer: Type.Integer({
      minimum: 0,
      maximum: limits.layer_index,
      description: "Zero-based block index: whose output is put into words.",
    }),
    positions: Type.Optional(
      Type.Array(Type.Integer({ minimum: -limits.token_index, maximum: limits.token_index }), {
        minItems: 1,
        maxItems: limits.explain_positions,
        uniqueItems: true,
        default: [...defaults.explain_positions],
        description:
          "Token indices of the prompt, negative ones from the end: each one's row is explained by itself.",
      }),
    ),
    verbaliser: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: limits.model_characters,
        description:
          "The model that is to say what a row is, named as `model` is and as wide; otherwise `model` itself.",
      }),
    ),
    verbaliser_revision: Type.Optional(
      Type.String({ minLength: 1, maxLength: 255, description: "Pins a hub revision of `verbaliser`." }),
    ),
    template: text(
      "The verbaliser's prompt, with the marker once. Control tokens in it are read, so that it can be in the verbaliser's " +
        "chat format; no template is applied.",
    ),
    marker: text(
      "Text that is exactly one token of the verbaliser, and is that in the template: in its embedding's place stands the row.",
    ),
    length: Type.Optional(
      Type.Number({
        exclusiveMinimum: 0,
        maximum: limits.explain_length,
        description:
          "L2 length that each row is scaled to, which a verbaliser is trained on; otherwise rows stay as they are.",
      }),
    ),
    samples: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.explain_samples,
        default: defaults.explain_samples,
        description: "Descriptions of each row; more than one need a temperature.",
      }),
    ),
    temperature: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: limits.explain_temperature,
        default: defaults.explain_temperature,
        description: "Of descriptions that are drawn from `seed`; 0: the most probable token each time.",
      }),
    ),
    description_tokens: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: limits.explain_tokens,
        default: defaults.explain_tokens,
        description: "Tokens of a description at most.",
      }),
    ),
    controls: Type.Optional(
      Type.Boolean({
        default: defaults.explain_controls,
        description:
          "Also what the verbaliser says to each row's numbers in another order, drawn from `seed`, and to no row at all.",
      }),
    ),
  },
  {
    ...closed,
    title: "ExplainSubmission",
    description:
      "Put block outputs into words: each stands in a token embedding's place in another model's prompt, which says what it is.",
  },
);

/** The body of `POST /lab/v1/jobs`, by operation. */
export const submissions = {
  inspect: InspectSubmission,
  compare: CompareSubmission,
  probe: ProbeSubmission,
  sae: SaeSubmission,
  features: FeaturesSubmission,
  extract: ExtractSubmission,
  drift: DriftSubmission,
  patch_sweep: PatchSweepSubmission,
  explain: ExplainSubmission,
} as const;

/** A validated submission, its defaults filled in. */
type Filled<T, Fields extends PropertyKey> = T & { [F in Fields & keyof T]-?: Exclude<T[F], undefined> };
type CommonDefaults = "layers" | "max_input_tokens" | "max_tokens" | "seed";
export type InspectConfig = Filled<Static<typeof InspectSubmission>, CommonDefaults>;
export type CompareConfig = Filled<
  Static<typeof CompareSubmission>,
  CommonDefaults | "intervention" | "strengths"
>;
export type ProbeConfig = Filled<Static<typeof ProbeSubmission>, CommonDefaults>;
export type SaeConfig = Filled<Static<typeof SaeSubmission>, CommonDefaults | "features" | "steps">;
export type FeaturesConfig = Filled<Static<typeof FeaturesSubmission>, CommonDefaults | "top">;
export type ExtractConfig = Filled<
  Static<typeof ExtractSubmission>,
  CommonDefaults | "rows" | "dtype" | "too_long" | "shard_tokens"
>;
export type DriftConfig = Filled<Static<typeof DriftSubmission>, CommonDefaults>;
export type PatchSweepConfig = Filled<
  Static<typeof PatchSweepSubmission>,
  Exclude<CommonDefaults, "layers"> | "direction" | "controls" | "points"
>;
export type ExplainConfig = Filled<
  Static<typeof ExplainSubmission>,
  | Exclude<CommonDefaults, "layers" | "max_tokens">
  | "positions"
  | "samples"
  | "temperature"
  | "description_tokens"
  | "controls"
>;
export type Config =
  | InspectConfig
  | CompareConfig
  | ProbeConfig
  | SaeConfig
  | FeaturesConfig
  | ExtractConfig
  | DriftConfig
  | PatchSweepConfig
  | ExplainConfig;
