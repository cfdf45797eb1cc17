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
      description: "Zero-based block index: whose output is put into words.",
    }),
    positions: optional.Array(Type.Integer({ minimum: -limits.token_index, maximum: limits.token_index }), {
      minItems: 1,
      maxItems: limits.explain_positions,
      uniqueItems: true,
      default: [...defaults.explain_positions],
      description:
        "Token indices of the prompt, negative ones from the end: each one's row is explained by itself.",
    }),
    verbaliser: optional.String({
      minLength: 1,
      maxLength: limits.model_characters,
      description:
        "The model that is to say what a row is, named as `model` is and as wide; otherwise `model` itself.",
    }),
    verbaliser_revision: optional.String({
      minLength: 1,
      maxLength: 255,
      description: "Pins a hub revision of `verbaliser`.",
    }),
    template: text(
      "The verbaliser's prompt, with the marker once. Control tokens in it are read, so that it can be in the verbaliser's " +
        "chat format; no template is applied.",
    ),
    marker: text(
      "Text that is exactly one token of the verbaliser, and is that in the template: in its embedding's place stands the row.",
    ),
    length: optional.Number({
      exclusiveMinimum: 0,
      maximum: limits.explain_length,
      description:
        "L2 length that each row is scaled to, which a verbaliser is trained on; otherwise rows stay as they are.",
    }),
    samples: optional.Integer({
      minimum: 1,
      maximum: limits.explain_samples,
      default: defaults.explain_samples,
      description: "Descriptions of each row; more than one need a temperature.",
    }),
    temperature: optional.Number({
      minimum: 0,
      maximum: limits.explain_temperature,
      default: defaults.explain_temperature,
      description: "Of descriptions that are drawn from `seed`; 0: the most probable token each time.",
    }),
    description_tokens: optional.Integer({
      minimum: 1,
      maximum: limits.explain_tokens,
      default: defaults.explain_tokens,
      description: "Tokens of a description at most.",
    }),
    controls: optional.Boolean({
      default: defaults.explain_controls,
      description:
        "Also what the verbaliser says to each row's numbers in another order, drawn from `seed`, and to no row at all.",
    }),
  },
  {
    ...closed,
    title: "ExplainSubmission",
    description:
      "Put block outputs into words: each stands in a token embedding's place in another model's prompt, which says what it is.",
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
    ended: Type.Boolean({ description: "By the verbaliser itself; otherwise it was cut." }),
  },
  { title: "Description", description: "What the verbaliser said, once." },
);
export type Description = Static<typeof Description>;

const descriptions = (description: string) => Type.Array(Description, { description });

export const ExplainedRow = Type.Object(
  {
    position: Type.Integer({ description: "Index of its token, from 0." }),
    token: Type.String(),
    token_id: Type.Integer(),
    norm: Type.Number({ description: "L2 length of the block output." }),
    descriptions: descriptions("One a sample."),
    shuffled: Type.Optional(
      descriptions("Of the control: the same numbers in another order, drawn from `seed`."),
    ),
  },
  { title: "ExplainedRow", description: "One row of the block output, and what the verbaliser said to it." },
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
        prompt_tokens: Type.Integer({ description: "Of the template, the marked one included." }),
        token_scale: Type.Number({
          description:
            "What the model multiplies a typed token's embedding by, and a row that is put in not: 1 for most.",
        }),
      },
      { title: "Verbaliser" },
    ),
    length: Type.Union([Type.Number(), Type.Null()], {
      description: "L2 length that every row was scaled to; null: as it was.",
    }),
    explained: Type.Array(ExplainedRow, { description: "In the order of `positions`." }),
    unfilled: Type.Optional(
      descriptions("Of the control without a row: the marker stands in its place, as it is typed."),
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
      `must hold the marker ${shown(marker)} once; it does ${places} times.`,
    );
  }
  if (samples > 1 && temperature === 0) {
    throw new InvalidInput(
      "samples",
      `must be 1 at temperature 0, where all descriptions are the same, got ${samples}.`,
    );
  }
  if (verbaliser === undefined && verbaliser_revision !== undefined) {
    throw new InvalidInput("verbaliser_revision", "is of a verbaliser; name one.");
  }
}

export default {
  submission: ExplainSubmission,
  result: ExplainResult,
  forAgents: "(prompt, layer, positions, template, marker)",
  places: { verbaliser: "model" },
  check: checkExplain,
} satisfies Contract;
