/**
 * Lower case of the letters A to Z alone. Unicode's lower case makes ASCII letters of others (the Kelvin sign U+212A
 * becomes k), so that a name that somebody else registered would pass for one that was approved.
 */
export function foldAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
