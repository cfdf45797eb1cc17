import type { Excluded } from "../../contracts/excluded.js";
import type { ProbeConfig, ProbeResult } from "../../contracts/index.js";
import { pointField } from "../../contracts/names.js";
import { aurocAtEdge, wilson } from "../../findings/proportions.js";
import { atLeastAsGood, bootstrapIntervals, type Interval, spreadOf } from "../../findings/uncertainty.js";
import type { Artifacts } from "../../lab/artifacts.js";
import { writeNpz } from "../../lab/npz.js";
import type { ReadRows } from "../../lab/rows/example-features.js";
import { trainLayers } from "../../lab/rows/train-layers.js";
import { type ProbeFigures, type TrainedProbe, trainProbe } from "../../native/index.js";
import type { Findings, OperationInput, Run, Split } from "../run.js";
import { runWhole } from "../run-parts.js";
import { cellsOf } from "./contract-cells.js";
import { type CellFigures, reportCell, trainCells } from "./run-grid.js";

/** Number of fits to shuffled labels, whose spread shows the chance level. */
const permutations = 100;
/** Resamples of a bootstrap interval. */
const resamples = 2000;

type Report = ProbeResult["reports"][number];

/**
 * Trains a linear probe at each selected layer on one activation per example (the last token's block output by default) or on
 * every token's: logistic regression on activations standardized with the training set's statistics, evaluated on held-out
 * examples.
 */
export function probe(input: OperationInput<ProbeConfig>): Promise<Findings<ProbeResult>> {
  return runWhole(split, input);
}

/** A layer's probe. */
interface TrainedLayer {
  trained: TrainedProbe;
  /** Activations that its means exclude. */
  excluded?: Excluded;
}

/** What all layers share: with rows all, the text and token of each row. */
interface Head {
  all?: Rows;
}
type Rows = Omit<ReadRows, "bytes">;

/** The items are the layers, then the cells of the grid. */
const split: Split<ProbeConfig, ProbeResult, Head, TrainedLayer | CellFigures> = {
  count: (config) => config.layers.length + cellsOf(config).length,
  async compute(input, own) {
    const { config } = input;
    const labels = config.examples.map(({ label }) => label);
    const layers = own.flatMap((index) => config.layers[index] ?? []);
    const grid = cellsOf(config);
    const cells = own.flatMap((index) => grid[index - config.layers.length] ?? []);
    const head: Head = {};
    // A part may have cells alone.
    const trainOwn = async () =>
      layers.length === 0
        ? []
        : trainLayers(
            { ...input, config: { ...config, layers } },
            {
              train: ({ all, excluded: _, ...data }, options) =>
                trainProbe(
                  {
                    ...{ ...data, seed: config.seed, permutations },
                    ...(all === undefined
                      ? { labels: Uint8Array.from(labels) }
                      : {
                          labels: Uint8Array.from(all.texts, (text) => labels[text] as 0 | 1),
                          groups: all.texts,
                        }),
                  },
                  options,
                ),
              report: (_, trained, { all, excluded }): TrainedLayer => {
                if (all !== undefined) {
                  const { bytes, ...rows } = all;
                  head.all = rows;
                }
                return { trained, ...(excluded && { excluded }) };
              },
            },
          );
    const trained = await trainOwn();
    return { head, items: [...trained, ...(await trainCells(input, cells))] };
  },
  async finish(config, { head: { all }, items }, artifacts) {
    const { point, rows, layers } = config;
    const reports: Report[] = [];
    for (const [index, layer] of layers.entries()) {
      const { trained, excluded } = items[index] as TrainedLayer;
      await writeWeights(artifacts, config, layer, trained);
      if (all !== undefined) await writeRows(artifacts, layer, trained, all);
      reports.push({ ...report(config, layer, trained, all), ...(excluded && { excluded }) });
    }
    const cells = cellsOf(config).map((cell, index) => {
      const found = items[layers.length + index] as CellFigures;
      return reportCell(cell, found, intervalsOf(config, found));
    });
    return {
      ...{ ...(point && { point }), ...(rows && { rows }), reports },
      ...(config.grid && { grid: cells }),
    };
  },
};

/** Of a cell's held-out examples. */
function intervalsOf({ examples, seed }: ProbeConfig, found: CellFigures) {
  const heldOut = examples
    .map(({ split, label }, index) => ({ split, label, score: found.scores[index] as number }))
    .filter(({ split }) => split === "test");
  return intervals(found, heldOut, bootstrapIntervals(heldOut, { resamples, seed }));
}

