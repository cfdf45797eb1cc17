/** A run of words: in both texts, only in the first, or only in the second. */
export interface Stretch {
  kind: "same" | "removed" | "added";
  text: string;
}

/** The difference of two texts, word by word. Its cost is quadratic; continuations have at most a few hundred words. */
export function difference(before: string, after: string): Stretch[] {
  const [a, b] = [words(before), words(after)];
  const stretches: Stretch[] = [];
  const push = (kind: Stretch["kind"], text: string) => {
    if (text === "") return;
    const last = stretches.at(-1);
    if (last?.kind === kind) last.text += text;
    else stretches.push({ kind, text });
  };
  let [i, j] = [0, 0];
  for (const [row, column] of [...sharedPlaces(a, b), [a.length, b.length] as const]) {
    push("removed", a.slice(i, row).join(""));
    push("added", b.slice(j, column).join(""));
    push("same", a[row] ?? "");
    [i, j] = [row + 1, column + 1];
  }
  return stretches;
}

/**
 * The indices in both lists of a longest common subsequence (Wagner and Fischer, 1974). Time and memory grow with the product
 * of the lengths.
 */
export function sharedPlaces(a: readonly string[], b: readonly string[]): [number, number][] {
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
  const shared: [number, number][] = [];
  for (let [i, j] = [0, 0]; i < a.length && j < b.length; ) {
    const at = i * width + j;
    if (a[i] === b[j]) shared.push([i++, j++]);
    else if ((lengths[at + width] as number) >= (lengths[at + 1] as number)) i += 1;
    else j += 1;
  }
  return shared;
}

/** Words with their leading space, so that joining them restores the text. */
function words(text: string): string[] {
  return text.match(/\s*\S+|\s+$/gu) ?? [];
}
