/**
 * Renders an element of the page as SVG, so that coloured words can be saved like other figures: each box with its colours
 * and borders, each word where the browser placed it, without buttons and fields. It does not use `foreignObject`, which
 * few programs draw, or a library.
 */
import { copyOf, make, titledSheet } from "../../report/page/save.js";

type Sheet = ReturnType<typeof titledSheet>["sheet"];

/** Controls are left out. */
const controls = "button, form, input, select, textarea, .tools, .visually-hidden, script, style";

export function pictureOf(element: HTMLElement, title: string, theme: Theme): Sheet {
  const box = element.getBoundingClientRect();
  const { sheet, left, top } = titledSheet(title, box, theme);
  const into: Drawing = { svg: sheet.svg, across: left - box.left, down: top - box.top };
  for (const child of element.childNodes) draw(child, into);
  return sheet;
}

interface Drawing {
  svg: SVGSVGElement;
  /** Offset from the window to the picture. */
  across: number;
  down: number;
}

function draw(node: Node, into: Drawing): void {
  if (node instanceof Text) drawText(node, into);
  else if (node instanceof SVGSVGElement) into.svg.append(copyOf(node, into.across, into.down));
  else if (node instanceof HTMLElement && !node.matches(controls)) {
    const style = getComputedStyle(node);
    if (style.display === "none" || style.visibility === "hidden") return;
    for (const rect of node.getClientRects()) drawBox(rect, style, into);
    drawMarker(node, style, into);
    const closed = node instanceof HTMLDetailsElement && !node.open;
    for (const child of node.childNodes) {
      if (!closed || (child instanceof HTMLElement && child.matches("summary"))) draw(child, into);
    }
  }
}

function drawBox(rect: DOMRect, style: CSSStyleDeclaration, into: Drawing): void {
  const [x, y, { width, height }] = [rect.left + into.across, rect.top + into.down, rect];
  if (width === 0 || height === 0) return;
  const rx = Math.min(number(style.borderTopLeftRadius), height / 2);
  const place = { x, y, width, height, rx };
  const add = (name: string, attributes: Record<string, string | number>) =>
    into.svg.append(make(name, attributes));
  if (isSeen(style.backgroundColor)) add("rect", { ...place, ...fill(style.backgroundColor) });
  const gradient = gradientOf(style.backgroundImage);
  if (gradient !== undefined) {
    const id = `gradient-${into.svg.querySelectorAll("linearGradient").length}`;
    gradient.setAttribute("id", id);
    into.svg.append(gradient);
    add("rect", { ...place, fill: `url(#${id})` });
  }
  for (const side of ["top", "bottom", "left", "right"]) {
    const of = (what: string) => style.getPropertyValue(`border-${side}-${what}`);
    const [thick, color] = [of("style") === "none" ? 0 : number(of("width")), of("color")];
    if (thick === 0 || !isSeen(color)) continue;
    const line = {
      x: side === "right" ? x + width - thick : x,
      y: side === "bottom" ? y + height - thick : y,
      width: side === "top" || side === "bottom" ? width : thick,
      height: side === "left" || side === "right" ? height : thick,
    };
    add("rect", { ...line, ...fill(color) });
  }
  const outlined = style.outlineStyle === "none" ? 0 : number(style.outlineWidth);
  if (outlined > 0 && isSeen(style.outlineColor)) {
    const { fill: stroke } = fill(style.outlineColor);
    add("rect", { ...place, fill: "none", stroke: stroke as string, "stroke-width": outlined });
  }
  if (style.textDecorationLine.includes("underline") && style.display.startsWith("inline")) {
    const color = fill(style.textDecorationColor).fill as string;
    const d =
      style.textDecorationStyle === "wavy"
        ? wave(x, y + height - 2, width)
        : `M${x},${y + height - 2}h${width}`;
    add("path", { d, fill: "none", stroke: color });
  }
}

function wave(x: number, y: number, width: number): string {
  const steps = Math.max(1, Math.round(width / 3));
  const turns = Array.from({ length: steps }, (_, at) => `l${width / steps},${at % 2 === 0 ? 2 : -2}`);
  return `M${x},${y - 1}${turns.join("")}`;
}

/** The marker of a list item, which is not a node of the page. */
function drawMarker(node: HTMLElement, style: CSSStyleDeclaration, into: Drawing): void {
  if (style.display !== "list-item" || style.listStyleType === "none") return;
  const place = [...(node.parentElement?.children ?? [])].indexOf(node);
  const type = style.listStyleType;
  const words = type === "decimal" ? `${place + 1}.` : type.startsWith("disclosure") ? "▸" : "•";
  const { left, top } = node.getBoundingClientRect();
  const [size, inside] = [number(style.fontSize), style.listStylePosition === "inside"];
  const at = { x: left - (inside ? 0 : size * 0.4) + into.across, y: top + size * 1.2 + into.down };
  const anchor = { "text-anchor": inside ? "start" : "end" };
  into.svg.append(textOf(words, { ...at, ...anchor, ...lettering(style) }));
}

