import type { VectorLayer } from "../contracts/library.js";
import { dataOf, type Figure } from "../findings/figure.js";
import { figureOf } from "../findings/numbers.js";

/** Intervals of a histogram. */
const most = 12;

const sides = { up: "towards", down: "away from" };

/**
 * How far both lists' texts go along a direction, layer by layer, with the AUROC that the service told; undefined where a
 * vector does not say, as one that was made elsewhere.
 */
export function separation(name: string, layers: readonly VectorLayer[]): Figure | undefined {
  const told = layers.flatMap(({ projections, ...layer }) =>
    projections === undefined ? [] : [{ ...layer, projections, title: titleOf(layer) }],
  );
  if (told.length === 0) return undefined;
  const bins = told.flatMap(({ layer, title, projections: { positive, negative } }) => {
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
  const texts = told.flatMap(({ layer, projections }) =>
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
    title: `How ${name} separates`,
    description:
      "How far each text's state goes along the direction, in units of its length: texts that it goes towards above the line, " +
      "the others below. Each text stands on a direction that was made without it, which is what the AUROC is of; beside it " +
      "is the AUROC of shuffled labels.",
    chart: {
      kind: "mirror",
      from: "from",
      to: "to",
      up: "up",
      down: "down",
      axis: "along the direction",
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
    table: { head: ["layer", "list", "text", "along the direction"], rows: texts },
  };
}

function titleOf({ layer, separation, shuffled_separation: chance }: VectorLayer): string {
  if (separation == null) return `layer ${layer}`;
  const shuffled = chance == null ? "" : `, shuffled ${chance.toFixed(2)}`;
  return `layer ${layer}: AUROC ${separation.toFixed(3)}${shuffled}`;
}
