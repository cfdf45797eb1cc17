import { UserError } from "../../contracts/user-error.js";
import type { Model } from "../../native/index.js";

/**
 * Token ids of a raw text, with the model's special tokens added but without parsing control tokens in it.
 * @param what how errors refer to the text
 * @throws UserError if it has no tokens or too many; nothing is truncated
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

/** Token ids that the caller gives instead of a text. @throws UserError if one does not exist, or there are too many */
export function givenTokens(model: Model, ids: readonly number[], maxInputTokens: number): Int32Array {
  const { nVocab } = model.info;
  const odd = ids.find((id) => id >= nVocab);
  if (odd !== undefined) {
    throw new UserError(
      `tokens: id ${odd} does not exist; the model's vocabulary has ids 0 to ${nVocab - 1}.`,
    );
  }
  checkLength(model, ids, maxInputTokens, "tokens");
  return Int32Array.from(ids);
}

/** @throws UserError if a text has more tokens than allowed, or than the model has positions */
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

/** The same without a length check. @throws UserError if there are no tokens */
export async function rawTokens(model: Model, text: string, what: string): Promise<Int32Array> {
  const tokens = await model.tokenize(text, { special: true, parseSpecial: false });
  if (tokens.length > 0) return tokens;
  throw new UserError(`${what} yields no tokens with this model's vocabulary.`);
}

/** @throws UserError if a text and its continuation would exceed the positions that the model was trained on */
export function checkPositions(model: Model, positions: number, what: string): void {
  const { nCtxTrain } = model.info;
  if (nCtxTrain > 0 && positions > nCtxTrain) {
    throw new UserError(`${what}; the model was trained on at most ${nCtxTrain} positions.`);
  }
}

/** @throws UserError with the block count if a layer does not exist */
export function checkLayers(model: Model, layers: readonly number[]): void {
  const missing = layers.filter((layer) => layer >= model.info.nLayer);
  if (missing.length === 0) return;
  throw new UserError(
    `layers: ${missing.join(", ")} ${missing.length === 1 ? "does" : "do"} not exist; ` +
      `the model has ${model.info.nLayer} blocks, 0 to ${model.info.nLayer - 1}.`,
  );
}

/**
 * The index of a prompt's token from 0, of a position that may count from the end.
 * @throws UserError with the name of the field if the prompt has no such token
 */
export function tokenIndex(field: string, position: number, length: number): number {
  const index = position < 0 ? length + position : position;
  if (index >= 0 && index < length) return index;
  throw new UserError(
    `${field}: ${position} does not exist; the prompt has ${length} tokens, 0 to ${length - 1}.`,
  );
}

/** @throws UserError with the pieces if the text in `field` is not exactly one token */
export async function targetToken(model: Model, text: string, field = "target_token"): Promise<number> {
  const tokens = await model.tokenize(text, { special: false, parseSpecial: false });
  if (tokens.length === 1) return tokens[0] as number;
  const pieces = await model.pieces(tokens);
  const other = text.startsWith(" ") ? text.slice(1) : ` ${text}`;
  const meant =
    other === "" || other === " "
      ? false
      : (await model.tokenize(other, { special: false, parseSpecial: false })).length === 1;
  throw new UserError(
    `${field} must encode to exactly one token; ${JSON.stringify(text)} yields ${tokens.length}: ` +
      `${pieces.map((piece) => JSON.stringify(piece)).join(" ")}.${meant ? ` ${didYouMean(other)}` : ""}`,
  );
}

/** Asks about a tracked token that differs from the model's answer by its leading space alone; empty if it does not. */
export function spaceNote(target: string, answer: string, what = "target"): string {
  if (target === answer || target.trim() === "" || target.trimStart() !== answer.trimStart()) return "";
  return `The ${what} token ${JSON.stringify(target)} differs from the model's answer by its leading space. ${didYouMean(answer)}`;
}

function didYouMean(token: string): string {
  return `Did you mean ${JSON.stringify(token)}?`;
}

/** Looks up the texts of token ids, each once. */
export async function pieceLookup(model: Model, ids: Iterable<number>): Promise<(id: number) => string> {
  const unique = Int32Array.from(new Set(ids));
  const pieces = unique.length === 0 ? [] : await model.pieces(unique);
  const byId = new Map([...unique].map((id, index) => [id, pieces[index] as string]));
  return (id) => byId.get(id) as string;
}
