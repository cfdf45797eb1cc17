import Type, { type Static } from "typebox";
import { interventionOf, interventions, kindsThat } from "../../contracts/interventions.js";
import { InvalidInput, missing } from "../../contracts/invalid-input.js";
import { defaults, limits } from "../../contracts/limits.js";
import { Name } from "../../contracts/live.js";
import { changedPoints, positionNames, strengthUnits } from "../../contracts/names.js";
import { optional } from "../../contracts/optional.js";
import { LensUsed, notedResultFields } from "../../contracts/result-fields.js";
import { reversedBounds, reversedRange } from "../../contracts/reversed-range.js";
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
import { listed } from "../../text/words.js";
import type { Contract } from "../contract.js";

/** The interventions along a direction between texts, as a sentence lists them. */
const alongDirection = listed(kindsThat(({ needs }) => needs === "direction"));

const directionTexts = (description: string) =>
  optional.Array(text("Raw text."), { minItems: 1, maxItems: limits.direction_texts, description });

const bound = (description: string) =>
  Type.Optional(Type.Number({ minimum: -limits.projection, maximum: limits.projection, description }));

export const CompareSubmission = Type.Object(
  {
    operation: Type.Literal("compare"),
    ...common,
    prompt: Type.Optional(prompt),
    intervention: optional.Enum([...interventions], {
      default: defaults.intervention,
      description:
        "How an activation h at the block's output changes at strength s in every forward pass: " +
        `${interventions.map((kind) => interventionOf(kind).formula).join("; ")}. u is the unit direction from ` +
        "negative to positive.",
    }),
    strengths: optional.Array(
      Type.Number({ minimum: -limits.strength_vector, maximum: limits.strength_vector }),
      {
        minItems: 1,
        maxItems: limits.strengths,
        default: [...defaults.strengths],
        description:
          `Neutral: 1 for ${listed(kindsThat(({ neutral }) => neutral === 1))}, 0 for all others. From -${limits.strength} to ${limits.strength}; for steer in ` +
          `unit vector up to ±${limits.strength_vector}, in unit row_norm up to ±${limits.strength_row_norm}; for clamp from 0 to 1, by default ` +
          `${defaults.clamp_strengths.join(", ")}.`,
      },
    ),
    strength_unit: optional.Enum([...strengthUnits], {
      description:
        "What strength 1 adds for steer: the unit vector (unit, the default), the raw difference (vector), or the direction " +
        "at the norm of the activation (row_norm), which is comparable between models. Also the unit of min and max.",
    }),
    positions: optional.Union(
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
          "Tokens to edit: the last token of each forward pass, which is the last prompt token and " +
          "every generated token (last, the default), all, prompt, generated, or ranges [first, last] of token " +
          "indices, both included; negative indices count from the end of the prompt.",
      },
    ),
    target_token: Type.Optional(
      text(
        "Text that encodes to exactly one token, without special tokens. Default: the baseline's top token.",
      ),
    ),
    prompts: optional.Array(prompt, {
      minItems: 1,
      maxItems: limits.prompts,
      description: "Prompts to compare, instead of the single `prompt`. One of the two fields is required.",
    }),
    donor_prompt: Type.Optional(text("Donor text; required for patch.")),
    positive: Type.Optional(
      text(`With \`negative\`, for ${alongDirection}: u is the unit vector of their difference.`),
    ),
    negative: Type.Optional(text(`With \`positive\`, for ${alongDirection}.`)),
    positives: directionTexts(
      "Instead of `positive`: u is the unit vector of the difference of the two means.",
    ),
    negatives: directionTexts("Instead of `negative`; requires `positives`."),
    feature: optional.Array(Type.Union([Name, Type.Integer({ minimum: 0, maximum: limits.feature_index })]), {
      minItems: 2,
      maxItems: 2,
      description:
        "[dictionary, index]: a saved dictionary and one of its features. The feature's decoder row is the direction, " +
        "instead of texts.",
    }),
    swap: optional.Array(text("Text that encodes to exactly one token."), {
      minItems: 2,
      maxItems: 2,
      description:
        "For swap: two tokens whose coordinates along the lens's directions are exchanged at each layer, using the values " +
        "from the unmodified run of the prompt. Strength s moves the activation the fraction s of the way.",
    }),
    lens: named("For swap: the saved lens that defines the directions. Default: the logit lens."),
    min: bound(
      "For clamp: lower bound of the projection on u, in strength_unit, or of a feature's activation.",
    ),
    max: bound("For clamp: upper bound of the projection on u, or of a feature's activation."),
    point: optional.Enum([...changedPoints], {
      description:
        "Hook point to change: the block's output (block_out, the default), what its attention or MLP adds (attn_out, " +
        "ffn_out), the residual stream before each (block_in, mid), the MLP's input (ffn_in), or the outputs of its heads (head_out, for scale, " +
        "ablate and patch).",
    }),
    heads: headList("For head_out: the heads to change, all in the same run. Default: all heads."),
    controls: optional.Boolean({
      description:
        "Also runs a control at every strength: a norm-matched random vector drawn from `seed`. For " +
        `${listed(kindsThat(({ needs }) => needs))}.`,
    }),
  },
  {
    ...closed,
    title: "CompareSubmission",
    description: "Compare the model with and without an intervention at the first selected layer.",
  },
);

