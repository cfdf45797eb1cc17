import { InvalidInput } from "../../contracts/invalid-input.js";
import type { PatchSweepConfig, PromptPair } from "./contract.js";

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
