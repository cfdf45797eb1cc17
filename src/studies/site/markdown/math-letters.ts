/** First capital, small letter and digit of each mathematical alphabet in Unicode; 0 if it has none. */
const alphabets: Record<string, [capital: number, small: number, digit: number]> = {
  bold: [0x1d400, 0x1d41a, 0x1d7ce],
  italic: [0x1d434, 0x1d44e, 0],
  "bold-italic": [0x1d468, 0x1d482, 0],
  script: [0x1d49c, 0x1d4b6, 0],
  fraktur: [0x1d504, 0x1d51e, 0],
  "double-struck": [0x1d538, 0x1d552, 0x1d7d8],
  "bold-fraktur": [0x1d56c, 0x1d586, 0],
  "sans-serif": [0x1d5a0, 0x1d5ba, 0x1d7e2],
  "bold-sans-serif": [0x1d5d4, 0x1d5ee, 0x1d7ec],
  "sans-serif-italic": [0x1d608, 0x1d622, 0],
  "sans-serif-bold-italic": [0x1d63c, 0x1d656, 0],
  monospace: [0x1d670, 0x1d68a, 0x1d7f6],
};

/** Letters that are encoded outside the mathematical block. */
const earlier: Record<string, Record<string, string>> = {
  script: { B: "ℬ", E: "ℰ", F: "ℱ", H: "ℋ", I: "ℐ", L: "ℒ", M: "ℳ", R: "ℛ", e: "ℯ", g: "ℊ", o: "ℴ" },
  fraktur: { C: "ℭ", H: "ℌ", I: "ℑ", R: "ℜ", Z: "ℨ" },
  "double-struck": { C: "ℂ", H: "ℍ", N: "ℕ", P: "ℙ", Q: "ℚ", R: "ℝ", Z: "ℤ" },
  italic: { h: "ℎ" },
};

/**
 * Text in the alphabet that `mathvariant` names, as Unicode letters: browsers no longer support the attribute (MathML
 * Core, 2.1.6).
 */
export function mathLetters(text: string, variant: string): string {
  const alphabet = alphabets[variant];
  if (alphabet === undefined) return text;
  // Skip character references such as &amp;.
  return text.replace(/&[a-z]+;|[A-Za-z0-9]/g, (letter) => {
    if (letter.length > 1) return letter;
    const known = earlier[variant]?.[letter];
    if (known !== undefined) return known;
    const [from, start] = /[A-Z]/.test(letter)
      ? [65, alphabet[0]]
      : /[a-z]/.test(letter)
        ? [97, alphabet[1]]
        : [48, alphabet[2]];
    return start === 0 ? letter : String.fromCodePoint(start + letter.charCodeAt(0) - from);
  });
}
