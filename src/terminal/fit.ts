import { cut, graphemes, width } from "../findings/text.js";

/** Exactly `columns` wide: truncated or padded. */
export function fit(text: string, columns: number, align: "left" | "right" = "left"): string {
  const shown = cut(text, columns);
  const fill = " ".repeat(Math.max(0, columns - width(shown)));
  return align === "left" ? shown + fill : fill + shown;
}

/** Wraps a plain text at spaces; words wider than a line are broken between characters. */
export function wrap(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/).filter((part) => part !== "")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (width(longer) <= columns) {
      line = longer;
      continue;
    }
    if (line !== "") lines.push(line);
    line = "";
    for (const { segment } of graphemes(word)) {
      if (line !== "" && width(line + segment) > columns) {
        lines.push(line);
        line = "";
      }
      line += segment;
    }
  }
  return line === "" ? lines : [...lines, line];
}
