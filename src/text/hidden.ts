/** What a reader does not see, or what changes how the rest is shown: the one place that says which characters do. */
const hidden = "\\p{Cc}\\p{Cf}\\p{Co}\\p{Surrogate}\\p{Default_Ignorable_Code_Point}\\u2028\\u2029";

/**
 * Characters that a reader does not see or that change how others are shown: controls, formatting and
 * bidirectional marks, invisible letters, private use, unpaired surrogates. Tabs and line ends are not among them.
 * For `matchAll` and `replace`, which leave the expression as it was.
 */
export const hiddenCharacters = new RegExp(`(?![\\t\\n\\r])[${hidden}]`, "gu");

/** The same, with what Unicode has not assigned and what is only room between words: a terminal shows nothing of either. */
export const unseenCharacters = `${hidden}\\p{Cn}\\p{Z}`;

const runs = new RegExp(`[${hidden}\\p{Cn}]+`, "gu");

/** A text from elsewhere as one line: whatever hides, breaks the line or moves a cursor is a space. */
export function lineOf(text: string): string {
  return text.replace(runs, " ");
}
