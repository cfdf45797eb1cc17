import type { Decomposition, InspectResult } from "../contracts/index.js";
import { type Canvas, narrowest } from "./canvas.js";
import { shortNumber } from "./figures.js";
import { legend } from "./legend.js";
import { normsGrid } from "./norms-grid.js";
import { heading, labelled } from "./page.js";
import { differenceScale, magnitudeScale } from "./paint.js";
import { visible } from "./text.js";
import { tokenGrid } from "./token-grid.js";

/** What each point of a block is, in few words. */
export const pointMeanings = {
  block_in: "the residual stream before each block",
  attn_out: "what each block's attention adds to the stream",
  mid: "the stream between attention and MLP",
  ffn_out: "what each block's MLP adds to the stream",
} as const;

/** Of each point that was asked for, its layers. */
export function layersByPoint({ points }: Pick<InspectResult, "points">) {
  const found = new Map<keyof typeof pointMeanings, NonNullable<InspectResult["points"]>>();
  for (const each of points ?? []) found.set(each.point, [...(found.get(each.point) ?? []), each]);
  return found;
}

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

/** The sum over the blocks. */
export function total(blocks: Decomposition["blocks"], part: "attention" | "mlp"): number {
  return blocks.reduce((sum, block) => sum + block[part], 0);
}

function signedLogit(value: number): string {
  const text = Math.abs(value) < 99.995 ? value.toFixed(2) : shortNumber(value);
  return value > 0 ? `+${text}` : text.replace(/^-(0\.00)$/, "$1");
}
