import Type, { type Static } from "typebox";
import { InvalidInput, missing } from "../../contracts/invalid-input.js";
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
  text,
} from "../../contracts/submission-fields.js";
import type { Contract } from "../contract.js";

export const InspectSubmission = Type.Object(
  {
    operation: Type.Literal("inspect"),
    ...common,
    prompt: Type.Optional(text("Raw text; no chat template is applied. Either this or tokens.")),
    tokens: optional.Array(Type.Integer({ minimum: 0, maximum: 2_147_483_647 }), {
      minItems: 1,
      maxItems: limits.max_input_tokens,
      description:
        "Instead of a prompt: the model's token ids, run exactly as given. No special tokens are added.",
    }),
    target_token: Type.Optional(
      text(
        "Text that encodes to exactly one token, without special tokens. The lens reports its probability and rank at " +
          "every token.",
      ),
    ),
    follow_answer: optional.Boolean({
      description:
        "Instead of target_token: report the probability and rank of the model's own answer, after the last token only.",
    }),
    lens: named(
      "Name of a saved lens (see `tapline lens`): also read each layer through it, before the model's own final norm " +
        "and output head.",
    ),
    measures: optional.Boolean({
      description:
        "Also report each reading's entropy and its KL divergence from the model's output, both in nats. Default: only if " +
        "lens is given.",
    }),
    points: optional.Array(Type.Enum([...innerPoints]), {
      minItems: 1,
      maxItems: innerPoints.length,
      uniqueItems: true,
      description:
        "Hook points inside each layer, in addition to its output: block_in, the residual stream into it; attn_out, what " +
        "attention adds; mid, the residual stream after attention; ffn_in, that stream after the norm, as the MLP reads it; ffn_out, what the MLP or the experts add. Models " +
        "without one of these points are rejected.",
    }),
    attention: optional.Object(
      {
        layers: optional.Array(Type.Integer({ minimum: 0, maximum: limits.layer_index }), {
          minItems: 1,
          maxItems: limits.layers,
          uniqueItems: true,
          description: "Blocks whose attention is recorded. Default: the submission's layers.",
        }),
        heads: headList("Heads of each of these blocks. Default: all."),
      },
      {
        ...closed,
        description:
          "Attention weights after the softmax, as attention.npz ([heads, tokens, tokens] per layer, with the heads' outputs), " +
          "and a summary of what each head attends to.",
      },
    ),
    routing: optional.Boolean({
      description:
        "For mixture-of-experts models: also record which experts each layer chose for each token, and their weights, as " +
        "routing.npz. Models and layers without a readable router are rejected.",
    }),
    decompose: optional.Boolean({
      description:
        "Direct logit attribution: also report the direct contribution of every block's attention and MLP to one logit after " +
        "the last token, the target's or the model's answer's.",
    }),
  },
  { ...closed, title: "InspectSubmission", description: "Inspect one forward pass over a prompt." },
);

export type InspectConfig = Filled<Static<typeof InspectSubmission>, CommonDefaults>;

export const Standing = Type.Object(
  {
    probability: Type.Number(),
    rank: Type.Integer({ description: "1 is the most probable token; ties by token id." }),
  },
  {
    title: "Standing",
    description: "A token's rank and probability in a prediction over the whole vocabulary.",
  },
);
export type Standing = Static<typeof Standing>;

const measured = {
  entropies: optional.Array(Type.Number(), {
    description: "Entropy of the reading at each token, in nats.",
  }),
  divergences: optional.Array(Type.Number(), {
    description: "KL(output ‖ reading) at each token, in nats.",
  }),
};

export const TranslatedReading = Type.Object(
  {
    predictions: Type.Array(Type.Array(Candidate), {
      description: "The top 3 candidates, one list per token.",
    }),
    target: Type.Optional(Type.Array(Standing, { description: "As for the logit lens." })),
    ...measured,
  },
  { title: "TranslatedReading", description: "The named lens's readings of a block's output." },
);
export type TranslatedReading = Static<typeof TranslatedReading>;

export const InspectLayer = Type.Object({
  layer: Type.Integer(),
  norms: Type.Array(Type.Number(), { description: "L2 norm of the block output, one per token." }),
  predictions: optional.Array(Type.Array(Candidate), {
    description: "Logit lens: the top 3 candidates, one list per token.",
  }),
  target: optional.Array(Standing, {
    description:
      "Logit lens: rank and probability of the target token, one per token if the request named it. For the model's answer: after the last token only.",
  }),
  ...measured,
  translated: Type.Optional(TranslatedReading),
  note: Type.Optional(Type.String({ description: "Why there are no predictions." })),
});
export type InspectLayer = Static<typeof InspectLayer>;

