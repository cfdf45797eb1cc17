import { InvalidInput } from "./invalid-input.js";
import type { PatchSweepConfig, PromptPair } from "./submission.js";

/**
 * The pairs of a patch sweep, with the tokens that each is measured by.
 * @throws InvalidInput where they are given in two ways, or not at all
 */
export function promptPairs(config: PatchSweepConfig): PromptPair[] {
  const { clean, corrupted, pairs, target_token, foil_token } = config;
  if (pairs !== undefined) {
    for (const field of ["clean", "corrupted"] as const) {
      if (config[field] !== undefined)
        throw new InvalidInput(field, "stands beside pairs; give one or the other.");
    }
    return pairs.map((pair) => ({
      ...(target_token === undefined ? {} : { target_token }),
      ...(foil_token === undefined ? {} : { foil_token }),
      ...pair,
    }));
  }
  if (clean === undefined) throw new InvalidInput("clean", "is required, with corrupted, or give pairs.");
  if (corrupted === undefined) throw new InvalidInput("corrupted", "is required beside clean.");
  return [
    {
      clean,
      corrupted,
      ...(target_token === undefined ? {} : { target_token }),
      ...(foil_token === undefined ? {} : { foil_token }),
    },
  ];
}

/**
 * What the fields of a patch sweep mean for each other.
 * @throws InvalidInput
 */
export function checkPatchSweep(config: PatchSweepConfig): void {
  if (config.heads !== undefined && !config.points.includes("head_out")) {
    throw new InvalidInput("heads", "are those of point head_out.");
  }
  for (const [index, { target_token, foil_token }] of promptPairs(config).entries()) {
    if (target_token === undefined || target_token !== foil_token) continue;
    const field =
      config.pairs?.[index]?.foil_token === undefined ? "foil_token" : `pairs[${index}].foil_token`;
    throw new InvalidInput(field, "must differ from target_token.");
  }
}
