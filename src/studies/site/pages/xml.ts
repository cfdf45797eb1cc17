import { hiddenCharacters } from "../../../contracts/studies/index.js";
import { type Html, type HtmlTag, htmlTag } from "../../../markup/html.js";
import { displayable } from "../../text/display.js";
import type { Visit } from "../visit.js";

/** XML templates: values are escaped, and characters that XML 1.0 forbids become U+FFFD. */
export const xml: HtmlTag = htmlTag((text) =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: XML forbids these
  displayable(text).replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, "\uFFFD"),
);

/** Text without hidden characters, for programs that cannot mark them. */
export function plain(text: string): string {
  return text.replace(hiddenCharacters, "");
}

export function sendXml({ ctx }: Visit, type: string, document: Html): void {
  ctx.set("Content-Type", `${type}; charset=utf-8`);
  ctx.body = `<?xml version="1.0" encoding="utf-8"?>\n${document.markup}`;
}
