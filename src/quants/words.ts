import { figureOf, percent } from "../findings/numbers.js";
import type { Measured } from "../findings/uncertainty.js";
import { bytesText } from "../text/words.js";
import type { Quants, QuantsFile, QuantsForm } from "./result.js";
import { isRoundedType } from "./rounded-types.js";
import { leastCorrelation } from "./survival.js";

/** A row of the table: the reference has some of a form's figures. */
export type Row = Partial<QuantsForm> & QuantsFile;

export interface Column {
  head: string;
  what: string;
  /** Without a value, the cell is empty. */
  of(row: Row): { value: string; interval?: string } | undefined;
}

const cell = (measured: Measured | null | undefined, text: (value: number) => string) =>
  measured
    ? { value: text(measured.value), interval: `${text(measured.low)} to ${text(measured.high)}` }
    : undefined;

const nats = (value: number) => figureOf(Number(value.toPrecision(3)));
const rate = (value: number) => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);

const columns: readonly Column[] = [
  { head: "Size", what: "of all files", of: ({ bytes }) => ({ value: bytesText(bytes) }) },
  {
    head: "Bits per weight",
    what: "of all tensors",
    of: ({ bits_per_weight: bits }) => ({ value: bits.toFixed(2) }),
  },
  {
    head: "KL",
    what: "KL divergence of the next-token distributions from the reference's, in nats per token of held-out texts",
    of: ({ divergence }) => cell(divergence, nats),
  },
  {
    head: "Same top token",
    what: "predictions with the reference's most probable token",
    of: ({ agreement }) => cell(agreement, percent),
  },
  {
    head: "Perplexity",
    what: "on the same texts",
    of: ({ perplexity }) => cell(perplexity, (value) => value.toFixed(2)),
  },
  {
    head: "Perplexity ratio",
    what: "divided by the reference's, paired by text",
    of: ({ perplexity_ratio: ratio }) => cell(ratio, (value) => value.toFixed(4)),
  },
  {
    head: "Drift",
    what: "|a − b| / |a| at the last layer measured, for block outputs a of the reference and b of the form",
    of: ({ drift }) => cell(drift?.at(-1)?.relative_difference, percent),
  },
  {
    head: "Features surviving",
    what: "features of the reference that are active on at least half of the same tokens",
    of: ({ survival }) => cell(survival?.surviving, percent),
  },
  {
    head: "Features died",
    what: "features of the reference that are active on none of these tokens",
    of: ({ survival }) => cell(survival?.died, percent),
  },
  {
    head: "Features correlated",
    what: `features of the reference whose activations in the form have a Pearson correlation with the reference's of at least ${leastCorrelation}, over all tokens`,
    of: ({ survival }) => cell(survival?.correlated, percent),
  },
  {
    head: "Control correlated",
    what: "the same of the control dictionary",
    of: ({ survival }) => cell(survival?.control?.correlated, percent),
  },
  {
    head: "Loss recovered",
    what: "by the dictionary's reconstruction in this form",
    of: ({ survival }) => cell(survival?.loss_recovered, percent),
  },
  {
    head: "Probe AUROC",
    what: "of the reference's probe on this form's activations",
    of: ({ probe }) => cell(probe?.form, (value) => value.toFixed(3)),
  },
  {
    head: "Vector separation",
    what: "AUROC of projections of this form's activations on the reference's vector",
    of: ({ vector }) => cell(vector?.form, (value) => value.toFixed(3)),
  },
  {
    head: "Circuit overlap",
    what: "of the neurons and heads in the pruned attribution graph of the reference or of the form, the share in both; mean over prompts",
    of: ({ circuits }) => cell(circuits?.overlap, percent),
  },
  {
    head: "Circuit rank correlation",
    what: "Spearman's, of the influences of these neurons and heads in both graphs; mean over prompts",
    of: ({ circuits }) => cell(circuits?.rank, (value) => value.toFixed(3)),
  },
  {
    head: "Influence from errors",
    what: "share of a graph's influence that starts at rounding or at neurons that are not nodes; mean over prompts",
    of: ({ circuits }) => cell(circuits?.error[1], percent),
  },
  {
    head: "Influence from rounding",
    what: "share of a graph's influence that starts at rounding; mean over prompts",
    of: ({ circuits }) => cell(circuits?.rounding[1], percent),
  },
  { head: "Prompt", what: "tokens per second", of: ({ speed }) => cell(speed.prompt, rate) },
  { head: "Generation", what: "tokens per second", of: ({ speed }) => cell(speed.generation, rate) },
  {
    head: "Memory",
    what: "weights, default context and buffers, as llama.cpp lays them out",
    of: ({ memory }) => ({ value: bytesText(memory) }),
  },
];

