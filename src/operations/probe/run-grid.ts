import type { ProbeConfig } from "../../contracts/index.js";
import { exampleFeatures } from "../../lab/rows/example-features.js";
import { type TrainedProbe, trainProbe } from "../../native/index.js";
import type { OperationInput } from "../run.js";
import type { cellsOf } from "./contract-cells.js";
import type { ProbeCell } from "./contract-grid.js";

export type Cell = ReturnType<typeof cellsOf>[number];

/** The held-out figures of a cell's probe. */
export type CellFigures = Pick<
  TrainedProbe,
  | "accuracy"
  | "auc"
  | "brier"
  | "majorityAccuracy"
  | "shuffledLabelAccuracy"
  | "trainSize"
  | "testSize"
  | "converged"
  | "scores"
>;

/** Fits some cells of a grid, in their order. The examples are captured once for each point and position. */
export async function trainCells(
  input: OperationInput<ProbeConfig>,
  cells: readonly Cell[],
): Promise<CellFigures[]> {
  const { config, clock, progress, signal } = input;
  const labels = Uint8Array.from(config.examples, ({ label }) => label);
  const found: CellFigures[] = [];
  for (const own of captures(cells)) {
    const [{ point, position }] = own as [Cell];
    const layers = [...new Set(own.map(({ layer }) => layer))];
    const capture = { ...input, config: { ...config, point, layers, rows: "last" as const } };
    const { byLayer, train } = await exampleFeatures(capture, position);
    for (const { layer, c } of own) {
      progress({ stage: "grid", done: found.length, total: cells.length });
      const features = byLayer.get(layer) as Float32Array;
      const trained = await clock.measure("train", () =>
        trainProbe({ features, train, labels, c, seed: config.seed }, { signal }),
      );
      const { accuracy, auc, brier, majorityAccuracy, shuffledLabelAccuracy } = trained;
      const { trainSize, testSize, converged, scores } = trained;
      found.push({
        ...{ accuracy, auc, brier, majorityAccuracy, shuffledLabelAccuracy },
        ...{ trainSize, testSize, converged, scores },
      });
    }
  }
  return found;
}

/** Cells in a row that read the same activations. */
function captures(cells: readonly Cell[]): Cell[][] {
  const groups: Cell[][] = [];
  for (const cell of cells) {
    const [first] = groups.at(-1) ?? [];
    if (first?.point === cell.point && first.position === cell.position) groups.at(-1)?.push(cell);
    else groups.push([cell]);
  }
  return groups;
}

export function reportCell(
  cell: Cell,
  found: CellFigures,
  intervals: Pick<ProbeCell, "accuracy_interval" | "auc_interval">,
): ProbeCell {
  return {
    ...cell,
    ...{ accuracy: found.accuracy, auc: found.auc, brier: found.brier },
    majority_accuracy: found.majorityAccuracy,
    shuffled_label_accuracy: found.shuffledLabelAccuracy,
    ...{ train_size: found.trainSize, test_size: found.testSize, converged: found.converged },
    accuracy_interval: intervals.accuracy_interval,
    auc_interval: intervals.auc_interval,
  };
}
