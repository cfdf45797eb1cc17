/**
 * Lowercases only A to Z. Unicode's lowercasing maps some other letters to ASCII (the Kelvin sign U+212A to k), so that one
 * registered name could pass for another that was approved.
 */
export function foldAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
