import { cut, isPlain, oneLine } from "../findings/text.js";
import { Html, htmlTag } from "../markup/html.js";
import { visible } from "../text/visible.js";

export { Html, type Value } from "../markup/html.js";

/** The report's templates: text is escaped, and hidden characters are made visible. */
export const html = htmlTag(readable);

/**
 * A text with hidden characters made visible, as in the terminal (`<202E>`, `␀`): invisible ones and those that change the
 * reading direction. Spaces, tabs and line ends stay.
 */
export function readable(text: string): string {
  return text
    .split(/([ \t\n]+|\r\n)/)
    .map((part, index) => (index % 2 === 1 || isPlain(part) ? part : visible(part)))
    .join("");
}

/** A text of any length as one line with a maximum width. */
export function glimpse(text: string, columns: number): string {
  const start = text.slice(0, columns * 4);
  return cut(oneLine(start === text ? start : `${start}…`), columns);
}

/** JSON for a `script` element: it cannot close the element or open a comment. */
export function scriptJson(value: unknown): Html {
  const escaped = JSON.stringify(value).replace(
    /[<>&\u2028\u2029]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return new Html(escaped);
}
