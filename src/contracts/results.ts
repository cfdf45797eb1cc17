import Type, { type Static, type TSchema } from "typebox";
import { Excluded } from "./excluded.js";
import { ExplainResult } from "./explain.js";
import { blockPoints, changedPoints, innerPoints, textRows } from "./names.js";
import { PatchSweepResult } from "./patch-sweep.js";
import { Provenance } from "./provenance.js";
import { extractRows, extractTypes, interventions, saeArchitectures, strengthUnits } from "./submission.js";

export const Candidate = Type.Object(
  { token_id: Type.Integer(), token: Type.String(), probability: Type.Number() },
  { title: "Candidate" },
);
export type Candidate = Static<typeof Candidate>;

const artifacts = Type.Array(Type.String(), { description: "Names for `GET .../artifacts/{name}`." });

/** Where nothing is said, it is the block's output, as in results of earlier versions. */
const readPoint = Type.Optional(
  Type.Enum([...blockPoints], { description: "What of each block was read; absent: its output." }),
);

/** The same of the rows of each text. */
const readRows = Type.Optional(
  Type.Enum([...textRows], { description: "Which row of each text was read; absent: the last token's." }),
);

export const Standing = Type.Object(
  {
    probability: Type.Number(),
    rank: Type.Integer({ description: "1 is the most probable token; ties by token id." }),
  },
  { title: "Standing", description: "Where a token stands in a prediction over the whole vocabulary." },
);
export type Standing = Static<typeof Standing>;

const measured = {
  entropies: Type.Optional(
    Type.Array(Type.Number(), { description: "Entropy of what is read at each token, in nats." }),
  ),
  divergences: Type.Optional(
    Type.Array(Type.Number(), {
      description: "How far the model's output at each token is from it: KL(output, reading), in nats.",
    }),
  ),
};

export const TranslatedReading = Type.Object(
  {
    predictions: Type.Array(Type.Array(Candidate), {
      description: "The top 3 candidates, one list a token.",
    }),
    target: Type.Optional(Type.Array(Standing, { description: "As of the logit lens." })),
    ...measured,
  },
  { title: "TranslatedReading", description: "What the named lens reads of a block's output." },
);
export type TranslatedReading = Static<typeof TranslatedReading>;

export const InspectLayer = Type.Object({
  layer: Type.Integer(),
  norms: Type.Array(Type.Number(), { description: "L2 norm of the block output, one a token." }),
  predictions: Type.Optional(
    Type.Array(Type.Array(Candidate), { description: "Logit lens: the top 3 candidates, one list a token." }),
  ),
  target: Type.Optional(
    Type.Array(Standing, {
      description:
        "Logit lens: where the target token stands, one a token where the request named it; of the model's answer, after the last token alone.",
    }),
  ),
  ...measured,
  translated: Type.Optional(TranslatedReading),
  note: Type.Optional(Type.String({ description: "Why there are no predictions." })),
});

export type InspectLayer = Static<typeof InspectLayer>;

export const InspectPoint = Type.Object(
  {
    layer: Type.Integer(),
    point: Type.Enum([...innerPoints]),
    norms: Type.Array(Type.Number(), { description: "L2 norm, one a token." }),
    predictions: Type.Optional(
      Type.Array(Type.Array(Candidate), {
        description:
          "Logit lens, of block_in and mid: what is added to the stream is no state to predict from.",
      }),
    ),
    target: Type.Optional(Type.Array(Standing, { description: "As of a layer." })),
    ...measured,
  },
  { title: "InspectPoint", description: "A point inside a block." },
);
export type InspectPoint = Static<typeof InspectPoint>;

const share = (description: string) =>
  Type.Union([Type.Number(), Type.Null()], { description: `${description}, on average.` });

export const AttentionHead = Type.Object(
  {
    layer: Type.Integer(),
    head: Type.Integer(),
    previous: share("What tokens read of the token before them"),
    first: share("What tokens read of the first one, where a head rests"),
    own: Type.Number({ description: "What tokens read of themselves, on average." }),
    induction: share(
      "What a token that was there before reads of the token behind its first occurrence; null where none comes again",
    ),
    last: Type.Array(Type.Object({ position: Type.Integer(), weight: Type.Number() }), {
      description: "What the last token reads most.",
    }),
  },
  { title: "AttentionHead", description: "What a head looks at: shares of its attention in this text." },
);
export type AttentionHead = Static<typeof AttentionHead>;

