import Type, { type Static } from "typebox";
import { Excluded } from "../../contracts/excluded.js";
import { InvalidInput, missing } from "../../contracts/invalid-input.js";
import { defaults, limits } from "../../contracts/limits.js";
import { Name } from "../../contracts/live.js";
import { blockPoints } from "../../contracts/names.js";
import { optional } from "../../contracts/optional.js";
import { notedResultFields, orNull, pointRead } from "../../contracts/result-fields.js";
import {
  type CommonDefaults,
  closed,
  commonOfFeatures,
  type Filled,
  path,
  prompt,
  text,
} from "../../contracts/submission-fields.js";
import type { Contract } from "../contract.js";

export const FeaturesSubmission = Type.Object(
  {
    operation: Type.Literal("features"),
    ...commonOfFeatures,
    dictionary: Name,
    prompt: Type.Optional(prompt),
    texts: optional.Array(text("Raw text."), {
      minItems: 1,
      maxItems: limits.feature_texts,
      description: "Texts to read, instead of the single `prompt`.",
    }),
    top: optional.Integer({
      minimum: 1,
      maximum: limits.feature_top,
      default: defaults.feature_top,
      description: "Number of features listed per token; the artifact contains all active features.",
    }),
    pages: optional.Array(Type.Integer({ minimum: 0, maximum: limits.feature_index }), {
      minItems: 1,
      maxItems: limits.feature_pages,
      uniqueItems: true,
      description:
        "Features to show a dashboard for: where they are active, which tokens' logits their decoder rows raise and lower, and " +
        "their nearest features.",
    }),
    labels: path(
      "With `pages`: source of feature labels. Either the absolute path of a Neuronpedia export on the Lab's machine, or a web " +
        "address to which the Lab appends each feature's index and then requests it.",
    ),
  },
  {
    ...closed,
    title: "FeaturesSubmission",
    description: "Encode texts with a saved sparse dictionary, and measure how well it fits them.",
  },
);

export type FeaturesConfig = Filled<Static<typeof FeaturesSubmission>, CommonDefaults | "top">;

export const FeatureActivation = Type.Object(
  { feature: Type.Integer(), activation: Type.Number() },
  { title: "FeatureActivation" },
);
export type FeatureActivation = Static<typeof FeatureActivation>;

export const Fidelity = Type.Object(
  {
    tokens: Type.Integer({ description: "Number of tokens, without BOS tokens." }),
    excluded: Type.Optional(Excluded),
    l0: Type.Number({ description: "Mean number of active features per token." }),
    explained_variance: orNull(
      "1 - sum |x - y|^2 / sum |x - mean x|^2 over these tokens, with y the reconstruction; null if they do not vary.",
    ),
    cosine: Type.Number({
      description: "Mean cosine similarity between the reconstructed activation and its reconstruction.",
    }),
    cross_entropy: Type.Union(
      [
        Type.Object({ clean: Type.Number(), reconstructed: Type.Number(), ablated: Type.Number() }),
        Type.Null(),
      ],
      {
        description:
          "Loss on the texts' next tokens in nats per token: unmodified, with every such activation (a transcoder's: every MLP " +
          "output) replaced by its reconstruction, and with it replaced by zero. Null if there is no next token.",
      },
    ),
    loss_recovered: orNull("(ablated - reconstructed) / (ablated - clean); null if these two hardly differ."),
  },
  { title: "Fidelity", description: "How well the dictionary fits these texts." },
);
export type Fidelity = Static<typeof Fidelity>;

const NamedToken = Type.Object(
  {
    token_id: Type.Integer(),
    token: Type.String(),
    effect: Type.Number({ description: "Its logit minus the mean logit." }),
  },
  { title: "NamedToken" },
);

const namedTokens = (what: string) =>
  Type.Union([Type.Array(NamedToken), Type.Null()], {
    description: `Tokens that the feature's decoder row alone makes ${what} probable; null without a logit lens.`,
  });

export const FeatureExampleGroup = Type.Object(
  {
    name: Type.Enum(["top", "75-100 %", "50-75 %", "25-50 %", "0-25 %"], {
      description: "The strongest activations, or a sample from one quarter of all activations by rank.",
    }),
    examples: Type.Array(
      Type.Object({
        text: Type.Integer({ description: "Index in texts," }),
        token: Type.Integer({ description: "and token index." }),
        activation: Type.Number(),
        from: Type.Integer({ description: "Index of the first token of the excerpt." }),
        activations: Type.Array(Type.Number(), { description: "Activations of the excerpt's tokens." }),
      }),
    ),
  },
  { title: "FeatureExampleGroup" },
);
export type FeatureExampleGroup = Static<typeof FeatureExampleGroup>;

const label = Type.Optional(Type.String({ description: "Label from the requested source." }));

export const FeaturePage = Type.Object(
  {
    feature: Type.Integer(),
    label,
    active_tokens: Type.Integer({ description: "Number of tokens in these texts on which it is active." }),
    histogram: Type.Array(Type.Object({ least: Type.Number(), tokens: Type.Integer() }), {
      description: "Those tokens by activation: each bin counts from its `least` to the next bin's.",
    }),
    groups: Type.Array(FeatureExampleGroup),
    raised: namedTokens("more"),
    lowered: namedTokens("less"),
    neighbours: Type.Array(Type.Object({ feature: Type.Integer(), cosine: Type.Number(), label }), {
      description: "The features with the most similar decoder rows, by cosine.",
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
    point: pointRead,
    writes: Type.Optional(
      Type.Enum([...blockPoints], {
        description: "For a transcoder: the point whose activations it predicts and, for the loss, replaces.",
      }),
    ),
    texts: Type.Array(
      Type.Object({
        tokens: Type.Array(Type.String()),
        token_ids: Type.Array(Type.Integer()),
        top: Type.Array(Type.Array(FeatureActivation), {
          description: "The strongest features of each token, in descending order.",
        }),
      }),
    ),
    features: Type.Array(
      Type.Object({
        feature: Type.Integer(),
        max: Type.Number(),
        mean: Type.Number({ description: "Mean over the tokens on which it is active." }),
        frequency: Type.Number({ description: "Share of tokens on which it is active." }),
        text: Type.Integer({ description: "Where it is strongest: index in `texts`" }),
        token: Type.Integer({ description: "and token index." }),
      }),
      { description: "The features with the largest activations anywhere, in descending order." },
    ),
    pages: Type.Optional(Type.Array(FeaturePage, { description: "Dashboards of the requested features." })),
    fidelity: Fidelity,
    ...notedResultFields,
  },
  { title: "FeaturesResult" },
);
export type FeaturesResult = Static<typeof FeaturesResult>;

export default {
  submission: FeaturesSubmission,
  result: FeaturesResult,
  forAgents: "(dictionary, prompt or texts)",
  places: { labels: "path or address" },
  check({ prompt, texts, pages, labels }: FeaturesConfig): void {
    if ((prompt === undefined) === (texts === undefined)) {
      throw missing("prompt", "or texts is required, but not both.");
    }
    if (labels !== undefined && pages === undefined) {
      throw new InvalidInput("labels", "requires pages.");
    }
  },
} satisfies Contract;
