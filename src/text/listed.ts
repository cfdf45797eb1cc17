/** Names as a sentence lists them: `a, b and c`. */
export function listed(names: readonly string[], word = "and"): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(", ")} ${word} ${names.at(-1)}`;
}
