import type { RowsRead } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import type { Model } from "../../native/index.js";
import { rawTokens } from "./tokens.js";

/** A text that is read, and for its response's rows the prompt that it follows. */
export interface ExampleText {
  text: string;
  prompt?: string | undefined;
}

/** A text's tokens, and the first of them whose row counts in a mean. */
export interface ExampleTokens {
  tokens: Int32Array;
  start: number;
}

/** Tokens at the start of a text that are its BOS. */
export function skippedIn({ info }: Model): number {
  return info.addBos ? 1 : 0;
}

/** The same of a text, which counts where it is nothing but a BOS. */
export function bosOf(model: Model, tokens: Int32Array): number {
  return tokens.length > 1 ? skippedIn(model) : 0;
}

/**
 * The tokens of an example, not checked for their number. A response is read behind its prompt, as one text; it begins at
 * the first token that is not the prompt's own, which may hold the prompt's last letters, too.
 * @param what how an error names the text
 * @throws UserError where there are none, or none of a response
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
  if (prompt === undefined)
    throw new UserError(`${what} has no prompt beside its text, which rows response needs.`);
  const tokens = await rawTokens(model, prompt + text, what);
  const own = await rawTokens(model, prompt, `The prompt of ${what}`);
  const start = tokens.findIndex((token, at) => token !== own[at]);
  if (start !== -1) return { tokens, start };
  throw new UserError(`${what} adds no token to its prompt.`);
}
