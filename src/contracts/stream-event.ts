/**
 * Merges one more stream event into an answer's `tapline` object: further tokens and, at the end, everything else.
 * @param told undefined at first; modified in place, so that long answers are not copied for every token
 * @param part not modified
 */
export function mergeStreamEvent<T extends { tokens?: unknown[] }>(told: T | undefined, part: T): T {
  const { tokens, ...rest } = part;
  const all: T = Object.assign(told ?? ({} as T), rest);
  if (tokens === undefined) return all;
  all.tokens ??= [];
  for (const token of tokens) all.tokens.push(token);
  return all;
}
