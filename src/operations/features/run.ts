import type { FeaturesConfig, FeaturesResult } from "../../contracts/index.js";
import type { StoredDictionary } from "../../contracts/library.js";
import { limits, topCounts } from "../../contracts/limits.js";
import { pointField } from "../../contracts/names.js";
import { UserError } from "../../contracts/user-error.js";
import { taplineHome } from "../../files/home.js";
import { writeNpz } from "../../lab/npz.js";
import {
  checkDictionary,
  excludedIn,
  fidelityOf,
  readThrough,
  type TextFit,
  textFit,
} from "../../lab/rows/dictionary-reading.js";
import { inContext } from "../../lab/rows/open-context.js";
import { tokenizeInput } from "../../lab/rows/tokens.js";
import { Dictionaries, type OpenDictionary } from "../../library/index.js";
import { type Context, type Model, type SparseRows, strongestFeatures } from "../../native/index.js";
import type { Findings, OperationInput, Run, Split } from "../run.js";
import { runWhole } from "../run-parts.js";
import type { PageSource } from "./run-pages.js";

/** Values of one text. */
interface ReadText {
  tokens: Int32Array;
  pieces: string[];
  sparse: SparseRows;
  /** 1 for a token whose activation counts in figures. */
  counted: Uint8Array;
  fit: TextFit;
  /** With the first text, which one part has: what the requested dashboards show besides the texts. */
  pages?: PageSource[];
}

/** What all texts share. */
interface Head {
  dictionary: Omit<StoredDictionary, "bytes" | "created">;
  model: Pick<Model["info"], "name" | "addBos">;
}

/**
 * Encodes texts with a saved dictionary: which features are active on which token, and how well the dictionary fits
 * the texts: explained variance, L0, and loss recovered (Bricken et al. 2023, "Towards Monosemanticity").
 */
export function features(input: OperationInput<FeaturesConfig>): Promise<Findings<FeaturesResult>> {
  return runWhole(split, input);
}

/** The items are the texts. */
const split: Split<FeaturesConfig, FeaturesResult, Head, ReadText> = {
  count: ({ texts }) => texts?.length ?? 1,
  async compute(input, own) {
    const { config, model, clock, progress } = input;
    const dictionaries = new Dictionaries(taplineHome());
    const { nEmbd, nLayer, name, addBos } = model.info;
    const dictionary = await dictionaries.fitting(config.dictionary, { nEmbd, nLayer });
    const texts = await tokenizeTexts(input);
    // Of all texts, so that every part has the same context.
    const longest = Math.max(...texts.map(({ length }) => length));
    const items: ReadText[] = [];
    await inContext(input, { nCtx: longest }, async (context) => {
      checkDictionary(dictionary.stored, context);
      for (const [done, index] of own.entries()) {
        progress({ stage: "features", done, total: own.length });
        const tokens = texts[index] as Int32Array;
        const reading = await clock.measure("compute", () => readThrough(input, context, dictionary, tokens));
        const { sparse, counted } = reading;
        const pieces = await model.pieces(tokens);
        items.push({ ...{ tokens, pieces, sparse, counted }, fit: textFit(model, reading) });
      }
      const first = items[own.indexOf(0)];
      if (config.pages !== undefined && first !== undefined) {
        first.pages = await sourcesOf(input, dictionary, context, config.pages);
      }
    });
    const { bytes, created, ...stored } = dictionary.stored;
    return { head: { dictionary: stored, model: { name, addBos } }, items };
  },
  async finish(config, { head, items }, artifacts) {
    await writeNpz(artifacts, "features.npz", sparseArrays(items));
    const sources = items[0]?.pages;
    if (sources === undefined) return describe(config, head, items);
    const { featurePages } = await import("./run-pages.js");
    return { ...describe(config, head, items), pages: featurePages(sources, items) };
  },
};

async function sourcesOf(
  { config, model, clock, progress }: OperationInput<FeaturesConfig>,
  dictionary: OpenDictionary,
  context: Context,
  pages: readonly number[],
): Promise<PageSource[]> {
  progress({ stage: "pages", done: 0, total: pages.length });
  const { pageSources } = await import("./run-pages.js");
  const { labelsOf } = await import("./run-labels.js");
  return clock.measure("pages", async () =>
    pageSources(pages, dictionary, {
      ...{ model, context },
      labels: config.labels === undefined ? new Map() : await labelsOf(config.labels, pages),
    }),
  );
}

async function tokenizeTexts({ config, model }: OperationInput<FeaturesConfig>): Promise<Int32Array[]> {
  const given = config.texts ?? [config.prompt as string];
  const texts: Int32Array[] = [];
  for (const [index, text] of given.entries()) {
    const what = config.texts === undefined ? "prompt" : `texts[${index}]`;
    texts.push(await tokenizeInput(model, text, config.max_input_tokens, what));
  }
  const total = texts.reduce((sum, { length }) => sum + length, 0);
  if (total > limits.feature_tokens) {
    throw new UserError(`The texts have ${total} tokens; the limit is ${limits.feature_tokens}.`);
  }
  return texts;
}

