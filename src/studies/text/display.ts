/** Text for the database: characters that it cannot store become U+FFFD. */
export function displayable(text: string): string {
  return text.replace(/[\0\p{Surrogate}]/gu, "\uFFFD");
}

/** The first characters (code points) of a text. */
export function firstCharacters(text: string, count: number): string {
  return text.length <= count ? text : [...text].slice(0, count).join("");
}
