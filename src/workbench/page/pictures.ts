/** Draws figures with the report's functions; loaded with the first figure. */
import "./libraries.js";
import { withAxes } from "../../findings/axes.js";
import type { Figure } from "../../findings/figure.js";
import { draw as drawOnPage } from "../../report/page/draw.js";
import { csvText, download, savePicture } from "../../report/page/save.js";
import { theme } from "../../report/page/theme.js";
import { pictureOf } from "./html-picture.js";

export { place } from "../../report/page/draw.js";
export { stepWithKeys } from "../../report/page/keys.js";
export { save } from "../../report/page/save.js";
export { theme } from "../../report/page/theme.js";
export { openMap } from "./map.js";

/** Draws a figure for a width and a theme. */
export function draw(figure: Figure, space: Space): Drawn {
  return drawOnPage(withAxes(figure), space);
}

/** The rows of a CSV text. */
export function csvRows(text: string): string[][] {
  return d3.csvParseRows(text);
}

/** Saves an element as a picture, `svg` or `png`. */
export function saveElement(kind: string, name: string, title: string, element: HTMLElement): Promise<void> {
  return savePicture(kind, pictureOf(element, title, theme()), name);
}

/** Saves a table as CSV. */
export function saveTable(name: string, head: string[], rows: (string | number | null)[][]): void {
  download(`${name}.csv`, new Blob([csvText(head, rows)], { type: "text/csv;charset=utf-8" }));
}