/** A piece of text within one line. */
interface Piece {
  text: string;
  left: number;
  right: number;
  top: number;
  height: number;
}

function drawText(text: Text, into: Drawing): void {
  const parent = text.parentElement;
  if (parent === null || text.data.trim() === "") return;
  const style = getComputedStyle(parent);
  const { above, whole } = ascentOf(style);
  const edge = style.overflowX === "visible" ? Infinity : parent.getBoundingClientRect().right;
  for (const { text: words, left, right, top, height } of pieces(text, edge)) {
    const at = { x: left + into.across, y: top + into.down + (height * above) / whole };
    // In any font, the words take the width that they have on the page.
    const fitted = { textLength: right - left, lengthAdjust: "spacingAndGlyphs" };
    into.svg.append(textOf(words, { ...at, ...fitted, ...lettering(style) }));
  }
}

/** @param edge text is cut off here */
function pieces(text: Text, edge: number): Piece[] {
  const range = document.createRange();
  const found: Piece[] = [];
  let at = 0;
  for (const character of text.data) {
    range.setStart(text, at);
    at += character.length;
    range.setEnd(text, at);
    const rect = range.getClientRects()[0];
    if (rect === undefined || rect.width === 0) continue;
    const last = found.at(-1);
    const { left, right, top, height } = rect;
    if (right > edge) {
      if (last !== undefined && !last.text.endsWith("…")) last.text += "…";
    } else if (
      last !== undefined &&
      Math.abs(last.top - top) < height / 2 &&
      Math.abs(last.right - left) < 2
    ) {
      last.text += character;
      last.right = right;
    } else found.push({ text: character, left, right, top, height });
  }
  return found.filter(({ text }) => text.trim() !== "");
}

function textOf(words: string, attributes: Record<string, string | number>): Element {
  const text = make("text", attributes);
  // An attribute of style is inline style, which the page's policy forbids.
  text.setAttributeNS("http://www.w3.org/XML/1998/namespace", "xml:space", "preserve");
  // XML does not allow these characters.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are replaced
  text.textContent = words.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]|\p{Cs}/gu, "\ufffd");
  return text;
}

function lettering(style: CSSStyleDeclaration): Record<string, string | number> {
  return {
    ...fill(style.color),
    "font-size": number(style.fontSize),
    "font-family": style.fontFamily,
    "font-weight": style.fontWeight,
    "font-style": style.fontStyle,
  };
}

const brush = document.createElement("canvas").getContext("2d", {
  willReadFrequently: true,
}) as CanvasRenderingContext2D;

/** The ascent of a font, and its whole height. */
function ascentOf({ fontStyle, fontWeight, fontSize, fontFamily }: CSSStyleDeclaration) {
  brush.font = `${fontStyle} ${fontWeight} ${fontSize} ${fontFamily}`;
  const { fontBoundingBoxAscent: above, fontBoundingBoxDescent: below } = brush.measureText("x");
  return { above, whole: above + below };
}

const mixed = new Map<string, { rgb: string; alpha: number }>();

/** A CSS colour in a form that every program reads. */
function inkOf(color: string): { rgb: string; alpha: number } {
  let found = mixed.get(color);
  if (found === undefined) {
    brush.clearRect(0, 0, 1, 1);
    brush.fillStyle = color;
    brush.fillRect(0, 0, 1, 1);
    const [red, green, blue, alpha = 0] = brush.getImageData(0, 0, 1, 1).data;
    found = { rgb: `rgb(${red},${green},${blue})`, alpha: alpha / 255 };
    mixed.set(color, found);
  }
  return found;
}

function isSeen(color: string): boolean {
  return inkOf(color).alpha > 0;
}

function fill(color: string): Record<string, string | number> {
  const { rgb, alpha } = inkOf(color);
  return { fill: rgb, ...(alpha < 1 && { "fill-opacity": Number(alpha.toFixed(3)) }) };
}

/** A gradient from left to right, for bars and legends. */
function gradientOf(image: string): Element | undefined {
  if (!image.startsWith("linear-gradient(to right,")) return undefined;
  const stops = [
    ...image.matchAll(/((?:rgba?|color|color-mix)\([^()]*\))(?:\s+(?:calc\()?(-?[\d.]+)(%|px))?/g),
  ];
  const gradient = make("linearGradient", {});
  let least = 0;
  for (const [at, [, color = "", place, unit]] of stops.entries()) {
    const named = place === undefined || unit === "px" ? undefined : Number(place) / 100;
    const offset = Math.max(least, named ?? (at === stops.length - 1 && place === undefined ? 1 : 0));
    least = offset;
    const { alpha } = inkOf(color);
    // A transparent stop takes the colour of its neighbour, as in CSS.
    const { rgb } = inkOf(alpha > 0 ? color : (stops.find(([, one = ""]) => isSeen(one))?.[1] ?? color));
    gradient.append(make("stop", { offset, "stop-color": rgb, "stop-opacity": alpha.toFixed(3) }));
  }
  return gradient;
}

function number(length: string): number {
  return Number.parseFloat(length) || 0;
}