/** In double precision, so that scores computed from the file equal the reported ones. */
function writeWeights(
  artifacts: Artifacts,
  { point }: ProbeConfig,
  layer: number,
  { weight, bias, mean, std }: TrainedProbe,
): Promise<void> {
  const shape = [weight.length];
  return writeNpz(artifacts, `probe-layer-${layer}.npz`, {
    weight: { shape, data: weight },
    bias: { shape: [], data: Float64Array.of(bias) },
    mean: { shape, data: mean },
    std: { shape, data: std },
    ...pointField(point),
  });
}

/** The score of each activation, with its text and token; the result only has the texts' scores. */
function writeRows(
  artifacts: Artifacts,
  layer: number,
  { scores }: TrainedProbe,
  { texts, tokens }: Rows,
): Promise<void> {
  const shape = [scores.length];
  return writeNpz(artifacts, `probe-rows-${layer}.npz`, {
    text: { shape, data: texts },
    token: { shape, data: tokens },
    score: { shape, data: scores },
  });
}

function report(
  { examples, seed }: ProbeConfig,
  layer: number,
  trained: TrainedProbe,
  all: Rows | undefined,
): Report {
  const ofTexts = all === undefined ? trained.scores : meanScores(trained.scores, all.texts, examples.length);
  const scores = examples.map(({ text, split, label }, index) => ({
    ...{ text, split, label },
    score: ofTexts[index] as number,
  }));
  const heldOut = scores.filter(({ split }) => split === "test");
  return {
    layer,
    ...figures(trained.groups ?? trained, heldOut, bootstrapIntervals(heldOut, { resamples, seed })),
    converged: trained.converged,
    iterations: trained.iterations,
    scores,
    ...(all !== undefined && { by_row: byRow(examples, seed, trained, all) }),
  };
}

/** Activations of one text resemble each other, so the bootstrap resamples whole texts. */
function byRow(
  examples: ProbeConfig["examples"],
  seed: number,
  trained: TrainedProbe,
  { texts, shared }: Rows,
): NonNullable<Report["by_row"]> {
  const rows = Array.from(texts, (text, row) => ({
    ...{ text, split: examples[text]?.split, label: examples[text]?.label as 0 | 1 },
    score: trained.scores[row] as number,
  })).filter(({ split }) => split === "test");
  const intervals = bootstrapIntervals(rows, { resamples, seed, of: rows.map(({ text }) => text) });
  const perText = [...new Map(rows.map((row) => [row.text, row])).values()];
  return { ...figures(trained, perText, intervals, true), shared_rows: shared };
}

/**
 * @param heldOut independent held-out examples
 * @param resampled intervals by bootstrap
 * @param clustered whether the figures count rows that belong together, for which Wilson's interval would be too narrow
 */
function figures(
  found: ProbeFigures,
  heldOut: readonly { label: 0 | 1 }[],
  resampled: { accuracy: Interval; auc: Interval },
  clustered = false,
) {
  const { permutedAccuracies, permutedAucs } = found;
  return {
    accuracy: found.accuracy,
    auc: found.auc,
    brier: found.brier,
    majority_accuracy: found.majorityAccuracy,
    shuffled_label_accuracy: found.shuffledLabelAccuracy,
    train_size: found.trainSize,
    test_size: found.testSize,
    ...intervals(found, heldOut, resampled, clustered),
    shuffled_labels: {
      permutations,
      accuracy: spreadOf(permutedAccuracies),
      auc: spreadOf(permutedAucs),
      p_accuracy: atLeastAsGood(permutedAccuracies, found.accuracy),
      p_auc: atLeastAsGood(permutedAucs, found.auc),
    },
  };
}

/** @param resampled intervals by bootstrap; the other parameters are those of {@link figures} */
function intervals(
  { accuracy, auc }: Pick<ProbeFigures, "accuracy" | "auc">,
  heldOut: readonly { label: 0 | 1 }[],
  resampled: { accuracy: Interval; auc: Interval },
  clustered = false,
) {
  const ones = heldOut.filter(({ label }) => label === 1).length;
  const counted = !clustered || accuracy === 0 || accuracy === 1;
  return {
    accuracy_interval: counted ? wilson(accuracy, heldOut.length) : resampled.accuracy,
    auc_interval: auc === 0 || auc === 1 ? aurocAtEdge(auc, ones, heldOut.length - ones) : resampled.auc,
  };
}

/** The mean score of each text's activations. */
function meanScores(scores: Float64Array, texts: Int32Array, count: number): Float64Array {
  const sums = new Float64Array(count);
  const rows = new Float64Array(count);
  for (const [row, text] of texts.entries()) {
    sums[text] = (sums[text] as number) + (scores[row] as number);
    rows[text] = (rows[text] as number) + 1;
  }
  return sums.map((sum, text) => sum / (rows[text] as number));
}

export default {
  run: probe,
  split,
} satisfies Run<"probe">;
