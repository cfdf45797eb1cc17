import { cutText, font } from "./text.js";

const namespace = "http://www.w3.org/2000/svg";
/** Browsers refuse larger canvases; such pictures are saved with less detail. */
const mostPixels = 120_000_000;

/**
 * @param {string} kind
 * @param {PageFigure} figure
 * @param {HTMLElement} container
 * @param {Theme} theme
 * @param {string} name
 */
export async function save(kind, figure, container, theme, name) {
  if (kind === "csv")
    return download(`${name}.csv`, new Blob([csv(figure)], { type: "text/csv;charset=utf-8" }));
  const { svg, width, height } = compose(figure, container, theme);
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
 * One picture of title, legend and all panels, as they stand on the page.
 * @param {PageFigure} figure
 * @param {HTMLElement} container
 * @param {Theme} theme
 */
function compose({ title }, container, theme) {
  const [padding, head] = [16, 34];
  const box = container.getBoundingClientRect();
  const [width, height] = [Math.ceil(box.width) + 2 * padding, Math.ceil(box.height) + head + 2 * padding];
  const svg = document.createElementNS(namespace, "svg");
  const set = (/** @type {Element} */ element, /** @type {Record<string, string | number>} */ attributes) => {
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  };
  set(svg, {
    width,
    height,
    viewBox: `0 0 ${width} ${height}`,
    "font-family": font,
    color: theme.ink,
    role: "img",
  });
  const name = document.createElementNS(namespace, "title");
  name.textContent = title;
  const paper = document.createElementNS(namespace, "rect");
  set(paper, { width, height, fill: theme.card });
  const heading = document.createElementNS(namespace, "text");
  set(heading, { x: padding, y: padding + 16, "font-size": 17, "font-weight": 600, fill: theme.ink });
  heading.textContent = cutText(title, 17, width - 2 * padding);
  svg.append(name, paper, heading);
  for (const part of container.querySelectorAll(":scope > svg, :scope > .legend > svg")) {
    const place = part.getBoundingClientRect();
    const copy = /** @type {Element} */ (part.cloneNode(true));
    for (const tip of copy.querySelectorAll('[aria-label="tip"]')) tip.remove();
    copy.removeAttribute("aria-hidden");
    set(copy, {
      x: place.left - box.left + padding,
      y: place.top - box.top + padding + head,
      width: place.width,
      height: place.height,
    });
    svg.append(copy);
  }
  return { svg, width, height };
}

/** @param {PageFigure} figure */
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
 * A field as RFC 4180 has it. Spreadsheets take a text that begins like a formula for one; an apostrophe in front
 * keeps it a text.
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
