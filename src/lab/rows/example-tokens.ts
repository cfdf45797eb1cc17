import type { RowsRead } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import type { Model } from "../../native/index.js";
import { rawTokens } from "./tokens.js";

/** A text to read and, for rows `response`, the prompt that it follows. */
export interface ExampleText {
  text: string;
  prompt?: string | undefined;
}

/** A text's tokens, and the index of the first one included in means. */
export interface ExampleTokens {
  tokens: Int32Array;
  start: number;
}

/** Number of BOS tokens at the start of a text. */
export function skippedIn({ info }: Model): number {
  return info.addBos ? 1 : 0;
}

/** The same for a given text; 0 if it is nothing but a BOS token. */
export function bosOf(model: Model, tokens: Int32Array): number {
  return tokens.length > 1 ? skippedIn(model) : 0;
}

/**
 * The tokens of an example, without a length check. A prompt and its response are tokenized as one text; the response
 * starts at the first token that differs from the prompt's tokens, which may include the prompt's last letters.
 * @param what how errors refer to the text
 * @throws UserError if there are none, or none in the response
 */
export async function exampleTokens(
  model: Model,
  { text, prompt }: ExampleText,
  rows: RowsRead,
  what: string,
): Promise<ExampleTokens> {
  if (rows !== "response") {
    const tokens = await rawTokens(model, text, what);
    return { tokens, start: bosOf(model, tokens) };
  }
  if (prompt === undefined) throw new UserError(`${what} has no prompt, which rows response requires.`);
  const tokens = await rawTokens(model, prompt + text, what);
  const own = await rawTokens(model, prompt, `The prompt of ${what}`);
  const start = tokens.findIndex((token, at) => token !== own[at]);
  if (start !== -1) return { tokens, start };
  throw new UserError(`${what} does not add a token to its prompt.`);
}
