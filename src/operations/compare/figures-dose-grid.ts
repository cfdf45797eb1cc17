import type { CompareResult } from "../../contracts/index.js";
import type { Trial } from "../../findings/dose.js";
import type { Figure } from "../../findings/figure.js";
import { dataOf } from "../../findings/figure.js";
import { count, meanOfKnown, percent, signed } from "../../findings/numbers.js";
import { visible } from "../../text/visible.js";

/** The strengths of one layer and its result, once there is one. */
export interface TriedLayer {
  layer: number;
  strengths: readonly number[];
  result?: CompareResult;
}

interface Cell {
  layer: number;
  strength: number;
  column: number;
  trials: Trial[];
}

/** The strengths of all layers, ascending. */
export function strengthsOf(tried: readonly TriedLayer[]): number[] {
  return [...new Set(tried.flatMap(({ strengths }) => strengths))].sort((a, b) => a - b);
}

/**
 * The effect of an intervention on the target's probability by layer and strength, and that of norm-matched random
 * vectors: two maps on one scale, from one comparison per layer. Cells without a result are dashed.
 */
export function doseGrid(tried: readonly TriedLayer[]): Figure[] {
  const strengths = strengthsOf(tried);
  const cells = tried.flatMap(({ layer, strengths: asked, result }) =>
    asked.map((strength): Cell => {
      const trials = result?.trials.filter((trial) => trial.strength === strength) ?? [];
      return { layer, strength, column: strengths.indexOf(strength), trials };
    }),
  );
  const found = cells.filter(({ trials }) => trials.length > 0);
  const changes = found.flatMap(({ trials }) => [
    meanOf(trials, ({ delta }) => delta) as number,
    meanOf(trials, ({ control }) => control?.delta) ?? 0,
  ]);
  const reach = Math.max(0, ...changes.map(Math.abs));
  const targets = [...new Set(found.flatMap(({ trials }) => trials.map((one) => visible(one.target_token))))];
  const whose = targets.length === 1 ? `“${targets[0]}”` : "the target tokens";
  const waiting =
    found.length < cells.length
      ? ` ${found.length} of ${cells.length} cells computed; the rest are dashed.`
      : "";
  const grid = (
    id: string,
    title: string,
    description: string,
    pick: (trial: Trial) => Outcome | undefined,
  ) => {
    const values = cells.map((cell) => ({
      ...cell,
      change: meanOf(cell.trials, (trial) => pick(trial)?.delta),
      probability: meanOf(cell.trials, (trial) => pick(trial)?.probability),
      baseline: meanOf(cell.trials, (trial) => trial.baseline_probability),
      differ: cell.trials.filter((trial) => pick(trial)?.output !== trial.baseline).length,
    }));
    const layers = [...new Set(tried.map(({ layer }) => layer))].sort((a, b) => a - b);
    const figure: Figure = {
      id,
      title,
      description: description + waiting,
      chart: {
        kind: "sites",
        columns: strengths.map((strength) => ({ above: String(strength), below: "" })),
        value: "change",
        legend: "change of the target's probability",
        least: reach,
      },
      ...dataOf(values, {
        layer: ["layer", (one) => one.layer],
        strength: ["strength", (one) => one.strength],
        column: ["column", (one) => one.column],
        change: ["change of the target's probability", (one) => one.change ?? null],
        probability: ["probability", (one) => one.probability ?? null],
        baseline: ["baseline probability", (one) => one.baseline ?? null],
        differ: ["answers that differ", (one) => one.differ],
        prompts: ["prompts", ({ trials }) => trials.length],
        inside: ["compared", () => 1],
      }),
      details: values.map(({ layer, strength, change, probability, baseline, differ, trials }) =>
        [
          `layer ${layer}, strength ${strength}`,
          ...(change === undefined || probability === undefined || baseline === undefined
            ? ["not computed yet"]
            : [
                `${whose}  ${percent(probability)}, baseline ${percent(baseline)} (${signed(change)})`,
                `${differ} of ${count(trials.length, "answer")} differ`,
              ]),
        ].join("\n"),
      ),
      table: {
        head: ["layer", ...strengths.map(String)],
        rows: layers.map((layer) => [
          String(layer),
          ...strengths.map((strength) => {
            const cell = values.find((one) => one.layer === layer && one.strength === strength);
            return cell?.change === undefined ? "" : signed(cell.change);
          }),
        ]),
      },
    };
    return figure;
  };
  const effect = grid(
    "dose-grid",
    "Effect by layer and strength",
    `Change in the probability of ${whose} when the direction is added at one layer. Columns are strengths; 0 changes nothing.`,
    (trial) => trial,
  );
  if (!found.some(({ trials }) => trials.some(({ control }) => control !== undefined))) return [effect];
  return [
    effect,
    grid(
      "dose-grid-control",
      "Control: random vectors",
      "The effect of a norm-matched random vector instead of the direction, on the same scale.",
      (trial) => trial.control,
    ),
  ];
}

type Outcome = Pick<Trial, "delta" | "probability" | "output">;

/** The mean over the prompts; undefined without any value. */
function meanOf(trials: readonly Trial[], pick: (trial: Trial) => number | undefined): number | undefined {
  return meanOfKnown(trials.map(pick));
}
