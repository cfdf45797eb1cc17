import { figureOf, percent } from "../findings/numbers.js";
import type { Measured } from "../findings/uncertainty.js";
import { bytesText } from "../text/words.js";
import type { Quants, QuantsFile, QuantsForm } from "./result.js";

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
  return [reference, ...forms.toSorted((a, b) => b.bytes - a.bytes)];
}

/** The columns for which there are figures. */
export function columnsOf(quants: Quants): Column[] {
  const rows = rowsOf(quants);
  return columns.filter(({ of }) => rows.some((row) => of(row) !== undefined));
}

/** The result in sentences: the smallest form that hardly differs, and what perplexity does not show. */
export function findingOf({ forms, settings }: Quants): string[] {
  const sorted = forms.toSorted((a, b) => b.divergence.value - a.divergence.value);
  const [worst, best] = [sorted[0] as QuantsForm, sorted.at(-1) as QuantsForm];
  const told = ({ name, agreement, divergence }: QuantsForm) =>
    `${name} keeps the most probable token in ${percent(agreement.value)} of ${settings.tokens} predictions (KL ${nats(divergence.value)} nats)`;
  const sentences = [best === worst ? `${told(best)}.` : `${told(best)}; ${told(worst)}.`];
  const better = forms.filter(({ perplexity_ratio: ratio }) => ratio.high < 1);
  for (const { name, perplexity_ratio: ratio, agreement } of better) {
    sentences.push(
      `${name} has a lower perplexity than the reference (ratio ${ratio.value.toFixed(4)}), and still predicts a different token in ${percent(1 - agreement.value)} of cases.`,
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
  return sentences;
}

export const cautions: readonly string[] = [
  "Intervals are 95 % bootstrap intervals over texts, or over rounds for speed: they show how much a figure depends on these texts, not on other kinds of text.",
  "Speeds depend on the machine and its other load; the models take turns, so that any load affects all of them.",
];

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
