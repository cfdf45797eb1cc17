import type { InspectResult, Routing } from "../contracts/index.js";
import { type Canvas, narrowest } from "./canvas.js";
import { legend } from "./legend.js";
import { heading, labelled } from "./page.js";
import { probabilityScale } from "./paint.js";
import { tokenGrid } from "./token-grid.js";

/** Experts that a sentence names of a layer. */
const named = 6;

/** Of a token, the share of its weights that its first expert has; 0 where they sum to nothing. */
export function firstShare({ weights }: Pick<Routing, "weights">, token: number): number {
  const own = weights[token] ?? [];
  const total = own.reduce((sum, weight) => sum + weight, 0);
  return total > 0 ? (own[0] as number) / total : 0;
}

/** How often experts of a layer were chosen, in words: the most used, and how many never were. */
export function expertsStory({ experts, used, shares }: Routing): string {
  const order = [...shares.keys()].sort((a, b) => (shares[b] as number) - (shares[a] as number));
  const never = shares.filter((share) => share === 0).length;
  const most = order
    .slice(0, named)
    .filter((expert) => (shares[expert] as number) > 0)
    .map((expert) => `${expert} (${((shares[expert] as number) * 100).toFixed(1)} %)`);
  return (
    `${used} of ${experts} experts a token; most chosen: ${most.join(", ")}` +
    (never === 0 ? "" : `; ${never} never`)
  );
}

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
