import { limits } from "./limits.js";
import { reversedBounds, reversedRange } from "./reversed-range.js";
import type { CompareConfig } from "./submission.js";
import { InvalidInput } from "./validate.js";

/** Interventions along a direction between texts. */
const alongDirection: readonly string[] = ["steer", "project_out", "clamp"];
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
export function checkCompare(config: CompareConfig): void {
  const { intervention, controls } = config;
  if (config.prompt === undefined && config.prompts === undefined) {
    throw new InvalidInput("prompt", "or prompts is required.");
  }
  if (intervention === "patch" && config.donor_prompt === undefined) {
    throw new InvalidInput("donor_prompt", "is required for patch.");
  }
  if (intervention === "swap") checkSwap(config);
  else refuse(config, ["swap", "lens"], "swap");
  if (alongDirection.includes(intervention)) checkDirection(config);
  else {
    refuse(config, ["positives", "negatives", "feature"], "steer, project_out and clamp");
    if (controls === true && intervention !== "patch" && intervention !== "swap") {
      throw new InvalidInput(
        "controls",
        `patch, steer, project_out, clamp and swap have one, not ${intervention}.`,
      );
    }
  }
  if (intervention !== "clamp") refuse(config, ["min", "max"], "clamp");
  else checkBounds(config);
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
  if (point === "head_out" && !["scale", "ablate", "patch"].includes(intervention)) {
    throw new InvalidInput("point", `head_out is for scale, ablate and patch, not for ${intervention}.`);
  }
}

function refuse(config: CompareConfig, fields: Array<keyof CompareConfig>, whose: string): void {
  for (const field of fields) {
    if (config[field] !== undefined)
      throw new InvalidInput(field, `belongs to ${whose}, not to ${config.intervention}.`);
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
    if (intervention === "clamp" && config.strength_unit !== undefined) {
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

function checkBounds({ min, max }: CompareConfig): void {
  if (min === undefined && max === undefined) throw new InvalidInput("min", "or max is required for clamp.");
  if (reversedBounds(min, max)) throw new InvalidInput("min", `must not exceed max, got ${min} and ${max}.`);
}

function checkStrengths({ intervention, strength_unit: unit = "unit", strengths }: CompareConfig): void {
  if (unit !== "unit" && intervention !== "steer" && intervention !== "clamp")
    throw new InvalidInput(
      "strength_unit",
      `${unit} has a meaning for steer and clamp, not for ${intervention}.`,
    );
  const most =
    intervention === "steer" ? strengthLimits[unit] : intervention === "clamp" ? 1 : limits.strength;
  const least = intervention === "clamp" ? 0 : -most;
  for (const [index, strength] of strengths.entries()) {
    const limit = strength > most ? `at most ${most}` : strength < least ? `at least ${least}` : undefined;
    // A clamp's strength is a share of its correction: any other leaves the projection outside the bounds.
    if (limit !== undefined && intervention === "clamp") {
      throw new InvalidInput(
        `strengths[${index}]`,
        `${limit} for clamp, whose strength is the share of the correction; got ${strength}.`,
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
