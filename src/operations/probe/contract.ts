import Type, { type Static } from "typebox";
import { checkClasses, checkLeaks, checkPrompts, checkSplits } from "../../contracts/check-examples.js";
import { InvalidInput } from "../../contracts/invalid-input.js";
import { limits } from "../../contracts/limits.js";
import { textRows } from "../../contracts/names.js";
import { optional } from "../../contracts/optional.js";
import {
  excludedFromMeans,
  Interval,
  pointRead,
  requiredInterval,
  resultFields,
  rowsRead,
  splitOf,
} from "../../contracts/result-fields.js";
import {
  type CommonDefaults,
  closed,
  common,
  type Filled,
  manyExamples,
  promptOfExample,
  readPoint,
  rowsText,
  split,
  text,
} from "../../contracts/submission-fields.js";
import { bytesText } from "../../text/words.js";
import type { Contract } from "../contract.js";
import { cellsOf } from "./contract-cells.js";
import { ProbeCell, ProbeGrid } from "./contract-grid.js";

export const ProbeExample = Type.Object(
  {
    text: text("Raw text."),
    prompt: promptOfExample,
    label: Type.Enum([0, 1], { description: "Class." }),
    split,
  },
  { ...closed, title: "ProbeExample" },
);

export const ProbeSubmission = Type.Object(
  {
    operation: Type.Literal("probe"),
    ...common,
    examples: Type.Array(ProbeExample, {
      ...manyExamples,
      description:
        `At least ${limits.examples_per_split_min} per split, both classes in each split, and ` +
        "no text in both splits.",
    }),
    point: readPoint(),
    rows: optional.Enum([...textRows], {
      description:
        `${rowsText}, or every token's (all), each labelled like its text: at most ${limits.probe_rows} activations, and ` +
        `${bytesText(limits.probe_bytes)} over all layers. Results are reported per text (mean of its scores) ` +
        "and also per activation.",
    }),
    grid: optional(ProbeGrid),
  },
  {
    ...closed,
    title: "ProbeSubmission",
    description:
      "Train a linear probe on the block outputs of last tokens, or on activations of other tokens or hook points.",
  },
);

export type ProbeConfig = Filled<Static<typeof ProbeSubmission>, CommonDefaults>;

const Spread = Type.Object(
  { low: Type.Number(), high: Type.Number(), mean: Type.Number(), std: Type.Number() },
  { title: "Spread", description: "Mean, standard deviation and middle 95 %." },
);

/** A probe's held-out performance and its controls. */
const probeFigures = {
  accuracy: Type.Number(),
  auc: Type.Number(),
  brier: Type.Number(),
  majority_accuracy: Type.Number({
    description: "Held-out accuracy of the training set's majority class.",
  }),
  shuffled_label_accuracy: Type.Number({
    description: "Held-out accuracy of a probe fitted to one permutation of the training labels.",
  }),
  train_size: Type.Integer(),
  test_size: Type.Integer(),
};

const ShuffledLabels = Type.Object(
  {
    permutations: Type.Integer({ description: "Number of permutations of the training labels." }),
    accuracy: Spread,
    auc: Spread,
    p_accuracy: Type.Number({
      description: "Share of permutations that are at least as accurate, counting the probe itself as one.",
    }),
    p_auc: Type.Number({ description: "The same for the AUROC." }),
  },
  { title: "ShuffledLabels", description: "Chance level: probes trained on permuted labels." },
);

const ofTexts = "95 % bootstrap interval over the held-out texts, each with all its activations.";

export const ProbeRows = Type.Object(
  {
    ...probeFigures,
    accuracy_interval: requiredInterval(ofTexts),
    auc_interval: requiredInterval(ofTexts),
    shuffled_labels: ShuffledLabels,
    shared_rows: Type.Integer({
      description:
        "Held-out activations that also occur in a training text, because both texts start with the same tokens.",
    }),
  },
  {
    title: "ProbeRows",
    description:
      "For rows all: the same values per activation. Labels are permuted among texts; all activations of a text keep one label.",
  },
);
export type ProbeRows = Static<typeof ProbeRows>;

export const ProbeReport = Type.Object(
  {
    layer: Type.Integer(),
    ...probeFigures,
    converged: Type.Boolean(),
    iterations: Type.Integer(),
    scores: Type.Array(
      Type.Object({ text: Type.String(), split: splitOf, label: Type.Enum([0, 1]), score: Type.Number() }),
    ),
    accuracy_interval: Interval("95 % Wilson interval over the held-out examples."),
    auc_interval: Interval(
      "95 % bootstrap interval over the held-out examples; of an AUROC of 0 or 1, an exact bound (Clopper-Pearson over as " +
        "many pairs as the smaller class has examples).",
    ),
    shuffled_labels: Type.Optional(ShuffledLabels),
    by_row: Type.Optional(ProbeRows),
    excluded: excludedFromMeans,
  },
  { title: "ProbeReport" },
);

export const ProbeResult = Type.Object(
  {
    point: pointRead,
    rows: rowsRead,
    reports: Type.Array(ProbeReport),
    grid: optional.Array(ProbeCell, {
      description: "By point, position, layer and C, in the order of the request.",
    }),
    ...resultFields,
  },
  { title: "ProbeResult" },
);
export type ProbeResult = Static<typeof ProbeResult>;

export default {
  submission: ProbeSubmission,
  result: ProbeResult,
  forAgents: "(examples with label and split)",
  places: {},
  check(config: ProbeConfig): void {
    const { examples, rows, grid } = config;
    if (grid !== undefined && rows !== undefined && rows !== "last") {
      throw new InvalidInput("grid", `requires the last tokens' activations, not rows ${rows}.`);
    }
    const cells = cellsOf(config).length;
    if (cells > limits.probe_cells) {
      throw new InvalidInput("grid", `has ${cells} probes; the limit is ${limits.probe_cells}.`);
    }
    checkPrompts(examples, rows);
    checkSplits(examples);
    checkClasses(examples);
    checkLeaks(examples);
  },
} satisfies Contract;