/** A lens that is kept by name, as it was used. */
const LensUsed = Type.Object(
  {
    name: Type.String(),
    kind: Type.String({ description: "jacobian, tuned or regression." }),
    sha256: Type.String({ description: "Of its numbers." }),
  },
  { description: "The stored lens that was used." },
);

export const Routing = Type.Object(
  {
    layer: Type.Integer(),
    experts: Type.Integer({ description: "Experts to choose from." }),
    used: Type.Integer({ description: "Experts of a token." }),
    shares: Type.Array(Type.Number(), {
      description: "Of each expert, its share of all choices in this text; they sum to 1.",
    }),
    chosen: Type.Array(Type.Array(Type.Integer()), {
      description: "Of each token its experts, the best first.",
    }),
    weights: Type.Array(Type.Array(Type.Number()), {
      description: "What the layer multiplies their outputs by.",
    }),
  },
  { title: "Routing", description: "Which experts a layer's router chose." },
);
export type Routing = Static<typeof Routing>;

export const Decomposition = Type.Object(
  {
    target_token: Type.String(),
    target_token_id: Type.Integer(),
    logit: Type.Number({ description: "The model's own, after the last token." }),
    sum: Type.Number({
      description: "Of everything below. What it differs by is the rounding of the model's own product.",
    }),
    embedding: Type.Number({ description: "Of what goes into the first block." }),
    constant: Type.Number({ description: "Of the final norm's and the head's biases." }),
    blocks: Type.Array(Type.Object({ layer: Type.Integer(), attention: Type.Number(), mlp: Type.Number() }), {
      description: "Every block, from the first.",
    }),
  },
  {
    title: "Decomposition",
    description:
      "Direct contributions to one logit (direct logit attribution), with the final norm's scale kept as it is.",
  },
);
export type Decomposition = Static<typeof Decomposition>;

export const InspectResult = Type.Object(
  {
    tokens: Type.Array(Type.String()),
    token_ids: Type.Array(Type.Integer()),
    layers: Type.Array(InspectLayer),
    points: Type.Optional(
      Type.Array(InspectPoint, { description: "Layer by layer, and point by point, as asked for." }),
    ),
    attention: Type.Optional(
      Type.Array(AttentionHead, { description: "Layer by layer, and head by head, as asked for." }),
    ),
    routing: Type.Optional(Type.Array(Routing, { description: "Layer by layer, as asked for." })),
    decomposition: Type.Optional(Decomposition),
    lens: Type.Optional(LensUsed),
    target_token: Type.Optional(
      Type.String({
        description: "The token that the lens follows, where one was asked for.",
      }),
    ),
    target_token_id: Type.Optional(Type.Integer()),
    next_tokens: Type.Array(Candidate, { description: "The model's top 5 after the last token." }),
    note: Type.String(),
    artifacts,
    provenance: Provenance,
  },
  { title: "InspectResult" },
);
export type InspectResult = Static<typeof InspectResult>;

export const Change = Type.Object(
  {
    rows: Type.Integer({ description: "Tokens whose rows were changed, over all passes." }),
    length: Type.Number({ description: "L2 length of the change, the mean of these rows." }),
    row_length: Type.Number({
      description: "L2 length of the row before the change, the mean of these rows.",
    }),
  },
  { title: "Change", description: "What the intervention did to the block's output." },
);
export type Change = Static<typeof Change>;

export const ControlTrial = Type.Object(
  {
    probability: Type.Number(),
    delta: Type.Number(),
    output: Type.String(),
    change: Change,
  },
  {
    title: "ControlTrial",
    description: "The same with a random vector of the same length in place of the donor's or the direction.",
  },
);
export type ControlTrial = Static<typeof ControlTrial>;

