/** A stretch of words in two texts: in both, only in the first, or only in the second. */
export interface Stretch {
  kind: "same" | "removed" | "added";
  text: string;
}

/**
 * The difference of two texts, word by word: a longest common subsequence (Wagner and Fischer, 1974). Continuations
 * have at most a few hundred words, so its square cost is small.
 */
export function difference(before: string, after: string): Stretch[] {
  const [a, b] = [words(before), words(after)];
  const lengths = commonLengths(a, b);
  const stretches: Stretch[] = [];
  const push = (kind: Stretch["kind"], text: string) => {
    const last = stretches.at(-1);
    if (last?.kind === kind) last.text += text;
    else stretches.push({ kind, text });
  };
  let [i, j] = [0, 0];
  const width = b.length + 1;
  const at = (row: number, column: number) => lengths[row * width + column] as number;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      push("same", a[i] as string);
      i += 1;
      j += 1;
    } else if (at(i + 1, j) >= at(i, j + 1)) push("removed", a[i++] as string);
    else push("added", b[j++] as string);
  }
  while (i < a.length) push("removed", a[i++] as string);
  while (j < b.length) push("added", b[j++] as string);
  return stretches;
}

/** Words with the space before them, so that joining them gives the text back. */
function words(text: string): string[] {
  return text.match(/\s*\S+|\s+$/gu) ?? [];
}

/** Lengths of the longest common subsequences of all tails, row by row. */
function commonLengths(a: readonly string[], b: readonly string[]): Uint16Array {
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const below = (i + 1) * width + j;
      lengths[i * width + j] =
        a[i] === b[j]
          ? (lengths[below + 1] as number) + 1
          : Math.max(lengths[below] as number, lengths[i * width + j + 1] as number);
    }
  }
  return lengths;
}
