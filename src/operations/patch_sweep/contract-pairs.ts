import { InvalidInput } from "../../contracts/invalid-input.js";

/** Two texts, and the tokens that their answers are measured by; a prompt pair's own tokens win. */
interface Texts {
  clean?: string;
  corrupted?: string;
  target_token?: string;
  foil_token?: string;
}
type Pair = Texts & { clean: string; corrupted: string };

/**
 * The pairs of a patch sweep, with the tokens that each is measured by.
 * @throws InvalidInput where they are given in two ways, or not at all
 */
export function promptPairs(config: Texts & { pairs?: Pair[] }): Pair[] {
  const { clean, corrupted, pairs, target_token, foil_token } = config;
  const tokens = {
    ...(target_token === undefined ? {} : { target_token }),
    ...(foil_token === undefined ? {} : { foil_token }),
  };
  if (pairs !== undefined) {
    for (const field of ["clean", "corrupted"] as const) {
      if (config[field] !== undefined)
        throw new InvalidInput(field, "stands beside pairs; give one or the other.");
    }
    return pairs.map((pair) => ({ ...tokens, ...pair }));
  }
  if (clean === undefined) throw new InvalidInput("clean", "is required, with corrupted, or give pairs.");
  if (corrupted === undefined) throw new InvalidInput("corrupted", "is required beside clean.");
  return [{ clean, corrupted, ...tokens }];
}
