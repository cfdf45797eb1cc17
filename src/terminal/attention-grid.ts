import type { AttentionHead } from "../contracts/index.js";
import { type AttentionKind, attentionKinds, kindsOf } from "../findings/blocks.js";
import { type Canvas, narrowest } from "./canvas.js";
import { legend } from "./legend.js";
import { heading } from "./page.js";
import { probabilityScale } from "./paint.js";
import { tokenGrid } from "./token-grid.js";

/** Columns of a cell, and before the cells. */
const [cellWidth, margin] = [9, 6];

/** Layers as rows and heads as columns, a grid for each kind of head; heads that do not fit beside each other go on below. */
export function attentionPicture(heads: readonly AttentionHead[] | undefined, canvas: Canvas): string[] {
  if (heads === undefined || heads.length === 0) return [];
  const layers = [...new Set(heads.map(({ layer }) => layer))];
  const numbers = [...new Set(heads.map(({ head }) => head))];
  const most = Math.floor((Math.max(narrowest, canvas.width) - margin) / cellWidth);
  const lines = Array.from({ length: Math.ceil(numbers.length / most) }, (_, line) =>
    numbers.slice(line * most, (line + 1) * most),
  );
  const grid = (kind: AttentionKind, shown: readonly number[]) =>
    tokenGrid(
      {
        tokens: shown.map((head) => `h${head}`),
        rows: layers.map((layer) => ({
          layer,
          cells: shown.map((number) => {
            const found = heads.find((head) => head.layer === layer && head.head === number)?.[kind];
            return { text: "", figure: found == null ? "" : found.toFixed(2), value: found ?? 0 };
          }),
        })),
        scale: probabilityScale,
        figureOptional: false,
      },
      { ...canvas, width: margin + cellWidth * shown.length },
    );
  return kindsOf(heads).flatMap((kind) => [
    "",
    heading("Attention", attentionKinds[kind], legend(probabilityScale, "0", "1", canvas), canvas),
    ...lines.flatMap((shown) => grid(kind, shown)),
  ]);
}
