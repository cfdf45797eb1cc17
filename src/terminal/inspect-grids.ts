import type { Decomposition, InspectResult } from "../contracts/index.js";
import { layersByPoint, pointMeanings, total } from "../findings/blocks.js";
import { shortNumber } from "../findings/numbers.js";
import { visible } from "../findings/text.js";
import { type Canvas, narrowest } from "./canvas.js";
import { legend } from "./legend.js";
import { normsGrid } from "./norms-grid.js";
import { heading, labelled } from "./page.js";
import { differenceScale, magnitudeScale } from "./paint.js";
import { tokenGrid } from "./token-grid.js";

/** Norms of the points inside the blocks, a grid a point. */
export function innerPointsPicture(
  result: Pick<InspectResult, "tokens" | "points">,
  canvas: Canvas,
): string[] {
  return [...layersByPoint(result)].flatMap(([point, layers]) => [
    "",
    heading(
      point,
      `length of ${pointMeanings[point]}`,
      legend(magnitudeScale, "low", "high", canvas),
      canvas,
    ),
    ...normsGrid({ tokens: result.tokens, layers }, canvas).split("\n"),
  ]);
}

/** What one logit is made of: every block's attention and MLP, the deepest block on top. */
export function decompositionPicture(found: Decomposition | undefined, canvas: Canvas): string[] {
  if (found === undefined) return [];
  const { blocks, embedding, constant, logit } = found;
  const reach = Math.max(
    Number.MIN_VALUE,
    ...blocks.flatMap(({ attention, mlp }) => [Math.abs(attention), Math.abs(mlp)]),
  );
  const cell = (value: number) => ({ text: "", figure: signedLogit(value), value: 0.5 + value / reach / 2 });
  const rows = blocks.map(({ layer, attention, mlp }) => ({ layer, cells: [cell(attention), cell(mlp)] }));
  return [
    "",
    heading(
      "Contributions",
      `of each block to the logit of “${visible(found.target_token)}”`,
      legend(differenceScale, shortNumber(-reach), shortNumber(reach), canvas),
      canvas,
    ),
    ...tokenGrid(
      { tokens: ["attention", "MLP"], rows, scale: differenceScale, figureOptional: false },
      { ...canvas, width: Math.max(narrowest, Math.min(canvas.width, 34)) },
    ),
    ...labelled(
      "Logit",
      `${signedLogit(logit)}: embedding ${signedLogit(embedding)}, ` +
        `attention ${signedLogit(total(blocks, "attention"))}, MLP ${signedLogit(total(blocks, "mlp"))}` +
        (constant === 0 ? "" : `, biases ${signedLogit(constant)}`),
      canvas,
    ),
  ];
}

function signedLogit(value: number): string {
  const text = Math.abs(value) < 99.995 ? value.toFixed(2) : shortNumber(value);
  return value > 0 ? `+${text}` : text.replace(/^-(0\.00)$/, "$1");
}
