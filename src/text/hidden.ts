/** Characters that are invisible or change how others are shown; only defined here. */
const hidden = "\\p{Cc}\\p{Cf}\\p{Co}\\p{Surrogate}\\p{Default_Ignorable_Code_Point}\\u2028\\u2029";

/**
 * Characters that are invisible or change how others are shown: controls, formatting and bidirectional marks, invisible
 * letters, private use, unpaired surrogates; without tabs and line ends. Only for `matchAll` and `replace`, which do not
 * change `lastIndex`.
 */
export const hiddenCharacters = new RegExp(`(?![\\t\\n\\r])[${hidden}]`, "gu");

/** The same with unassigned characters and separators, which a terminal does not show. */
export const unseenCharacters = `${hidden}\\p{Cn}\\p{Z}`;

const runs = new RegExp(`[${hidden}\\p{Cn}]+`, "gu");

/** An untrusted text as one line: hidden characters, line breaks and cursor movements become spaces. */
export function lineOf(text: string): string {
  return text.replace(runs, " ");
}
