import { cutText, font } from "./text.js";

const namespace = "http://www.w3.org/2000/svg";
/** Browsers reject larger canvases; larger pictures are saved at a lower resolution. */
const mostPixels = 120_000_000;

/**
 * @param {string} kind
 * @param {Omit<PageFigure, "axes">} figure
 * @param {HTMLElement} container
 * @param {Theme} theme
 * @param {string} name
 */
export async function save(kind, figure, container, theme, name) {
  if (kind === "csv")
    return download(`${name}.csv`, new Blob([csv(figure)], { type: "text/csv;charset=utf-8" }));
  return savePicture(kind, compose(figure, container, theme), name);
}

/** @typedef {{svg: SVGSVGElement, width: number, height: number}} Sheet a complete picture, ready to save */

/**
 * @param {string} kind `svg` or `png`
 * @param {Sheet} sheet
 * @param {string} name
 */
export async function savePicture(kind, { svg, width, height }, name) {
  const text = new XMLSerializer().serializeToString(svg);
  const file = new Blob([text], { type: "image/svg+xml" });
  if (kind === "svg") return download(`${name}.svg`, file);
  const url = URL.createObjectURL(file);
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const scale = Math.min(2, Math.sqrt(mostPixels / (width * height)));
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    const png = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    download(`${name}.png`, /** @type {Blob} */ (png));
  } finally {
    URL.revokeObjectURL(url);
  }
}

/**
 * One picture with title, legend and all panels, laid out as on the page.
 * @param {Omit<PageFigure, "axes">} figure
 * @param {HTMLElement} container
 * @param {Theme} theme
 */
function compose({ title }, container, theme) {
  const box = container.getBoundingClientRect();
  const { sheet, left, top } = titledSheet(title, box, theme);
  for (const part of container.querySelectorAll(":scope > svg, :scope > .legend > svg")) {
    sheet.svg.append(copyOf(part, left - box.left, top - box.top));
  }
  return sheet;
}

/**
 * A sheet with a title, in the page's colours.
 * @param {string} title
 * @param {{width: number, height: number}} room the space below the title
 * @param {Theme} theme
 * @returns {{sheet: Sheet, left: number, top: number}} the origin of that space
 */
export function titledSheet(title, room, theme) {
  const [padding, head] = [16, 34];
  const [width, height] = [Math.ceil(room.width) + 2 * padding, Math.ceil(room.height) + head + 2 * padding];
  const svg = make("svg", {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "font-family": font,
    color: theme.ink,
    role: "img",
  });
  const name = make("title", {});
  name.textContent = title;
  const paper = make("rect", { width, height, fill: theme.card });
  const place = { x: padding, y: padding + 16, "font-size": 17, "font-weight": 600, fill: theme.ink };
  const heading = make("text", place);
  heading.textContent = cutText(title, 17, width - 2 * padding);
  svg.append(name, paper, heading);
  const sheet = { svg: /** @type {SVGSVGElement} */ (svg), width, height };
  return { sheet, left: padding, top: padding + head };
}

/**
 * A copy of a picture of the page, moved by an offset.
 * @param {Element} part
 * @param {number} across
 * @param {number} down
 */
export function copyOf(part, across, down) {
  const { left, top, width, height } = part.getBoundingClientRect();
  const copy = /** @type {Element} */ (part.cloneNode(true));
  for (const tip of copy.querySelectorAll('[aria-label="tip"]')) tip.remove();
  copy.removeAttribute("aria-hidden");
  set(copy, { x: left + across, y: top + down, width, height });
  return copy;
}

/**
 * An element of SVG.
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 */
export function make(name, attributes) {
  const element = document.createElementNS(namespace, name);
  set(element, attributes);
  return element;
}

/**
 * @param {Element} element
 * @param {Record<string, string | number>} attributes
 */
function set(element, attributes) {
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
}

/** @param {Omit<PageFigure, "axes">} figure */
function csv({ columns, rows }) {
  return csvText(
    columns.map(({ label }) => label),
    rows,
  );
}

/**
 * @param {string[]} head
 * @param {(string | number | null)[][]} rows
 */
export function csvText(head, rows) {
  return [head, ...rows].map((row) => `${row.map(field).join(",")}\r\n`).join("");
}

/**
 * A field according to RFC 4180. An apostrophe keeps spreadsheets from treating text that starts like a formula as one.
 * @param {string | number | null} value
 */
function field(value) {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * @param {string} name
 * @param {Blob} content
 */
export function download(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
