import { limits } from "../../contracts/limits.js";
import { UserError } from "../../contracts/user-error.js";
import { bytesText } from "../../text/words.js";
import type { ExampleTokens } from "./example-tokens.js";

/** Every row of some texts, text after text. */
export interface AllRows {
  /** The text of each row, counted from 0. */
  texts: Int32Array;
  /** The token within its text of each row. */
  tokens: Int32Array;
  /** Size of the rows of all layers, as float32. */
  bytes: number;
}

/** The rows of some texts, from each text's start. @throws UserError if they exceed a probe's limits */
export function allRows(
  texts: readonly ExampleTokens[],
  { layers, hidden }: { layers: number; hidden: number },
): AllRows {
  const rows = texts.reduce((sum, { tokens, start }) => sum + tokens.length - start, 0);
  if (rows > limits.probe_rows) {
    throw new UserError(
      `rows all: the examples have ${rows} activations; a probe is trained on at most ${limits.probe_rows}.`,
    );
  }
  const bytes = rows * hidden * 4 * layers;
  if (bytes > limits.probe_bytes) {
    throw new UserError(
      `rows all: ${rows} rows of ${hidden} numbers at ${layers === 1 ? "1 layer" : `${layers} layers`} take ` +
        `${bytesText(bytes)}; at most ${bytesText(limits.probe_bytes)} are allowed: choose fewer layers or texts.`,
    );
  }
  const found = { texts: new Int32Array(rows), tokens: new Int32Array(rows), bytes };
  let row = 0;
  for (const [text, { tokens, start }] of texts.entries()) {
    for (let token = start; token < tokens.length; token++, row++) {
      found.texts[row] = text;
      found.tokens[row] = token;
    }
  }
  return found;
}

/** A prefix tree of token sequences. */
type Beginnings = Map<number, Beginnings>;

/**
 * How many rows of held-out texts also occur in training texts: in a causal model an activation depends only on the
 * tokens up to it, so texts with a common prefix share its rows.
 * @param train whether each text is for training
 */
export function sharedRows(texts: readonly ExampleTokens[], train: readonly boolean[]): number {
  const beginnings: Beginnings = new Map();
  for (const [text, { tokens }] of texts.entries()) {
    if (!train[text]) continue;
    let at = beginnings;
    for (const token of tokens) {
      const next = at.get(token) ?? new Map();
      at.set(token, next);
      at = next;
    }
  }
  let shared = 0;
  for (const [text, { tokens, start }] of texts.entries()) {
    if (train[text]) continue;
    let at: Beginnings | undefined = beginnings;
    for (const [index, token] of tokens.entries()) {
      at = at.get(token);
      if (at === undefined) break;
      if (index >= start) shared++;
    }
  }
  return shared;
}