export const Trial = Type.Object(
  {
    prompt: Type.String(),
    strength: Type.Number(),
    layer: Type.Integer(),
    target_token: Type.String(),
    target_token_id: Type.Integer(),
    baseline_probability: Type.Number(),
    probability: Type.Number(),
    delta: Type.Number(),
    baseline: Type.String({ description: "Greedy continuation without the intervention." }),
    output: Type.String({ description: "Greedy continuation with it." }),
    // Jobs of earlier versions have none.
    change: Type.Optional(Change),
    control: Type.Optional(ControlTrial),
  },
  { title: "Trial" },
);

export const CompareResult = Type.Object(
  {
    trials: Type.Array(Trial, { description: "Prompts, then strengths, in the order given." }),
    intervention: Type.Enum([...interventions]),
    point: Type.Optional(
      Type.Enum([...changedPoints], { description: "What of the block was changed, where not its output." }),
    ),
    heads: Type.Optional(Type.Array(Type.Integer())),
    layers: Type.Optional(
      Type.Array(Type.Integer(), { description: "Of a swap, all layers that were changed." }),
    ),
    swapped: Type.Optional(
      Type.Array(Type.Object({ token: Type.String(), token_id: Type.Integer() }), {
        description: "Of a swap, the two tokens.",
      }),
    ),
    lens: Type.Optional(LensUsed),
    position: Type.String(),
    strength_unit: Type.Optional(Type.Enum([...strengthUnits])),
    vector_length: Type.Optional(
      Type.Number({
        description: "L2 length of the donor's state, or of the difference of the texts' states.",
      }),
    ),
    control_seed: Type.Optional(Type.Integer({ description: "What the random vector was drawn from." })),
    note: Type.String(),
    artifacts,
    provenance: Provenance,
  },
  { title: "CompareResult" },
);
export type CompareResult = Static<typeof CompareResult>;

const split = Type.Enum(["train", "test"]);

const toldInterval = (description: string) =>
  Type.Object({ low: Type.Number(), high: Type.Number() }, { description });
/** Of results that may be of an earlier version, which had none. */
const Interval = (description: string) => Type.Optional(toldInterval(description));

const Spread = Type.Object(
  { low: Type.Number(), high: Type.Number(), mean: Type.Number(), std: Type.Number() },
  { title: "Spread", description: "Mean, standard deviation and middle 95 %." },
);

/** How well a probe does on what was held out, beside its controls. */
const probeFigures = {
  accuracy: Type.Number(),
  auc: Type.Number(),
  brier: Type.Number(),
  majority_accuracy: Type.Number({
    description: "Held-out accuracy of the training set's majority class.",
  }),
  shuffled_label_accuracy: Type.Number({
    description: "Held-out accuracy of a probe fitted to one permutation of the training labels.",
  }),
  train_size: Type.Integer(),
  test_size: Type.Integer(),
};

const ShuffledLabels = Type.Object(
  {
    permutations: Type.Integer({ description: "How often the training labels were permuted anew." }),
    accuracy: Spread,
    auc: Spread,
    p_accuracy: Type.Number({
      description: "Share of permutations at least as accurate, the probe counted as one of them.",
    }),
    p_auc: Type.Number({ description: "The same for the AUROC." }),
  },
  { title: "ShuffledLabels", description: "What chance gives: probes of permuted training labels." },
);

const ofTexts = "95 % bootstrap interval over the held-out texts, each with all its rows.";

export const ProbeRows = Type.Object(
  {
    ...probeFigures,
    accuracy_interval: toldInterval(ofTexts),
    auc_interval: toldInterval(ofTexts),
    shuffled_labels: ShuffledLabels,
    shared_rows: Type.Integer({
      description:
        "Held-out rows that a training text has, too: both texts begin with the same tokens up to there.",
    }),
  },
  {
    title: "ProbeRows",
    description:
      "For rows all: the same figures of single rows. Labels were permuted among texts, whose rows keep one label.",
  },
);
export type ProbeRows = Static<typeof ProbeRows>;

const excludedFromMeans = Type.Optional(
  Type.Object(Excluded.properties, { description: "For means: activations that they leave out." }),
);

