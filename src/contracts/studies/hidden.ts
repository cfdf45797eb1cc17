/**
 * Characters that a reader does not see or that change how others are shown: controls, formatting and
 * bidirectional marks, invisible letters, private use, unpaired surrogates. Tabs and line ends are not among them.
 * For `matchAll` and `replace`, which leave the expression as it was.
 */
export const hiddenCharacters =
  /(?![\t\n\r])[\p{Cc}\p{Cf}\p{Co}\p{Surrogate}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu;
