/**
 * Adds to what an answer has told of a `tapline` object what one more event of its stream tells: further tokens, and at
 * the end everything else.
 * @param told undefined at first; changed and returned, so that a long answer is not copied anew for each of its tokens
 * @param part left as it is
 */
export function addTold<T extends { tokens?: unknown[] }>(told: T | undefined, part: T): T {
  const { tokens, ...rest } = part;
  const all: T = Object.assign(told ?? ({} as T), rest);
  if (tokens === undefined) return all;
  all.tokens ??= [];
  for (const token of tokens) all.tokens.push(token);
  return all;
}