function sparseArrays(readings: readonly ReadText[]) {
  const tokenIds = concat(
    Int32Array,
    readings.map(({ tokens }) => tokens),
  );
  const starts = [0];
  const pointers = [0];
  for (const { tokens, sparse } of readings) {
    starts.push((starts.at(-1) as number) + tokens.length);
    const before = pointers.at(-1) as number;
    for (const pointer of sparse.pointers.subarray(1)) pointers.push(before + pointer);
  }
  const values = concat(
    Float32Array,
    readings.map(({ sparse }) => sparse.values),
  );
  const whole = (data: Int32Array) => ({ shape: [data.length], data });
  return {
    token_ids: whole(tokenIds),
    text_starts: whole(Int32Array.from(starts)),
    pointers: whole(Int32Array.from(pointers)),
    indices: whole(
      concat(
        Int32Array,
        readings.map(({ sparse }) => sparse.indices),
      ),
    ),
    values: { shape: [values.length], data: values },
  };
}

function concat<A extends Int32Array | Float32Array>(
  array: new (length: number) => A,
  parts: readonly A[],
): A {
  const out = new array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function describe(
  { top }: FeaturesConfig,
  { dictionary, model }: Head,
  items: readonly ReadText[],
): Findings<FeaturesResult> {
  const { name, sha256, layout, activation, features: count, trained_on, layer, point } = dictionary;
  const fits = items.map(({ fit }) => fit);
  return {
    dictionary: { name, sha256, layout, activation, features: count, trained_on },
    layer,
    ...pointField(point),
    ...(dictionary.writes !== undefined && { writes: dictionary.writes }),
    texts: items.map(({ tokens, pieces, sparse }) => ({
      tokens: pieces,
      token_ids: [...tokens],
      top: Array.from(tokens, (_, token) => strongestFeatures(sparse, token, top)),
    })),
    features: strongestAnywhere(items),
    fidelity: fidelityOf(fits),
    note: [
      excludedNote(model, fits),
      mismatchNote(model, trained_on),
      otherBosNote(model, dictionary.prepend_bos),
      ...dictionary.notes,
    ]
      .filter((part) => part !== "")
      .join(" "),
  };
}

function strongestAnywhere(readings: readonly ReadText[]): FeaturesResult["features"] {
  const seen = new Map<number, { max: number; sum: number; count: number; text: number; token: number }>();
  let tokens = 0;
  for (const [text, { sparse, counted }] of readings.entries()) {
    for (let token = 0; token < counted.length; token++) {
      if (!counted[token]) continue;
      tokens++;
      for (let i = sparse.pointers[token] as number; i < (sparse.pointers[token + 1] as number); i++) {
        const value = sparse.values[i] as number;
        const feature = sparse.indices[i] as number;
        const known = seen.get(feature) ?? { max: Number.NEGATIVE_INFINITY, sum: 0, count: 0, text, token };
        known.sum += value;
        known.count++;
        if (value > known.max) Object.assign(known, { max: value, text, token });
        seen.set(feature, known);
      }
    }
  }
  return [...seen]
    .sort(([a, { max: x }], [b, { max: y }]) => y - x || a - b)
    .slice(0, topCounts.features)
    .map(([feature, { max, sum, count, text, token }]) => {
      return { feature, max, mean: sum / count, frequency: count / tokens, text, token };
    });
}

function excludedNote(model: Head["model"], fits: readonly TextFit[]): string {
  const bos = model.addBos ? "BOS tokens are excluded from all values and never replaced." : "";
  const { outliers } = excludedIn(fits);
  if (outliers === 0) return bos;
  const which = outliers === 1 ? "1 activation" : `${outliers} activations`;
  const verb = outliers === 1 ? "is" : "are";
  return `${bos} The values also exclude ${which} whose norm ${verb} above ten times the median.`.trim();
}

/** With or without a BOS token, activations differ, especially the first ones. */
function otherBosNote(model: Head["model"], prependBos: boolean | null): string {
  if (prependBos === null || prependBos === model.addBos) return "";
  return prependBos
    ? "The dictionary was trained on texts that start with a BOS token; this model adds none."
    : "The dictionary was trained on texts without a BOS token; this model adds one.";
}

const tuned = /(^|[-_/ ])(it|instruct|chat)($|[-_/ .])/i;

/** A base model's dictionary on an instruct model, or vice versa, was made for a different model. */
function mismatchNote(model: Head["model"], trainedOn: string | null): string {
  if (trainedOn === null || model.name === "") return "";
  const [own, its] = [tuned.test(model.name), tuned.test(trainedOn)];
  if (own === its) return "";
  return `The dictionary was trained on ${trainedOn}; the model is ${model.name}: base and instruct models differ.`;
}

export default {
  run: features,
  split,
  layers: ({ layer }) => [layer],
} satisfies Run<"features">;
