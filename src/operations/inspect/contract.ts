import Type, { type Static } from "typebox";
import { InvalidInput } from "../../contracts/invalid-input.js";
import { limits } from "../../contracts/limits.js";
import { innerPoints } from "../../contracts/names.js";
import { optional } from "../../contracts/optional.js";
import { Candidate, LensUsed, notedResultFields } from "../../contracts/result-fields.js";
import {
  type CommonDefaults,
  closed,
  common,
  type Filled,
  headList,
  named,
  prompt,
  text,
} from "../../contracts/submission-fields.js";
import type { Contract } from "../contract.js";

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
    follow_answer: optional.Boolean({
      description: "In its place: probability and rank of the model's own answer after the last token.",
    }),
    lens: named(
      "A lens that is kept by name (tapline lens): read each of the layers through it, too, before the model's own final norm " +
        "and head.",
    ),
    measures: optional.Boolean({
      description:
        "Also the entropy of what is read at each token, and how far the model's output is from it (KL), both in nats. " +
        "With a lens unless told otherwise.",
    }),
    points: optional.Array(Type.Enum([...innerPoints]), {
      minItems: 1,
      maxItems: innerPoints.length,
      uniqueItems: true,
      description:
        "Points of each of the layers beside its output: block_in, the residual stream before it; attn_out, what " +
        "attention adds; mid, the stream then; ffn_out, what the MLP or the experts add. A model that has one of them " +
        "not is refused.",
    }),
    attention: optional.Object(
      {
        layers: optional.Array(Type.Integer({ minimum: 0, maximum: limits.layer_index }), {
          minItems: 1,
          maxItems: limits.layers,
          uniqueItems: true,
          description: "Blocks whose attention is kept; otherwise the submission's layers.",
        }),
        heads: headList("Of each of them; otherwise all."),
      },
      {
        ...closed,
        description:
          "How much each token reads of each, after the softmax, as attention.npz, [heads, tokens, tokens] a layer, with " +
          "what each head read; and what each head looks at, as figures.",
      },
    ),
    routing: optional.Boolean({
      description:
        "Of models with experts: also which experts each of the layers chose for each token, and their weights, as " +
        "routing.npz. A model or a layer without a router that can be read is refused.",
    }),
    decompose: optional.Boolean({
      description:
        "Also the direct contribution of every block's attention and MLP to one logit after the last token: the " +
        "target's, or that of the model's answer.",
    }),
  },
  { ...closed, title: "InspectSubmission", description: "Look inside one forward pass over a prompt." },
);

export type InspectConfig = Filled<Static<typeof InspectSubmission>, CommonDefaults>;

export const Standing = Type.Object(
  {
    probability: Type.Number(),
    rank: Type.Integer({ description: "1 is the most probable token; ties by token id." }),
  },
  { title: "Standing", description: "Where a token stands in a prediction over the whole vocabulary." },
);
export type Standing = Static<typeof Standing>;

const measured = {
  entropies: optional.Array(Type.Number(), {
    description: "Entropy of what is read at each token, in nats.",
  }),
  divergences: optional.Array(Type.Number(), {
    description: "How far the model's output at each token is from it: KL(output, reading), in nats.",
  }),
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
  predictions: optional.Array(Type.Array(Candidate), {
    description: "Logit lens: the top 3 candidates, one list a token.",
  }),
  target: optional.Array(Standing, {
    description:
      "Logit lens: where the target token stands, one a token where the request named it; of the model's answer, after the last token alone.",
  }),
  ...measured,
  translated: Type.Optional(TranslatedReading),
  note: Type.Optional(Type.String({ description: "Why there are no predictions." })),
});
export type InspectLayer = Static<typeof InspectLayer>;

export const MeasuredLayer = Type.Object(
  Object.fromEntries(
    (["layer", "norms", "predictions", "target"] as const).map((name) => [
      name,
      InspectLayer.properties[name],
    ]),
  ) as Pick<typeof InspectLayer.properties, "layer" | "norms" | "predictions" | "target">,
  { title: "MeasuredLayer", description: "What every block's output is measured for." },
);
export type MeasuredLayer = Static<typeof MeasuredLayer>;

export const InspectPoint = Type.Object(
  {
    layer: Type.Integer(),
    point: Type.Enum([...innerPoints]),
    norms: Type.Array(Type.Number(), { description: "L2 norm, one a token." }),
    predictions: optional.Array(Type.Array(Candidate), {
      description:
        "Logit lens, of block_in and mid: what is added to the stream is no state to predict from.",
    }),
    target: Type.Optional(Type.Array(Standing, { description: "As of a layer." })),
    ...measured,
  },
  { title: "InspectPoint", description: "A point inside a block." },
);
export type InspectPoint = Static<typeof InspectPoint>;

const meanShare = (description: string) =>
  Type.Union([Type.Number(), Type.Null()], { description: `${description}, on average.` });

export const AttentionHead = Type.Object(
  {
    layer: Type.Integer(),
    head: Type.Integer(),
    previous: meanShare("What tokens read of the token before them"),
    first: meanShare("What tokens read of the first one, where a head rests"),
    own: Type.Number({ description: "What tokens read of themselves, on average." }),
    induction: meanShare(
      "What a token that was there before reads of the token behind its first occurrence; null where none comes again",
    ),
    last: Type.Array(Type.Object({ position: Type.Integer(), weight: Type.Number() }), {
      description: "What the last token reads most.",
    }),
  },
  { title: "AttentionHead", description: "What a head looks at: shares of its attention in this text." },
);
export type AttentionHead = Static<typeof AttentionHead>;

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
    layers: Type.Array(InspectLayer, { description: "The selected layers." }),
    all_layers: optional.Array(MeasuredLayer, {
      description:
        "Every layer, from the first: norms of all tokens, and the logit lens. Layers whose output cannot be read are missing.",
    }),
    all_layers_from: optional.Integer({
      description:
        `First token that the lens reads in all_layers: 0, unless all tokens at all layers are more than ` +
        `${limits.lens_activations} activations.`,
    }),
    points: optional.Array(InspectPoint, {
      description: "Layer by layer, and point by point, as asked for.",
    }),
    attention: optional.Array(AttentionHead, {
      description: "Layer by layer, and head by head, as asked for.",
    }),
    routing: Type.Optional(Type.Array(Routing, { description: "Layer by layer, as asked for." })),
    decomposition: Type.Optional(Decomposition),
    lens: Type.Optional(LensUsed),
    target_token: optional.String({
      description: "The token that the lens follows, where one was asked for.",
    }),
    target_token_id: Type.Optional(Type.Integer()),
    next_tokens: Type.Array(Candidate, { description: "The model's top 5 after the last token." }),
    ...notedResultFields,
  },
  { title: "InspectResult" },
);
export type InspectResult = Static<typeof InspectResult>;

export default {
  submission: InspectSubmission,
  result: InspectResult,
  forAgents: "(prompt): norms and logit lens",
  places: {},
  check({ target_token, follow_answer }: InspectConfig): void {
    if (target_token !== undefined && follow_answer === true) {
      throw new InvalidInput("follow_answer", "follows another token than target_token; give one of them.");
    }
  },
} satisfies Contract;
