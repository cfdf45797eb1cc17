import Type, { type Static } from "typebox";
import { interventionOf, interventions, kindsThat } from "../../contracts/interventions.js";
import { InvalidInput } from "../../contracts/invalid-input.js";
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

/** Interventions along a direction between texts, in words. */
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
        "How a row h of the block output changes at strength s on every forward pass: " +
        `${interventions.map((kind) => interventionOf(kind).formula).join("; ")}. u is the unit direction of positive ` +
        "against negative.",
    }),
    strengths: optional.Array(
      Type.Number({ minimum: -limits.strength_vector, maximum: limits.strength_vector }),
      {
        minItems: 1,
        maxItems: limits.strengths,
        default: [...defaults.strengths],
        description:
          `Neutral: 1 for ${listed(kindsThat(({ neutral }) => neutral === 1))}, 0 for all others. From -${limits.strength} to ${limits.strength}; for steer in the ` +
          `unit vector to ±${limits.strength_vector}, in row_norm to ±${limits.strength_row_norm}; for clamp from 0 to 1, by default ` +
          `${defaults.clamp_strengths.join(", ")}.`,
      },
    ),
    strength_unit: optional.Enum([...strengthUnits], {
      description:
        "What a strength of 1 adds in steer: the unit vector (default), the difference as it is (vector), or as " +
        "much as the row is long (row_norm), which means the same in every model. Also the unit of min and max.",
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
          "Tokens whose rows are changed: the last one of each forward pass, which is the prompt's last token and " +
          "every generated one (last, the default), all, prompt, generated, or ranges [first, last] of token " +
          "indices, both included, negative from the end of the prompt.",
      },
    ),
    target_token: Type.Optional(
      text(
        "Text that encodes to exactly one token, without special tokens; otherwise the baseline's top token.",
      ),
    ),
    prompts: optional.Array(prompt, {
      minItems: 1,
      maxItems: limits.prompts,
      description: "Prompts to compare; without them the list is [`prompt`]. One of the two is required.",
    }),
    donor_prompt: Type.Optional(text("Donor text; required for patch.")),
    positive: Type.Optional(text(`With \`negative\`, for ${alongDirection}: u is their unit difference.`)),
    negative: Type.Optional(text(`With \`positive\`, for ${alongDirection}.`)),
    positives: directionTexts("In place of `positive` and `negative`: u is the unit difference of means."),
    negatives: directionTexts("With `positives`."),
    feature: optional.Array(Type.Union([Name, Type.Integer({ minimum: 0, maximum: limits.feature_index })]), {
      minItems: 2,
      maxItems: 2,
      description:
        "[dictionary, index]: a stored dictionary and one of its features, in place of texts: the direction is that " +
        "feature's decoder row.",
    }),
    swap: optional.Array(text("Text that encodes to exactly one token."), {
      minItems: 2,
      maxItems: 2,
      description:
        "For swap: two tokens whose coordinates in the lens's directions are exchanged, at every one of the layers, with " +
        "the values that the prompt's own run has there; at strength s the row goes s of the way.",
    }),
    lens: named("For swap: the stored lens whose directions they are; otherwise the logit lens."),
    min: bound("For clamp: the least projection on u, in strength_unit; the least activation of a feature."),
    max: bound("For clamp: the greatest projection on u, or a feature's greatest activation."),
    point: optional.Enum([...changedPoints], {
      description:
        "What of the block is changed: its output (block_out, the default), what its attention or its MLP adds (attn_out, " +
        "ffn_out), the stream before them (block_in, mid), or what its heads read (head_out, for scale, ablate and patch).",
    }),
    heads: headList("Of head_out, the heads that are changed, together; otherwise all."),
    controls: optional.Boolean({
      description:
        "Also tries a random vector of the same length, drawn from `seed`, at every strength; for " +
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
    point: optional.Enum([...changedPoints], {
      description: "What of the block was changed, where not its output.",
    }),
    heads: Type.Optional(Type.Array(Type.Integer())),
    layers: optional.Array(Type.Integer(), { description: "Of a swap, all layers that were changed." }),
    swapped: optional.Array(Type.Object({ token: Type.String(), token_id: Type.Integer() }), {
      description: "Of a swap, the two tokens.",
    }),
    lens: Type.Optional(LensUsed),
    position: Type.String(),
    strength_unit: Type.Optional(Type.Enum([...strengthUnits])),
    vector_length: optional.Number({
      description: "L2 length of the donor's state, or of the difference of the texts' states.",
    }),
    control_seed: Type.Optional(Type.Integer({ description: "What the random vector was drawn from." })),
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
 * What a comparison's fields mean for each other. The fields of the contract's first version are accepted where they
 * have no part, as ever; those that came later are refused there.
 * @throws InvalidInput
 */
function checkCompare(config: CompareConfig): void {
  const { intervention, controls } = config;
  if (config.prompt === undefined && config.prompts === undefined) {
    throw new InvalidInput("prompt", "or prompts is required.");
  }
  const { needs, bounded } = interventionOf(intervention);
  if (needs === "donor" && config.donor_prompt === undefined) {
    throw new InvalidInput("donor_prompt", `is required for ${intervention}.`);
  }
  if (needs === "tokens") checkSwap(config);
  else refuse(config, ["swap", "lens"], (one) => one.needs === "tokens");
  if (needs === "direction") checkDirection(config);
  else refuse(config, ["positives", "negatives", "feature"], (one) => one.needs === "direction");
  if (controls === true && needs === undefined) {
    throw new InvalidInput(
      "controls",
      `${listed(kindsThat((one) => one.needs))} have one, not ${intervention}.`,
    );
  }
  if (bounded) checkBounds(config);
  else refuse(config, ["min", "max"], (one) => one.bounded);
  checkStrengths(config);
  checkPositions(config);
  checkPoint(config);
}

/** What is put in is what the prompt's own run has, so that there is something for its tokens alone. */
function checkSwap({ swap, positions = "last", point }: CompareConfig): void {
  if (swap === undefined) throw new InvalidInput("swap", "is required for swap.");
  if (positions === "all" || positions === "generated") {
    throw new InvalidInput(
      "positions",
      `of a swap are the prompt's: last, prompt or ranges, not ${positions}.`,
    );
  }
  if (point !== undefined && point !== "block_out") {
    throw new InvalidInput("point", "a lens is one of block outputs; leave point out.");
  }
}

function checkPoint({ point, heads, intervention }: CompareConfig): void {
  if (heads !== undefined && point !== "head_out") {
    throw new InvalidInput("heads", "are those of point head_out.");
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
      throw new InvalidInput("feature", "is a dictionary's name and a feature's index, in this order.");
    }
    for (const field of ["positive", "negative", "positives", "negatives"] as const) {
      if (config[field] !== undefined)
        throw new InvalidInput(field, "stands beside feature; give one or the other.");
    }
    if (interventionOf(intervention).bounded && config.strength_unit !== undefined) {
      throw new InvalidInput(
        "strength_unit",
        "has no meaning for a feature's clamp: min and max are its activation.",
      );
    }
    return;
  }
  if (positives === undefined && negatives === undefined) {
    for (const side of ["positive", "negative"] as const) {
      if (config[side] === undefined) throw new InvalidInput(side, `is required for ${intervention}.`);
    }
    if (config.positive === config.negative) {
      throw new InvalidInput(
        "negative",
        "must differ from positive; the same text twice gives no direction.",
      );
    }
    return;
  }
  for (const side of ["positive", "negative"] as const) {
    if (config[side] !== undefined)
      throw new InvalidInput(side, "stands beside positives and negatives; give one or the other.");
  }
  if (positives === undefined) throw new InvalidInput("positives", "is required beside negatives.");
  if (negatives === undefined) throw new InvalidInput("negatives", "is required beside positives.");
  const first = new Set(positives);
  const shared = negatives.findIndex((text) => first.has(text));
  if (shared !== -1) throw new InvalidInput(`negatives[${shared}]`, "is among positives, too.");
}

function checkBounds({ intervention, min, max }: CompareConfig): void {
  if (min === undefined && max === undefined)
    throw new InvalidInput("min", `or max is required for ${intervention}.`);
  if (reversedBounds(min, max)) throw new InvalidInput("min", `must not exceed max, got ${min} and ${max}.`);
}

function checkStrengths({ intervention, strength_unit: unit = "unit", strengths }: CompareConfig): void {
  const { units, bounded } = interventionOf(intervention);
  if (unit !== "unit" && !units)
    throw new InvalidInput(
      "strength_unit",
      `${unit} has a meaning for ${listed(kindsThat((one) => one.units))}, not for ${intervention}.`,
    );
  const most = bounded ? 1 : strengthLimits[unit];
  const least = bounded ? 0 : -most;
  for (const [index, strength] of strengths.entries()) {
    const limit = strength > most ? `at most ${most}` : strength < least ? `at least ${least}` : undefined;
    // A clamp's strength is a share of its correction: any other leaves the projection outside the bounds.
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
  forAgents:
    "(prompt or prompts, intervention, strengths, one layer): what an edit of a block's output changes",
  places: {},
  check(config: CompareConfig, given: Record<string, unknown>): void {
    if (interventionOf(config.intervention).bounded && given.strengths === undefined) {
      config.strengths = [...defaults.clamp_strengths];
    }
    checkCompare(config);
  },
} satisfies Contract;
