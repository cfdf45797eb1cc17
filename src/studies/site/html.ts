import { displayable } from "../text/display.js";

/** Markup. Made by the `html` tag alone, so text never becomes markup by accident. */
export class Html {
  readonly markup: string;

  constructor(markup: string) {
    this.markup = markup;
  }
}

export type Value = Html | string | number | null | undefined | false | readonly Value[];

/** A template whose values are escaped, except those that are markup already. Attributes need their quotes. */
export function html(parts: TemplateStringsArray, ...values: Value[]): Html {
  let markup = parts[0] as string;
  values.forEach((value, index) => {
    markup += render(value) + (parts[index + 1] as string);
  });
  return new Html(markup);
}

function render(value: Value): string {
  if (value === null || value === undefined || value === false) return "";
  if (value instanceof Html) return value.markup;
  if (typeof value === "object") return value.map(render).join("");
  return escapeText(String(value));
}

const entities: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escapeText(text: string): string {
  return displayable(text).replace(/[&<>"']/g, (character) => entities[character] as string);
}
