/** The probe trainer against scikit-learn's LogisticRegression: weights, scores and every figure of the report. */
import { fileURLToPath } from "node:url";
import { trainProbe } from "../../../src/native/index.js";
import {
  correlatedClasses,
  type MadeActivations,
  rowsOfTexts,
  twoClasses,
} from "../../support/activations.js";
import { reference } from "../../support/reference.js";
import type { Figure, NumericCheck } from "./check.js";

const program = fileURLToPath(new URL("reference/probe.py", import.meta.url));

interface Fit {
  weight: number[];
  bias: number;
  scores: number[];
  accuracy: number;
  auc: number;
  brier: number;
  majority_accuracy: number;
  /** Of groups, by the means of their scores; nothing without groups. */
  by_group: { accuracy: number; auc: number; brier: number };
}

function cosine(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let [ab, aa, bb] = [0, 0, 0];
  for (let i = 0; i < a.length; i++) {
    ab += a[i]! * b[i]!;
    aa += a[i]! ** 2;
    bb += b[i]! ** 2;
  }
  return ab / Math.sqrt(aa * bb);
}

/** Constant dimensions, and the same examples several times over. */
function degenerate(set: MadeActivations): MadeActivations {
  const features = set.features.slice();
  for (let row = 0; row < set.count; row++) {
    const source = row % 60;
    for (let k = 0; k < set.hidden; k++) {
      features[row * set.hidden + k] = k % 5 === 0 ? 1e6 + k : set.features[source * set.hidden + k]!;
    }
  }
  return { ...set, features, labels: set.labels.map((_, row) => set.labels[row % 60]!) };
}

const overlapping = { test: 128, separation: 0.05 };
const texts = { train: 120, test: 60, rows: 12, alike: 0.7, separation: 0.3 };
const cases: Array<[string, MadeActivations & { groups?: Int32Array }, number]> = [
  ["384 x 896", twoClasses({ train: 384, hidden: 896, ...overlapping }), 1],
  ["384 x 2048", twoClasses({ train: 384, hidden: 2048, ...overlapping }), 1],
  ["384 x 4096", twoClasses({ train: 384, hidden: 4096, ...overlapping }), 1],
  ["384 x 896, correlated", correlatedClasses({ train: 384, test: 128, hidden: 896, separation: 1 }), 1],
  ["384 x 383 (weights)", twoClasses({ train: 384, hidden: 383, ...overlapping }), 1],
  ["384 x 385 (Gram matrix)", twoClasses({ train: 384, hidden: 385, ...overlapping }), 1],
  ["200 x 20, C = 100", twoClasses({ train: 200, test: 100, hidden: 20, separation: 0.3 }), 100],
  ["100 x 300 separable", twoClasses({ train: 100, test: 50, hidden: 300, separation: 3 }), 1],
  ["8 x 128", twoClasses({ train: 8, test: 8, hidden: 128, separation: 0.5 }), 1],
  [
    "120 x 200, duplicates, constants",
    degenerate(twoClasses({ train: 120, test: 60, hidden: 200, separation: 0.2 })),
    1,
  ],
  ["rows of 180 texts, 40 wide (weights)", rowsOfTexts({ ...texts, hidden: 40 }), 1],
  [
    "rows of 45 texts, 896 wide (Gram matrix)",
    rowsOfTexts({ ...texts, train: 30, test: 15, hidden: 896 }),
    1,
  ],
];

async function run(python: string): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [name, set, c] of cases) {
    const ours = await trainProbe({ ...set, c });
    // With 1e-10 scikit-learn stops where its line search finds nothing better: scores then agree to some 1e-4.
    const theirs = reference<Fit>(python, program, { ...set, c, tolerance: 1e-10 });
    const off = (mine: number, its: number) => Math.abs(mine - its);
    const score = Math.max(...theirs.scores.map((value, row) => off(value, ours.scores[row]!)));
    figures.push(
      {
        what: `${name}: weights, cosine`,
        value: cosine(ours.weight, theirs.weight),
        bound: 0.9999,
        atLeast: true,
      },
      { what: `${name}: AUROC`, value: off(ours.auc, theirs.auc), bound: 1e-3 },
      { what: `${name}: accuracy`, value: off(ours.accuracy, theirs.accuracy), bound: 1e-9 },
      { what: `${name}: majority`, value: off(ours.majorityAccuracy, theirs.majority_accuracy), bound: 1e-9 },
      { what: `${name}: Brier score`, value: off(ours.brier, theirs.brier), bound: 1e-4 },
      { what: `${name}: score of any example`, value: score, bound: 1e-3 },
      { what: `${name}: our gradient, infinity norm`, value: ours.gradientNorm, bound: 1e-8 },
    );
    const { groups } = ours;
    if (groups === undefined) continue;
    figures.push(
      {
        what: `${name}: accuracy of texts`,
        value: off(groups.accuracy, theirs.by_group.accuracy),
        bound: 1e-9,
      },
      { what: `${name}: AUROC of texts`, value: off(groups.auc, theirs.by_group.auc), bound: 1e-3 },
      { what: `${name}: Brier score of texts`, value: off(groups.brier, theirs.by_group.brier), bound: 1e-4 },
    );
  }
  return figures;
}

export default {
  title: "Probe against scikit-learn's LogisticRegression",
  modules: ["numpy", "sklearn"],
  run,
} satisfies NumericCheck;