export const ProbeReport = Type.Object(
  {
    layer: Type.Integer(),
    ...probeFigures,
    converged: Type.Boolean(),
    iterations: Type.Integer(),
    scores: Type.Array(
      Type.Object({ text: Type.String(), split, label: Type.Enum([0, 1]), score: Type.Number() }),
    ),
    accuracy_interval: Interval("95 % bootstrap interval over the held-out examples."),
    auc_interval: Interval("95 % bootstrap interval over the held-out examples."),
    shuffled_labels: Type.Optional(ShuffledLabels),
    by_row: Type.Optional(ProbeRows),
    excluded: excludedFromMeans,
  },
  { title: "ProbeReport" },
);

export const ProbeResult = Type.Object(
  {
    point: readPoint,
    rows: readRows,
    reports: Type.Array(ProbeReport),
    artifacts,
    provenance: Provenance,
  },
  { title: "ProbeResult" },
);
export type ProbeResult = Static<typeof ProbeResult>;

export const SaeReport = Type.Object(
  {
    layer: Type.Integer(),
    excluded: Type.Optional(
      Type.Object(Excluded.properties, {
        description: "Activations that were left out of the means, or of the rows to train on.",
      }),
    ),
    architecture: Type.Enum([...saeArchitectures]),
    held_out_mse: Type.Number(),
    train_mse: Type.Number({
      description:
        "Of the finished dictionary, on its training data; of a training in batches over training.evaluated_train_rows rows.",
    }),
    explained_variance: Type.Union([Type.Number(), Type.Null()], {
      description: "On held-out examples; null, with a note, where these do not vary.",
    }),
    mean_active: Type.Number({ description: "Features active on a held-out example, on average." }),
    dead_features: Type.Integer({ description: "Features active on no held-out example." }),
    dead_fraction: Type.Number(),
    losses: Type.Array(Type.Object({ step: Type.Integer(), loss: Type.Number() })),
    features: Type.Array(
      Type.Object({
        feature: Type.Integer(),
        mean: Type.Number(),
        frequency: Type.Number(),
        examples: Type.Array(Type.Object({ text: Type.String(), activation: Type.Number() })),
      }),
      {
        description:
          "The 16 most active on held-out data; activations are those of the files, whose decoder rows have length 1.",
      },
    ),
    training: Type.Optional(
      Type.Object(
        {
          k: Type.Optional(Type.Integer()),
          steps: Type.Integer(),
          batch: Type.Integer({ description: "Rows of a step." }),
          train_rows: Type.Integer(),
          held_out_rows: Type.Integer(),
          evaluated_rows: Type.Integer({ description: "Held-out rows that the figures are of." }),
          evaluated_train_rows: Type.Optional(
            Type.Integer({
              description:
                "Training rows that train_mse is the mean of: all, or the first of the shuffled order.",
            }),
          ),
          learning_rate: Type.Number(),
          sparsity: Type.Number(),
          evaluations: Type.Array(
            Type.Object({
              step: Type.Integer(),
              explained_variance: Type.Union([Type.Number(), Type.Null()]),
              mean_active: Type.Number(),
              dead_features: Type.Integer(),
            }),
            { description: "Held-out figures on the way." },
          ),
          densities: Type.Array(Type.Object({ least: Type.Number(), features: Type.Integer() }), {
            description:
              "Features by the share of held-out rows in which they fire: how many from `least` to the next bin's.",
          }),
        },
        { title: "SaeTraining", description: "Of a training in batches; losses are its batches' errors." },
      ),
    ),
    note: Type.Optional(Type.String({ description: "Why a figure is null." })),
  },
  { title: "SaeReport" },
);
export type SaeReport = Static<typeof SaeReport>;

export const SaeResult = Type.Object(
  {
    point: readPoint,
    rows: readRows,
    reports: Type.Array(SaeReport),
    artifacts,
    provenance: Provenance,
  },
  { title: "SaeResult" },
);
export type SaeResult = Static<typeof SaeResult>;

export const FeatureActivation = Type.Object(
  { feature: Type.Integer(), activation: Type.Number() },
  { title: "FeatureActivation" },
);
export type FeatureActivation = Static<typeof FeatureActivation>;

const orNull = (description: string) => Type.Union([Type.Number(), Type.Null()], { description });