/** The reference first, then the forms from large to small. */
export function rowsOf({ reference, forms }: Quants): Row[] {
  const circuits = forms.find((form) => form.circuits !== undefined)?.circuits;
  const own = circuits && {
    ...{ ...circuits, overlap: null, rank: null },
    ...{ error: twice(circuits.error[0]), rounding: twice(circuits.rounding[0]) },
  };
  return [{ ...reference, ...(own && { circuits: own }) }, ...forms.toSorted((a, b) => b.bytes - a.bytes)];
}

const twice = <T>(one: T): [T, T] => [one, one];

/** The columns for which there are figures. */
export function columnsOf(quants: Quants): Column[] {
  const rows = rowsOf(quants);
  return columns.filter(({ of }) => rows.some((row) => of(row) !== undefined));
}

/** The result in sentences: the smallest form that hardly differs, and what perplexity does not show. */
export function findingOf({ forms, settings, no_circuits: refused }: Quants): string[] {
  const sorted = forms.toSorted((a, b) => b.divergence.value - a.divergence.value);
  const [worst, best] = [sorted[0] as QuantsForm, sorted.at(-1) as QuantsForm];
  const told = ({ name, agreement, divergence }: QuantsForm) =>
    `${name} keeps the most probable token in ${percent(agreement.value)} of ${settings.tokens} predictions (KL ${nats(divergence.value)} nats)`;
  const sentences = [best === worst ? `${told(best)}.` : `${told(best)}; ${told(worst)}.`];
  const better = forms.filter(({ perplexity_ratio: ratio }) => ratio.high < 1);
  for (const { name, perplexity_ratio: ratio, agreement, survival } of better) {
    const features =
      survival === undefined || survival.features === 0
        ? ""
        : `, and ${percent(1 - survival.correlated.value)} of the features no longer correlate with the reference's`;
    sentences.push(
      `${name} has a lower perplexity than the reference (ratio ${ratio.value.toFixed(4)}), and still predicts a different token in ${percent(1 - agreement.value)} of cases${features}.`,
    );
  }
  const survivals = forms.flatMap(({ name, survival }) => (survival ? [{ name, survival }] : []));
  const most = survivals.toSorted((a, b) => a.survival.surviving.value - b.survival.surviving.value)[0];
  if (most !== undefined) {
    const { name, survival } = most;
    sentences.push(
      `Of ${survival.features} features of ${survival.dictionary} at layer ${survival.layer}, ${percent(survival.surviving.value)} survive in ${name}, the fewest, and ${percent(survival.died.value)} die.`,
    );
  }
  const circuits = forms.flatMap((form) => (form.circuits?.overlap ? [form] : []));
  const least = circuits.toSorted((a, b) => a.circuits!.overlap!.value - b.circuits!.overlap!.value)[0];
  if (least !== undefined) {
    const { name, circuits: own } = least;
    sentences.push(
      `Of the neurons and heads in the attribution graphs of ${own!.prompts.length} prompts in the reference or in ${name}, ${percent(own!.overlap!.value)} are in both, the least.`,
    );
  }
  if (refused !== undefined) sentences.push(`There are no attribution graphs of this model: ${refused}`);
  return sentences;
}

/** Limits of the figures. */
export function cautionsOf({ forms }: Quants): string[] {
  const rounded = forms.some(({ types }) => types.some(({ type }) => isRoundedType(type)));
  return [
    "Intervals are 95 % bootstrap intervals over texts, over prompts for circuits, or over rounds for speed: they show how much a figure depends on these texts, not on other kinds of text.",
    "Speeds depend on the machine and its other load; the models take turns, so that any load affects all of them.",
    ...(rounded
      ? [
          "Forms rounded to nearest are computed in the reference's types: their size is what their bits would take, and their speed and memory are the reference's.",
        ]
      : []),
  ];
}

/** The types of the weights, by their share. */
export function mixText({ types }: Pick<QuantsFile, "types">): string {
  const all = types.reduce((sum, { weights }) => sum + weights, 0);
  return types
    .filter(({ weights }) => weights / all >= 5e-4)
    .map(({ type, weights }) => `${type} ${((100 * weights) / all).toFixed(1)} %`)
    .join(", ");
}

/** How a form's weights are stored. */
export function storageText({ types, imatrix }: Pick<QuantsFile, "types" | "imatrix">): string {
  const matrix = imatrix === null ? "" : `; importance matrix ${imatrix.dataset || imatrix.file}`;
  return `${mixText({ types })}${matrix}`;
}
