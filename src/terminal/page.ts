import type { Finding } from "../findings/finding.js";
import { width } from "../findings/text.js";
import { type Canvas, narrowest } from "./canvas.js";
import { fit, wrap } from "./fit.js";
import { bold, dim } from "./paint.js";

/** A label in the margin, with wrapped text next to it. */
export function labelled(
  label: string,
  text: string,
  canvas: Canvas,
  { margin = 13, paint = (line: string) => line } = {},
): string[] {
  const room = Math.max(narrowest, canvas.width) - margin;
  if (room < 30) return [dim(label, canvas.colors), ...wrap(text, Math.max(narrowest, canvas.width))];
  return wrap(text, room).map(
    (line, index) => dim((index === 0 ? label : "").padEnd(margin), canvas.colors) + paint(line),
  );
}

/** What a result says, and below it what its controls allow. */
export function finding({ says, controls }: Finding, canvas: Canvas): string[] {
  const room = Math.max(narrowest, canvas.width);
  return [
    ...wrap(says, room).map((line) => bold(line, canvas.colors)),
    ...(controls === "" ? [] : wrap(controls, room)),
  ];
}

/** A title, its meaning, and a legend at the right edge; without room, the meaning is dropped first. */
export function heading(title: string, meaning: string, key: string, canvas: Canvas): string {
  const { colors } = canvas;
  const room = Math.max(narrowest, canvas.width);
  const keyWidth = key === "" ? 0 : 2 + width(bare(key));
  const full = width(title) + 2 + width(meaning);
  const [left, leftWidth] =
    full + keyWidth <= room
      ? [`${bold(title, colors)}  ${dim(meaning, colors)}`, full]
      : [bold(title, colors), width(title)];
  if (key === "" || leftWidth + keyWidth > room) return left;
  return left + " ".repeat(room - leftWidth - keyWidth + 2) + key;
}

/** A text without colour codes. */
export function bare(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours start with an escape character
  return text.replace(/\u001b\[[\d;]*m/g, "");
}

/** Blocks of lines side by side if there is room, otherwise below each other. */
export function beside(
  draw: ReadonlyArray<(canvas: Canvas) => string[]>,
  { least, gap }: { least: number; gap: number },
  canvas: Canvas,
): string[] {
  const each = Math.floor((canvas.width - gap * (draw.length - 1)) / draw.length);
  if (each < least)
    return draw.flatMap((block, index) => (index === 0 ? block(canvas) : ["", ...block(canvas)]));
  const blocks = draw.map((block) => block({ ...canvas, width: each }));
  const rows = Math.max(...blocks.map(({ length }) => length));
  return Array.from({ length: rows }, (_, row) =>
    blocks.map((block) => padded(block[row] ?? "", each)).join(" ".repeat(gap)),
  );
}

function padded(line: string, columns: number): string {
  return line + fit("", Math.max(0, columns - width(bare(line))));
}