export const Fidelity = Type.Object(
  {
    tokens: Type.Integer({ description: "Tokens that count: a text's BOS token does not." }),
    excluded: Type.Optional(Excluded),
    l0: Type.Number({ description: "Features active in a token, on average." }),
    explained_variance: orNull(
      "1 - sum |x - y|^2 / sum |x - mean x|^2 over these tokens, with y the reconstruction; null where they do not vary.",
    ),
    cosine: Type.Number({ description: "Between block output and reconstruction, on average." }),
    cross_entropy: Type.Union(
      [
        Type.Object({ clean: Type.Number(), reconstructed: Type.Number(), ablated: Type.Number() }),
        Type.Null(),
      ],
      {
        description:
          "Of the texts' own next tokens, nats a token: as the model is, with every block output replaced by its " +
          "reconstruction, and by zero. Null where there is no next token.",
      },
    ),
    loss_recovered: orNull(
      "(ablated - reconstructed) / (ablated - clean); null where those two hardly differ.",
    ),
  },
  { title: "Fidelity", description: "How well the dictionary fits these texts." },
);
export type Fidelity = Static<typeof Fidelity>;

const NamedToken = Type.Object(
  {
    token_id: Type.Integer(),
    token: Type.String(),
    effect: Type.Number({ description: "Its logit less the mean of all." }),
  },
  { title: "NamedToken" },
);

const namedTokens = (what: string) =>
  Type.Union([Type.Array(NamedToken), Type.Null()], {
    description: `Tokens that a row which is the feature's decoder row alone makes ${what} probable; null without a logit lens.`,
  });

export const FeatureExampleGroup = Type.Object(
  {
    name: Type.Enum(["top", "75-100 %", "50-75 %", "25-50 %", "0-25 %"], {
      description: "The strongest tokens, or some of a quarter of all in which it is active, by rank.",
    }),
    examples: Type.Array(
      Type.Object({
        text: Type.Integer({ description: "Index in texts," }),
        token: Type.Integer({ description: "and token index." }),
        activation: Type.Number(),
        from: Type.Integer({ description: "The first token that is shown around it." }),
        activations: Type.Array(Type.Number(), { description: "Of the tokens from there on." }),
      }),
    ),
  },
  { title: "FeatureExampleGroup" },
);
export type FeatureExampleGroup = Static<typeof FeatureExampleGroup>;

const label = Type.Optional(Type.String({ description: "What others call it." }));

export const FeaturePage = Type.Object(
  {
    feature: Type.Integer(),
    label,
    active_tokens: Type.Integer({ description: "Tokens of these texts in which it is active." }),
    histogram: Type.Array(Type.Object({ least: Type.Number(), tokens: Type.Integer() }), {
      description: "Those tokens by activation: how many from `least` to the next bin's.",
    }),
    groups: Type.Array(FeatureExampleGroup),
    raised: namedTokens("more"),
    lowered: namedTokens("less"),
    neighbours: Type.Array(Type.Object({ feature: Type.Integer(), cosine: Type.Number(), label }), {
      description: "The features whose decoder rows have the largest cosine with its own.",
    }),
  },
  { title: "FeaturePage" },
);
export type FeaturePage = Static<typeof FeaturePage>;

export const FeaturesResult = Type.Object(
  {
    dictionary: Type.Object({
      name: Type.String(),
      sha256: Type.String(),
      layout: Type.String(),
      activation: Type.String(),
      features: Type.Integer(),
      trained_on: Type.Union([Type.String(), Type.Null()]),
    }),
    layer: Type.Integer(),
    point: readPoint,
    texts: Type.Array(
      Type.Object({
        tokens: Type.Array(Type.String()),
        token_ids: Type.Array(Type.Integer()),
        top: Type.Array(Type.Array(FeatureActivation), {
          description: "The most active features of each token, strongest first.",
        }),
      }),
    ),
    features: Type.Array(
      Type.Object({
        feature: Type.Integer(),
        max: Type.Number(),
        mean: Type.Number({ description: "Over the tokens where it is active." }),
        frequency: Type.Number({ description: "Share of the tokens where it is active." }),
        text: Type.Integer({ description: "Where it is strongest: index in texts," }),
        token: Type.Integer({ description: "and token index." }),
      }),
      { description: "The features that become strongest anywhere, strongest first." },
    ),
    pages: Type.Optional(Type.Array(FeaturePage, { description: "Of the features that were asked for." })),
    fidelity: Fidelity,
    note: Type.String(),
    artifacts,
    provenance: Provenance,
  },
  { title: "FeaturesResult" },
);
export type FeaturesResult = Static<typeof FeaturesResult>;

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
    point: readPoint,
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
    excluded: Type.Optional(
      Type.Array(Type.Object({ layer: Type.Integer(), ...Excluded.properties }), {
        description: "For means: activations that those of this job's files leave out.",
      }),
    ),
    note: Type.String(),
    artifacts,
    provenance: Provenance,
  },
  { title: "ExtractResult" },
);
export type ExtractResult = Static<typeof ExtractResult>;

