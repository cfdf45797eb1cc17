import Type, { type Static } from "typebox";
import { Excluded } from "../../contracts/excluded.js";
import { InvalidInput } from "../../contracts/invalid-input.js";
import { defaults, limits } from "../../contracts/limits.js";
import { Name } from "../../contracts/live.js";
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
      description: "Texts to read in place of `prompt`.",
    }),
    top: optional.Integer({
      minimum: 1,
      maximum: limits.feature_top,
      default: defaults.feature_top,
      description: "Features that the result names of each token; the artifact has all.",
    }),
    pages: optional.Array(Type.Integer({ minimum: 0, maximum: limits.feature_index }), {
      minItems: 1,
      maxItems: limits.feature_pages,
      uniqueItems: true,
      description:
        "Features that are looked at one by one: where they are active, what their decoder rows raise and lower, and " +
        "their neighbours.",
    }),
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

export type FeaturesConfig = Filled<Static<typeof FeaturesSubmission>, CommonDefaults | "top">;

export const FeatureActivation = Type.Object(
  { feature: Type.Integer(), activation: Type.Number() },
  { title: "FeatureActivation" },
);
export type FeatureActivation = Static<typeof FeatureActivation>;

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
    point: pointRead,
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
      throw new InvalidInput("prompt", "give either prompt or texts.");
    }
    if (labels !== undefined && pages === undefined) {
      throw new InvalidInput("labels", "are for pages; name features in pages.");
    }
  },
} satisfies Contract;
