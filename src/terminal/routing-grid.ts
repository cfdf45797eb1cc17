import type { InspectResult } from "../contracts/index.js";
import { expertsStory, firstShare } from "../findings/blocks.js";
import { type Canvas, narrowest } from "./canvas.js";
import { legend } from "./legend.js";
import { heading, labelled } from "./page.js";
import { probabilityScale } from "./paint.js";
import { tokenGrid } from "./token-grid.js";

/** Each token's first expert, layers as rows, and of each layer the experts that were chosen most. */
export function routingPicture(
  { tokens, routing = [] }: Pick<InspectResult, "tokens" | "routing">,
  canvas: Canvas,
): string[] {
  if (routing.length === 0) return [];
  const rows = routing.map((found) => ({
    layer: found.layer,
    cells: found.chosen.map((chosen, token) => ({
      text: "",
      figure: String(chosen[0]),
      value: firstShare(found, token),
    })),
  }));
  const columns = Math.max(narrowest, canvas.width);
  return [
    "",
    heading(
      "Experts",
      "the first of each token, by its share of the token's weights",
      legend(probabilityScale, "0", "1", canvas),
      canvas,
    ),
    ...tokenGrid(
      { tokens, rows, scale: probabilityScale, figureOptional: false },
      { ...canvas, width: columns },
    ),
    ...routing.flatMap((found) => labelled(`layer ${found.layer}`, `${expertsStory(found)}.`, canvas)),
  ];
}