export type CompareConfig = Filled<
  Static<typeof CompareSubmission>,
  CommonDefaults | "intervention" | "strengths"
>;

export const Change = Type.Object(
  {
    rows: Type.Integer({ description: "Number of edited token positions, over all passes." }),
    length: Type.Number({ description: "L2 norm of the change, mean over these positions." }),
    row_length: Type.Number({
      description: "L2 norm of the activation before the change, mean over these positions.",
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
    description:
      "The same trial with a norm-matched random vector instead of the donor's activation or the direction.",
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
    point: optional.Enum([...changedPoints], {
      description: "The hook point that was changed, if not block_out.",
    }),
    heads: Type.Optional(Type.Array(Type.Integer())),
    layers: optional.Array(Type.Integer(), { description: "For swap: all layers that were changed." }),
    swapped: optional.Array(Type.Object({ token: Type.String(), token_id: Type.Integer() }), {
      description: "For swap: the two tokens.",
    }),
    lens: Type.Optional(LensUsed),
    position: Type.String(),
    strength_unit: Type.Optional(Type.Enum([...strengthUnits])),
    vector_length: optional.Number({
      description: "L2 norm of the donor's activation, or of the difference between the texts' activations.",
    }),
    control_seed: Type.Optional(Type.Integer({ description: "Seed of the random vector." })),
    ...notedResultFields,
  },
  { title: "CompareResult" },
);
export type CompareResult = Static<typeof CompareResult>;

const strengthLimits = {
  unit: limits.strength,
  vector: limits.strength_vector,
  row_norm: limits.strength_row_norm,
};

/**
 * Checks constraints between fields. Fields of the contract's first version are still accepted where they have no effect;
 * later fields are rejected there.
 * @throws InvalidInput
 */
function checkCompare(config: CompareConfig): void {
  const { intervention, controls } = config;
  if (config.prompt === undefined && config.prompts === undefined) {
    throw missing("prompt", "or prompts is required.");
  }
  const { needs, bounded } = interventionOf(intervention);
  if (needs === "donor" && config.donor_prompt === undefined) {
    throw missing("donor_prompt", `is required for ${intervention}.`);
  }
  if (needs === "tokens") checkSwap(config);
  else refuse(config, ["swap", "lens"], (one) => one.needs === "tokens");
  if (needs === "direction") checkDirection(config);
  else refuse(config, ["positives", "negatives", "feature"], (one) => one.needs === "direction");
  if (controls === true && needs === undefined) {
    throw new InvalidInput(
      "controls",
      `are available for ${listed(kindsThat((one) => one.needs))}, not for ${intervention}.`,
    );
  }
  if (bounded) checkBounds(config);
  else refuse(config, ["min", "max"], (one) => one.bounded);
  checkStrengths(config);
  checkPositions(config);
  checkPoint(config);
}

/** A swap inserts values from the unmodified run of the prompt, so it can only edit prompt tokens. */
function checkSwap({ swap, positions = "last", point }: CompareConfig): void {
  if (swap === undefined) throw missing("swap", "is required for swap.");
  if (positions === "all" || positions === "generated") {
    throw new InvalidInput(
      "positions",
      `must be last, prompt or ranges for a swap, which edits prompt tokens only; got ${positions}.`,
    );
  }
  if (point !== undefined && point !== "block_out") {
    throw new InvalidInput("point", "cannot be set for a swap: a lens reads block outputs only.");
  }
}

function checkPoint({ point, heads, intervention }: CompareConfig): void {
  if (heads !== undefined && point !== "head_out") {
    throw new InvalidInput("heads", "requires point head_out.");
  }
  if (point === "head_out" && !interventionOf(intervention).heads) {
    const those = listed(kindsThat((one) => one.heads));
    throw new InvalidInput("point", `head_out is for ${those}, not for ${intervention}.`);
  }
}

function refuse(
  config: CompareConfig,
  fields: Array<keyof CompareConfig>,
  whose: Parameters<typeof kindsThat>[0],
): void {
  for (const field of fields) {
    if (config[field] !== undefined)
      throw new InvalidInput(field, `belongs to ${listed(kindsThat(whose))}, not to ${config.intervention}.`);
  }
}

function checkDirection(config: CompareConfig): void {
  const { intervention, positives, negatives } = config;
  if (config.feature !== undefined) {
    const [dictionary, index] = config.feature;
    if (typeof dictionary !== "string" || typeof index !== "number") {
      throw new InvalidInput("feature", "must be a dictionary's name followed by a feature's index.");
    }
    for (const field of ["positive", "negative", "positives", "negatives"] as const) {
      if (config[field] !== undefined) throw new InvalidInput(field, "cannot be combined with feature.");
    }
    if (interventionOf(intervention).bounded && config.strength_unit !== undefined) {
      throw new InvalidInput(
        "strength_unit",
        "does not apply to clamping a feature: min and max bound its activation.",
      );
    }
    return;
  }
  if (positives === undefined && negatives === undefined) {
    for (const side of ["positive", "negative"] as const) {
      if (config[side] === undefined) throw missing(side, `is required for ${intervention}.`);
    }
    if (config.positive === config.negative) {
      throw new InvalidInput("negative", "must differ from positive: two equal texts define no direction.");
    }
    return;
  }
  for (const side of ["positive", "negative"] as const) {
    if (config[side] !== undefined)
      throw new InvalidInput(side, "cannot be combined with positives and negatives.");
  }
  if (positives === undefined) throw missing("positives", "is required with negatives.");
  if (negatives === undefined) throw missing("negatives", "is required with positives.");
  const first = new Set(positives);
  const shared = negatives.findIndex((text) => first.has(text));
  if (shared !== -1) throw new InvalidInput(`negatives[${shared}]`, "is also in positives.");
}

function checkBounds({ intervention, min, max }: CompareConfig): void {
  if (min === undefined && max === undefined) throw missing("min", `or max is required for ${intervention}.`);
  if (reversedBounds(min, max)) throw new InvalidInput("min", `must not exceed max, got ${min} and ${max}.`);
}

function checkStrengths({ intervention, strength_unit: unit = "unit", strengths }: CompareConfig): void {
  const { units, bounded } = interventionOf(intervention);
  if (unit !== "unit" && !units)
    throw new InvalidInput(
      "strength_unit",
      `${unit} applies to ${listed(kindsThat((one) => one.units))}, not to ${intervention}.`,
    );
  const most = bounded ? 1 : strengthLimits[unit];
  const least = bounded ? 0 : -most;
  for (const [index, strength] of strengths.entries()) {
    const limit = strength > most ? `at most ${most}` : strength < least ? `at least ${least}` : undefined;
    // A clamp's strength is the share of its correction: a value outside 0 to 1 leaves the projection outside the bounds.
    if (limit !== undefined && bounded) {
      throw new InvalidInput(
        `strengths[${index}]`,
        `${limit} for ${intervention}, whose strength is the share of the correction; got ${strength}.`,
      );
    }
    if (limit !== undefined) throw new InvalidInput(`strengths[${index}]`, `${limit}, got ${strength}.`);
  }
}

function checkPositions({ positions }: CompareConfig): void {
  if (!Array.isArray(positions)) return;
  const fault = reversedRange(positions as Array<[number, number]>);
  if (fault !== null) throw new InvalidInput(`positions[${fault.index}]`, fault.sentence);
}

export default {
  submission: CompareSubmission,
  result: CompareResult,
  forAgents: "(prompt or prompts, intervention, strengths, one layer): the effect of an edit",
  places: {},
  check(config: CompareConfig, given: Record<string, unknown>): void {
    if (interventionOf(config.intervention).bounded && given.strengths === undefined) {
      config.strengths = [...defaults.clamp_strengths];
    }
    checkCompare(config);
  },
} satisfies Contract;
