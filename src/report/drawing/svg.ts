import { width as columns } from "../../findings/text.js";
import { Html, html } from "../markup.js";

/**
 * An SVG picture without script, style or colours: marks have classes, and the page's stylesheet (`drawingStyle`) defines
 * their look in light, dark and print.
 */
export function svg(width: number, height: number, name: string, marks: readonly Html[]): Html {
  const [wide, high] = [Math.ceil(width), Math.ceil(height)];
  return html`<svg viewBox="0 0 ${wide} ${high}" width="${wide}" height="${high}" role="img" aria-label="${name}">${marks}</svg>`;
}

/** A coordinate with one digit after the point. */
export function px(value: number): string {
  return (Math.round(value * 10) / 10).toString();
}

/** Width of a column at 12 pixels: an upper estimate for most fonts, because nothing is measured here. */
const column = 7;

/** The estimated width of a text at 12 pixels. */
export function textWidth(text: string): number {
  return columns(text) * column;
}

/**
 * Markup that only contains numbers and our own class names. Pictures have thousands of marks, and escaping each character
 * of them would take most of the time.
 */
function mark(markup: string): Html {
  return new Html(markup);
}

/** Truncates a text to a width in pixels, ending in `…`. */
export function cutText(text: string, room: number): string {
  if (textWidth(text) <= room) return text;
  let start = "";
  let taken = column;
  for (const character of text) {
    taken += columns(character) * column;
    if (taken > room) break;
    start += character;
  }
  return start === "" ? "" : `${start}…`;
}

export interface TextPlace {
  x: number;
  y: number;
  anchor?: "start" | "middle" | "end";
  kind?: string;
}

/** Text on its baseline. */
export function label(text: string, { x, y, anchor = "start", kind = "ink" }: TextPlace): Html {
  const side = anchor === "start" ? "" : ` text-anchor="${anchor}"`;
  return mark(`<text x="${px(x)}" y="${px(y)}" class="${kind}"${side}>${html`${text}`.markup}</text>`);
}

export function box(x: number, y: number, width: number, height: number, kind: string): Html {
  const [wide, high] = [px(Math.max(0, width)), px(Math.max(0, height))];
  return mark(`<rect x="${px(x)}" y="${px(y)}" width="${wide}" height="${high}" class="${kind}"/>`);
}

export function line(x1: number, y1: number, x2: number, y2: number, kind: string): Html {
  return mark(`<path d="M${px(x1)},${px(y1)}L${px(x2)},${px(y2)}" class="${kind}"/>`);
}

/** Lines through points. */
export function path(points: readonly (readonly [number, number])[], kind: string): Html {
  const steps = points.map(([x, y], at) => `${at === 0 ? "M" : "L"}${px(x)},${px(y)}`);
  return mark(`<path d="${steps.join("")}" class="${kind}"/>`);
}

/** Eight shapes, one per colour, which distinguish series without colour. */
const shapes: ((r: number) => string)[] = [
  (r) => `M${px(-r)},0a${px(r)},${px(r)} 0 1 0 ${px(2 * r)},0a${px(r)},${px(r)} 0 1 0 ${px(-2 * r)},0`,
  (r) => `M${px(-r)},${px(-r)}h${px(2 * r)}v${px(2 * r)}h${px(-2 * r)}z`,
  (r) => `M0,${px(-1.3 * r)}L${px(1.2 * r)},${px(r)}H${px(-1.2 * r)}z`,
  (r) => `M0,${px(-1.4 * r)}L${px(1.1 * r)},0L0,${px(1.4 * r)}L${px(-1.1 * r)},0z`,
  (r) =>
    `M${px(-r / 2)},${px(-1.3 * r)}h${px(r)}v${px(r)}h${px(r)}v${px(r)}h${px(-r)}v${px(r)}h${px(-r)}v${px(-r)}h${px(-r)}v${px(-r)}h${px(r)}z`,
  (r) => `M0,${px(1.3 * r)}L${px(1.2 * r)},${px(-r)}H${px(-1.2 * r)}z`,
  (r) => `M${px(-1.3 * r)},${px(-r / 2)}h${px(2.6 * r)}v${px(r)}h${px(-2.6 * r)}z`,
  (r) => `M${px(-r / 2)},${px(-1.3 * r)}h${px(r)}v${px(2.6 * r)}h${px(-r)}z`,
];

export const seriesKinds = shapes.length;

export function dot(x: number, y: number, series: number, radius = 3.5): Html {
  const shape = shapes[series % seriesKinds] as (r: number) => string;
  const place = `translate(${px(x)},${px(y)})`;
  return mark(`<path transform="${place}" d="${shape(radius)}" class="f${series % seriesKinds}"/>`);
}
