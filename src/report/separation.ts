import type { VectorLayer } from "../contracts/library.js";
import { dataOf, type Figure } from "../findings/figure.js";
import { figureOf } from "../findings/numbers.js";

/** Intervals of a histogram. */
const most = 12;

const sides = { up: "towards", down: "away from" };

/**
 * The projections of both lists on a direction, layer by layer, with the recorded AUROC; undefined for a vector without
 * projections, such as an imported one.
 */
export function separation(name: string, layers: readonly VectorLayer[]): Figure | undefined {
  const recorded = layers.flatMap(({ projections, ...layer }) =>
    projections === undefined ? [] : [{ ...layer, projections, title: titleOf(layer) }],
  );
  if (recorded.length === 0) return undefined;
  const bins = recorded.flatMap(({ layer, title, projections: { positive, negative } }) => {
    const all = [...positive, ...negative];
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const step = (high - low) / most || 1;
    const inside = (values: number[], bin: number) =>
      values.filter((value) => Math.min(most - 1, Math.floor((value - low) / step)) === bin).length;
    return Array.from({ length: most }, (_, bin) => ({
      ...{ layer, title, from: low + bin * step, to: low + (bin + 1) * step },
      up: inside(positive, bin),
      down: inside(negative, bin),
    })).filter(({ up, down }) => up + down > 0);
  });
  const texts = recorded.flatMap(({ layer, projections }) =>
    (["positive", "negative"] as const).flatMap((side) =>
      projections[side].map((value, text) => [
        String(layer),
        side === "positive" ? sides.up : sides.down,
        String(text),
        figureOf(value),
      ]),
    ),
  );
  return {
    id: "separation",
    title: `Separation by ${name}`,
    description:
      "Projection of each text's activation on the direction, in units of the direction's norm: the towards list above the " +
      "line, the away-from list below. Each text is projected on a direction that was made without it; the held-out AUROC is " +
      "computed from these projections and shown next to the AUROC with shuffled labels.",
    chart: {
      kind: "mirror",
      from: "from",
      to: "to",
      up: "up",
      down: "down",
      axis: "projection",
      panels: ["title"],
      sides,
      fitted: true,
    },
    ...dataOf(bins, {
      layer: ["layer", (one) => one.layer],
      title: ["AUROC, shuffled", (one) => one.title],
      from: ["from", (one) => one.from],
      to: ["to", (one) => one.to],
      up: [sides.up, (one) => one.up],
      down: [sides.down, (one) => one.down],
    }),
    details: bins.map(
      ({ title, from, to, up, down }) =>
        `${title}\n${figureOf(from)} to ${figureOf(to)}\n${sides.up}: ${up}, ${sides.down}: ${down}`,
    ),
    table: { head: ["layer", "list", "text", "projection"], rows: texts },
  };
}

function titleOf({ layer, separation, shuffled_separation: chance }: VectorLayer): string {
  if (separation == null) return `layer ${layer}`;
  const shuffled = chance == null ? "" : `, shuffled ${chance.toFixed(2)}`;
  return `layer ${layer}: AUROC ${separation.toFixed(3)}${shuffled}`;
}