const Measured = Type.Object(
  { value: Type.Number(), low: Type.Number(), high: Type.Number() },
  {
    title: "Measured",
    description: "A figure with its 95 % bootstrap interval: the examples drawn again with replacement.",
  },
);
export type Measured = Static<typeof Measured>;
const pair = <S extends TSchema>(schema: S, description: string) =>
  Type.Tuple([schema, schema], { description: `${description}, in the first and in the second model.` });

export const DriftResult = Type.Object(
  {
    models: pair(
      Type.Object({ name: Type.String(), quantization: Type.String(), bytes: Type.Integer() }),
      "What was compared",
    ),
    texts: Type.Integer(),
    tokens: Type.Integer({ description: "Tokens that count: a text's BOS token does not." }),
    layers: Type.Array(
      Type.Object(
        {
          layer: Type.Integer(),
          cosine: Measured,
          relative_length: Measured,
          relative_difference: Measured,
        },
        {
          title: "DriftLayer",
          description:
            "Means over tokens of a block's output a in the first model and b in the second: cosine of a and b, |b| / |a|, " +
            "|a - b| / |a|.",
        },
      ),
    ),
    dictionary: Type.Optional(
      Type.Object(
        {
          name: Type.String(),
          sha256: Type.String(),
          layer: Type.Integer(),
          point: readPoint,
          features: Type.Integer(),
          jaccard: Type.Union([Measured, Type.Null()]),
          l0: pair(Type.Number(), "Features active in a token, on average"),
          loss_recovered: Type.Union([pair(Measured, "Share of the loss"), Type.Null()]),
          loss_recovered_difference: Type.Union([Measured, Type.Null()]),
        },
        {
          title: "DriftDictionary",
          description:
            "jaccard: features active in both models, over those active in one, summed over tokens. Null: no feature is " +
            "active, or the loss does not depend on the block.",
        },
      ),
    ),
    probe: Type.Optional(
      Type.Object(
        {
          ...{ name: Type.String(), sha256: Type.String(), layer: Type.Integer() },
          auroc: pair(Measured, "AUROC of its scores of the last tokens"),
          difference: Measured,
        },
        { title: "DriftProbe" },
      ),
    ),
    vector: Type.Optional(
      Type.Object(
        {
          ...{ name: Type.String(), sha256: Type.String(), layer: Type.Integer() },
          separation: pair(Measured, "AUROC of the last tokens' projections"),
          difference: Measured,
        },
        { title: "DriftVector", description: "At the first of `layers` that the vector has." },
      ),
    ),
    note: Type.String(),
    artifacts,
    provenance: Provenance,
  },
  { title: "DriftResult" },
);
export type DriftResult = Static<typeof DriftResult>;

/** Results by operation. */
export const results = {
  inspect: InspectResult,
  compare: CompareResult,
  probe: ProbeResult,
  sae: SaeResult,
  features: FeaturesResult,
  extract: ExtractResult,
  drift: DriftResult,
  patch_sweep: PatchSweepResult,
  explain: ExplainResult,
};

export type Result =
  | InspectResult
  | CompareResult
  | ProbeResult
  | SaeResult
  | FeaturesResult
  | ExtractResult
  | DriftResult
  | PatchSweepResult
  | ExplainResult;
