/** Markup. Made by an `html` tag alone, so text never becomes markup by accident. */
export class Html {
  readonly markup: string;

  constructor(markup: string) {
    this.markup = markup;
  }
}

export type Value = Html | string | number | null | undefined | false | readonly Value[];

/** A template whose values are escaped, except those that are markup already. Attributes need their quotes. */
export type HtmlTag = (parts: TemplateStringsArray, ...values: Value[]) => Html;

/**
 * An `html` tag whose values are shown as `readable` gives them: what hides in a text is each face's own to reveal.
 */
export function htmlTag(readable: (text: string) => string): HtmlTag {
  const render = (value: Value): string => {
    if (value === null || value === undefined || value === false) return "";
    if (value instanceof Html) return value.markup;
    if (typeof value === "object") return value.map(render).join("");
    return readable(String(value)).replace(/[&<>"']/g, (character) => entities[character] as string);
  };
  return (parts, ...values) => {
    const markup = values.map((value, index) => render(value) + (parts[index + 1] as string));
    return new Html((parts[0] as string) + markup.join(""));
  };
}

const entities: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
