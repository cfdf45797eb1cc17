/** What draws figures, loaded when the first one is shown: the report's own functions. */
import "./libraries.js";
import { withAxes } from "../../findings/axes.js";
import type { Figure } from "../../findings/figure.js";
import { draw as drawOnPage } from "../../report/page/draw.js";
import { csvText, download, savePicture } from "../../report/page/save.js";
import { theme } from "../../report/page/theme.js";
import { pictureOf } from "./html-picture.js";

export { stepWithKeys } from "../../report/page/keys.js";
export { download, save } from "../../report/page/save.js";
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

/** Keeps what stands in an element as a picture, `svg` or `png`. */
export function saveElement(kind: string, name: string, title: string, element: HTMLElement): Promise<void> {
  return savePicture(kind, pictureOf(element, title, theme()), name);
}

/** Keeps a table as a CSV file. */
export function saveTable(name: string, head: string[], rows: (string | number | null)[][]): void {
  download(`${name}.csv`, new Blob([csvText(head, rows)], { type: "text/csv;charset=utf-8" }));
}
