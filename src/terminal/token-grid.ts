import { visible } from "../text/visible.js";
import { type Canvas, narrowest } from "./canvas.js";
import { fit } from "./fit.js";
import { dim, onScale, type Scale } from "./paint.js";

export interface Cell {
  /** Left-aligned; truncated if too long. */
  text?: string;
  /** Right-aligned; never truncated. */
  figure: string;
  /** Place on the colour scale, 0 to 1. */
  value: number;
  bold?: boolean;
}

interface TokenGrid {
  tokens: readonly string[];
  /** One row per layer, with one cell per token. */
  rows: ReadonlyArray<{ layer: number; cells: readonly Cell[] }>;
  scale: Scale;
  /** Whether colour alone may represent the figure without room for it. */
  figureOptional?: boolean;
}

/** Width of the layer index, in columns. */
const margin = 6;
const widestCell = 16;

/**
 * Layers as rows, the deepest on top, and tokens as columns. If not all tokens fit, only the last ones are drawn, with a line
 * that counts the others.
 */
export function tokenGrid(grid: TokenGrid, canvas: Canvas): string[] {
  const { tokens, scale } = grid;
  const { cell, first, withFigure } = layout(grid, canvas);
  const rows = [...grid.rows]
    .sort((a, b) => b.layer - a.layer)
    .map(({ layer, cells }) => {
      const drawn = cells.slice(first).map((content) => {
        const text = cellText(content, cell, withFigure);
        return onScale(text, content.value, scale, canvas.colors, content.bold);
      });
      return `${fit(String(layer), margin - 1, "right")} ${drawn.join("")}`;
    });
  const header = tokens.slice(first).map((token) => ` ${fit(visible(token), cell - 1)}`);
  const lines = [...rows, `${dim(fit("layer", margin - 1), canvas.colors)} ${header.join("")}`];
  if (first > 0) {
    const note = `… ${first} earlier token${first === 1 ? "" : "s"} not shown`;
    lines.push(dim(fit(note, Math.max(narrowest, canvas.width)).trimEnd(), canvas.colors));
  }
  return lines;
}

function layout({ tokens, rows, figureOptional }: TokenGrid, canvas: Canvas) {
  const room = Math.max(narrowest, canvas.width) - margin;
  const figures = rows.flatMap(({ cells }) => cells.map(({ figure }) => figure.length));
  const figure = Math.max(1, ...figures);
  const hasText = rows.some(({ cells }) => cells.some(({ text = "" }) => text !== ""));
  // Padding on both sides; text needs at least six columns and a space before the figure.
  const full = 2 + figure + (hasText ? 7 : 1);
  const each = Math.floor(room / Math.max(1, tokens.length));
  const withFigure = !figureOptional || canvas.colors === "none" || each >= full;
  const least = withFigure ? full : 8;
  const cell = Math.min(widestCell, Math.max(least, each), room);
  return { cell, first: Math.max(0, tokens.length - Math.floor(room / cell)), withFigure };
}

function cellText({ text = "", figure }: Cell, cell: number, withFigure: boolean): string {
  const inner = cell - 2;
  if (!withFigure) return ` ${fit(text, inner)} `;
  const room = inner - figure.length;
  return text === "" ? ` ${fit(figure, inner, "right")} ` : ` ${fit(text, room - 1)} ${figure} `;
}
