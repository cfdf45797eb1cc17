import { UserError } from "../../contracts/user-error.js";
import type { Model } from "../../native/index.js";

/**
 * Token ids of a raw text, with what the model wants around it and without reading control tokens in it.
 * @param what how an error names the text
 * @throws UserError when it has no tokens, or more than allowed; nothing is ever cut
 */
export async function tokenizeInput(
  model: Model,
  text: string,
  maxInputTokens: number,
  what: string,
): Promise<Int32Array> {
  const tokens = await rawTokens(model, text, what);
  checkLength(model, tokens, maxInputTokens, what);
  return tokens;
}

/** @throws UserError where a text has more tokens than allowed, or than the model knows positions */
export function checkLength(
  model: Model,
  { length }: { length: number },
  maxInputTokens: number,
  what: string,
): void {
  if (length > maxInputTokens) {
    throw new UserError(`${what} has ${length} tokens; max_input_tokens allows ${maxInputTokens}.`);
  }
  checkPositions(model, length, `${what} has ${length} tokens`);
}

/** The same, however many there are. @throws UserError where there are none */
export async function rawTokens(model: Model, text: string, what: string): Promise<Int32Array> {
  const tokens = await model.tokenize(text, { special: true, parseSpecial: false });
  if (tokens.length > 0) return tokens;
  throw new UserError(`${what} gives no tokens with this model's vocabulary.`);
}

/** @throws UserError where a text and its continuation would leave the positions that the model was trained on */
export function checkPositions(model: Model, positions: number, what: string): void {
  const { nCtxTrain } = model.info;
  if (nCtxTrain > 0 && positions > nCtxTrain) {
    throw new UserError(`${what}; the model was trained on at most ${nCtxTrain} positions.`);
  }
}

/** @throws UserError with the block count where a layer does not exist */
export function checkLayers(model: Model, layers: readonly number[]): void {
  const missing = layers.filter((layer) => layer >= model.info.nLayer);
  if (missing.length === 0) return;
  throw new UserError(
    `layers: ${missing.join(", ")} ${missing.length === 1 ? "does" : "do"} not exist; ` +
      `the model has ${model.info.nLayer} blocks, 0 to ${model.info.nLayer - 1}.`,
  );
}

/** @throws UserError with the pieces where a `target_token`, or the field of that name, is not exactly one token */
export async function targetToken(model: Model, text: string, field = "target_token"): Promise<number> {
  const tokens = await model.tokenize(text, { special: false, parseSpecial: false });
  if (tokens.length === 1) return tokens[0] as number;
  const pieces = await model.pieces(tokens);
  throw new UserError(
    `${field} must encode to exactly one token; ${JSON.stringify(text)} gives ${tokens.length}: ` +
      `${pieces.map((piece) => JSON.stringify(piece)).join(" ")}.`,
  );
}

/** Token ids to their texts, each asked for once. */
export async function pieceLookup(model: Model, ids: Iterable<number>): Promise<(id: number) => string> {
  const unique = Int32Array.from(new Set(ids));
  const pieces = unique.length === 0 ? [] : await model.pieces(unique);
  const byId = new Map([...unique].map((id, index) => [id, pieces[index] as string]));
  return (id) => byId.get(id) as string;
}
