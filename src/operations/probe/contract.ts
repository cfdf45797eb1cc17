import Type, { type Static } from "typebox";
import { checkClasses, checkLeaks, checkPrompts, checkSplits } from "../../contracts/check-examples.js";
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
        `At least ${limits.examples_per_split_min} in each split, both classes in each split, ` +
        "no text in both splits.",
    }),
    point: readPoint(),
    rows: optional.Enum([...textRows], {
      description:
        `${rowsText}, or every token's (all), each with its text's label: at most ${limits.probe_rows} rows, and ` +
        `${bytesText(limits.probe_bytes)} of them over all layers. Figures are of texts, by the mean of their rows' scores, ` +
        "and of rows beside them.",
    }),
  },
  {
    ...closed,
    title: "ProbeSubmission",
    description:
      "Train a linear probe on final-token block outputs, or on other rows or another point of blocks.",
  },
);

export type ProbeConfig = Filled<Static<typeof ProbeSubmission>, CommonDefaults>;

const Spread = Type.Object(
  { low: Type.Number(), high: Type.Number(), mean: Type.Number(), std: Type.Number() },
  { title: "Spread", description: "Mean, standard deviation and middle 95 %." },
);

/** How well a probe does on what was held out, beside its controls. */
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
    permutations: Type.Integer({ description: "How often the training labels were permuted anew." }),
    accuracy: Spread,
    auc: Spread,
    p_accuracy: Type.Number({
      description: "Share of permutations at least as accurate, the probe counted as one of them.",
    }),
    p_auc: Type.Number({ description: "The same for the AUROC." }),
  },
  { title: "ShuffledLabels", description: "What chance gives: probes of permuted training labels." },
);

const ofTexts = "95 % bootstrap interval over the held-out texts, each with all its rows.";

export const ProbeRows = Type.Object(
  {
    ...probeFigures,
    accuracy_interval: requiredInterval(ofTexts),
    auc_interval: requiredInterval(ofTexts),
    shuffled_labels: ShuffledLabels,
    shared_rows: Type.Integer({
      description:
        "Held-out rows that a training text has, too: both texts begin with the same tokens up to there.",
    }),
  },
  {
    title: "ProbeRows",
    description:
      "For rows all: the same figures of single rows. Labels were permuted among texts, whose rows keep one label.",
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
  check({ examples, rows }: ProbeConfig): void {
    checkPrompts(examples, rows);
    checkSplits(examples);
    checkClasses(examples);
    checkLeaks(examples);
  },
} satisfies Contract;
