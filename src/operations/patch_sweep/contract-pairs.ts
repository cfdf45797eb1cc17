import { InvalidInput, missing } from "../../contracts/invalid-input.js";

/** Two prompts, and the tokens whose logits are compared; a pair's own tokens take precedence. */
interface Texts {
  clean?: string;
  corrupted?: string;
  target_token?: string;
  foil_token?: string;
}
type Pair = Texts & { clean: string; corrupted: string };

/**
 * The prompt pairs of a patch sweep, with the tokens whose logits are compared.
 * @throws InvalidInput if they are given in both ways, or not at all
 */
export function promptPairs(config: Texts & { pairs?: Pair[] }): Pair[] {
  const { clean, corrupted, pairs, target_token, foil_token } = config;
  const tokens = {
    ...(target_token === undefined ? {} : { target_token }),
    ...(foil_token === undefined ? {} : { foil_token }),
  };
  if (pairs !== undefined) {
    for (const field of ["clean", "corrupted"] as const) {
      if (config[field] !== undefined) throw new InvalidInput(field, "cannot be combined with pairs.");
    }
    return pairs.map((pair) => ({ ...tokens, ...pair }));
  }
  if (clean === undefined) throw missing("clean", "and corrupted are required, unless pairs is given.");
  if (corrupted === undefined) throw missing("corrupted", "is required with clean.");
  return [{ clean, corrupted, ...tokens }];
}
