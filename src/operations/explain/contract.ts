import Type, { type Static } from "typebox";
import { InvalidInput } from "../../contracts/invalid-input.js";
import { defaults, limits } from "../../contracts/limits.js";
import { optional } from "../../contracts/optional.js";
import { notedResultFields } from "../../contracts/result-fields.js";
import {
  type CommonDefaults,
  closed,
  commonOfFeatures,
  type Filled,
  prompt,
  text,
} from "../../contracts/submission-fields.js";
import { shown } from "../../contracts/validate.js";
import type { Contract } from "../contract.js";

export const ExplainSubmission = Type.Object(
  {
    operation: Type.Literal("explain"),
    ...commonOfFeatures,
    prompt,
    layer: Type.Integer({
      minimum: 0,
      maximum: limits.layer_index,
      description: "Zero-based index of the block whose output is described.",
    }),
    positions: optional.Array(Type.Integer({ minimum: -limits.token_index, maximum: limits.token_index }), {
      minItems: 1,
      maxItems: limits.explain_positions,
      uniqueItems: true,
      default: [...defaults.explain_positions],
      description:
        "Token indices of the prompt; negative indices count from the end. Each activation is described separately.",
    }),
    verbaliser: optional.String({
      minLength: 1,
      maxLength: limits.model_characters,
      description:
        "The model that writes the descriptions, in any form that `model` accepts, with the same hidden size. Default: `model` itself.",
    }),
    verbaliser_revision: optional.String({
      minLength: 1,
      maxLength: 255,
      description: "Pins a hub revision of `verbaliser`.",
    }),
    template: text(
      "The verbaliser's prompt, containing the marker once. Control tokens are parsed, so it can be written in the verbaliser's " +
        "chat format; no chat template is applied.",
    ),
    marker: text(
      "Text that is exactly one token of the verbaliser, also within the template. The activation replaces that token's embedding.",
    ),
    length: optional.Number({
      exclusiveMinimum: 0,
      maximum: limits.explain_length,
      description:
        "L2 norm to which each activation is scaled, usually the norm that the verbaliser was trained on. Default: unscaled.",
    }),
    samples: optional.Integer({
      minimum: 1,
      maximum: limits.explain_samples,
      default: defaults.explain_samples,
      description: "Descriptions per activation; more than one requires a temperature above 0.",
    }),
    temperature: optional.Number({
      minimum: 0,
      maximum: limits.explain_temperature,
      default: defaults.explain_temperature,
      description: "Sampling temperature, with randomness from `seed`; 0 is greedy decoding.",
    }),
    description_tokens: optional.Integer({
      minimum: 1,
      maximum: limits.explain_tokens,
      default: defaults.explain_tokens,
      description: "Maximum length of a description, in tokens.",
    }),
    controls: optional.Boolean({
      default: defaults.explain_controls,
      description:
        "Also run two controls: each activation with its values shuffled by `seed`, and no activation at all.",
    }),
  },
  {
    ...closed,
    title: "ExplainSubmission",
    description:
      "Describe block outputs in words: each replaces a token embedding in the prompt of a verbaliser model.",
  },
);

export type ExplainConfig = Filled<
  Static<typeof ExplainSubmission>,
  | Exclude<CommonDefaults, "layers" | "max_tokens">
  | "positions"
  | "samples"
  | "temperature"
  | "description_tokens"
  | "controls"
>;

export const Description = Type.Object(
  {
    text: Type.String(),
    tokens: Type.Integer(),
    ended: Type.Boolean({
      description: "Whether the verbaliser ended the description itself; otherwise it was cut off.",
    }),
  },
  { title: "Description", description: "One description by the verbaliser." },
);
export type Description = Static<typeof Description>;

const descriptions = (description: string) => Type.Array(Description, { description });

export const ExplainedRow = Type.Object(
  {
    position: Type.Integer({ description: "Zero-based token index." }),
    token: Type.String(),
    token_id: Type.Integer(),
    norm: Type.Number({ description: "L2 norm of the block output." }),
    descriptions: descriptions("One per sample."),
    shuffled: Type.Optional(
      descriptions("Control: descriptions of the activation with its values shuffled by `seed`."),
    ),
  },
  {
    title: "ExplainedRow",
    description: "One activation of the block output, and the verbaliser's descriptions of it.",
  },
);
export type ExplainedRow = Static<typeof ExplainedRow>;

export const ExplainResult = Type.Object(
  {
    layer: Type.Integer(),
    verbaliser: Type.Object(
      {
        name: Type.String(),
        quantization: Type.String(),
        bytes: Type.Integer(),
        prompt_tokens: Type.Integer({ description: "Tokens of the template, including the marker." }),
        token_scale: Type.Number({
          description:
            "Factor that the model applies to token embeddings but not to an inserted activation; 1 for most models.",
        }),
      },
      { title: "Verbaliser" },
    ),
    length: Type.Union([Type.Number(), Type.Null()], {
      description: "L2 norm to which every activation was scaled; null if unscaled.",
    }),
    explained: Type.Array(ExplainedRow, { description: "In the order of `positions`." }),
    unfilled: Type.Optional(
      descriptions("Control: descriptions without an activation; the marker keeps its own embedding."),
    ),
    ...notedResultFields,
  },
  { title: "ExplainResult" },
);
export type ExplainResult = Static<typeof ExplainResult>;

function checkExplain(config: ExplainConfig): void {
  const { template, marker, samples, temperature, verbaliser, verbaliser_revision } = config;
  const places = template.split(marker).length - 1;
  if (places !== 1) {
    throw new InvalidInput(
      "template",
      `must contain the marker ${shown(marker)} exactly once, got ${places} times.`,
    );
  }
  if (samples > 1 && temperature === 0) {
    throw new InvalidInput(
      "samples",
      `must be 1 at temperature 0, where all descriptions are identical, got ${samples}.`,
    );
  }
  if (verbaliser === undefined && verbaliser_revision !== undefined) {
    throw new InvalidInput("verbaliser_revision", "requires verbaliser.");
  }
}

export default {
  submission: ExplainSubmission,
  result: ExplainResult,
  forAgents: "(prompt, layer, positions, template, marker)",
  places: { verbaliser: "model" },
  check: checkExplain,
} satisfies Contract;