export const MeasuredLayer = Type.Pick(InspectLayer, ["layer", "norms", "predictions", "target"], {
  title: "MeasuredLayer",
  description: "What every block's output is measured for.",
});
export type MeasuredLayer = Static<typeof MeasuredLayer>;

export const InspectPoint = Type.Object(
  {
    layer: Type.Integer(),
    point: Type.Enum([...innerPoints]),
    norms: Type.Array(Type.Number(), { description: "L2 norm, one per token." }),
    predictions: optional.Array(Type.Array(Candidate), {
      description:
        "Logit lens for block_in and mid. attn_out, ffn_in and ffn_out have none, because they are not the residual stream.",
    }),
    target: Type.Optional(Type.Array(Standing, { description: "As for a layer." })),
    ...measured,
  },
  { title: "InspectPoint", description: "A hook point inside a block." },
);
export type InspectPoint = Static<typeof InspectPoint>;

const meanShare = (description: string) =>
  Type.Union([Type.Number(), Type.Null()], { description: `${description}, mean over tokens.` });

export const AttentionHead = Type.Object(
  {
    layer: Type.Integer(),
    head: Type.Integer(),
    previous: meanShare("Attention to the previous token"),
    first: meanShare("Attention to the first token, where idle heads park"),
    own: Type.Number({ description: "Attention of tokens to themselves, mean over tokens." }),
    induction: meanShare(
      "Attention of a repeated token to the token after its first occurrence; null if no token is repeated",
    ),
    last: Type.Array(Type.Object({ position: Type.Integer(), weight: Type.Number() }), {
      description: "The positions that the last token attends to most.",
    }),
  },
  { title: "AttentionHead", description: "What a head attends to: shares of its attention in this text." },
);
export type AttentionHead = Static<typeof AttentionHead>;

export const Routing = Type.Object(
  {
    layer: Type.Integer(),
    experts: Type.Integer({ description: "Experts to choose from." }),
    used: Type.Integer({ description: "Experts per token." }),
    shares: Type.Array(Type.Number(), {
      description: "Each expert's share of all choices in this text; the shares sum to 1.",
    }),
    chosen: Type.Array(Type.Array(Type.Integer()), {
      description: "The experts of each token, best first.",
    }),
    weights: Type.Array(Type.Array(Type.Number()), {
      description: "The weights of their outputs.",
    }),
  },
  { title: "Routing", description: "Which experts a layer's router chose." },
);
export type Routing = Static<typeof Routing>;

export const Decomposition = Type.Object(
  {
    target_token: Type.String(),
    target_token_id: Type.Integer(),
    logit: Type.Number({ description: "The model's logit after the last token." }),
    sum: Type.Number({
      description:
        "Sum of all contributions below. It differs from the logit only by rounding in the model's output head.",
    }),
    embedding: Type.Number({ description: "Contribution of the input to the first block." }),
    constant: Type.Number({
      description: "Contribution of the biases of the final norm and the output head.",
    }),
    blocks: Type.Array(Type.Object({ layer: Type.Integer(), attention: Type.Number(), mlp: Type.Number() }), {
      description: "All blocks, in order.",
    }),
  },
  {
    title: "Decomposition",
    description:
      "Direct logit attribution: direct contributions to one logit, with the final norm's scale frozen.",
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
      description: "In the order of `layers`, then `points`.",
    }),
    attention: optional.Array(AttentionHead, {
      description: "Layer by layer, then head by head, in the requested order.",
    }),
    routing: Type.Optional(Type.Array(Routing, { description: "Layer by layer, in the requested order." })),
    decomposition: Type.Optional(Decomposition),
    lens: Type.Optional(LensUsed),
    target_token: optional.String({
      description: "The token that the lens tracks, if requested.",
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
  forAgents: "(prompt, or tokens as ids): norms and logit lens",
  places: {},
  check({ prompt, tokens, target_token, follow_answer }: InspectConfig): void {
    if (prompt === undefined && tokens === undefined) {
      throw missing("prompt", "or tokens is required.");
    }
    if (prompt !== undefined && tokens !== undefined) {
      throw new InvalidInput("tokens", "cannot be combined with prompt: give one of the two.");
    }
    if (target_token !== undefined && follow_answer === true) {
      throw new InvalidInput(
        "follow_answer",
        "cannot be combined with target_token: they track different tokens.",
      );
    }
  },
} satisfies Contract;
