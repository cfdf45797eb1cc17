import type { FeatureExampleGroup, FeaturePage } from "../../contracts/index.js";
import type { Reading } from "../../lab/rows/dictionary-reading.js";
import { pieceLookup } from "../../lab/rows/tokens.js";
import { decoderRows, type OpenDictionary } from "../../library/index.js";
import type { Context, Model } from "../../native/index.js";

const bins = 20;
const topExamples = 5;
const groupExamples = 3;
/** Tokens of an excerpt before and after its main token. */
const [tokensBefore, tokensBehind] = [10, 5];
const namedTokens = 10;
const namedNeighbours = 8;
/** Maximum number of decoder values in memory at a time. */
const pieceValues = 16 * 1024 ** 2;

/** A token on which a feature is active. */
interface Place {
  text: number;
  token: number;
  activation: number;
}

/** What a dashboard shows of a feature without any text. */
export type PageSource = Pick<FeaturePage, "feature" | "label" | "raised" | "lowered" | "neighbours">;
type Active = Pick<Reading, "tokens" | "sparse" | "counted">;

/**
 * Which tokens the features' decoder rows raise and lower, and the features with the most similar decoder rows.
 * @throws UserError if the dictionary has no such feature
 */
export async function pageSources(
  wanted: readonly number[],
  dictionary: OpenDictionary,
  { model, context, labels }: { model: Model; context: Context; labels: ReadonlyMap<number, string> },
): Promise<PageSource[]> {
  const directions = await Promise.all(
    wanted.map((feature) => decoderRows(dictionary, feature, feature + 1)),
  );
  const neighbours = await neighboursOf(dictionary, wanted, directions);
  const sources: PageSource[] = [];
  for (const [i, feature] of wanted.entries()) {
    const label = labels.get(feature);
    sources.push({
      feature,
      ...(label !== undefined && { label }),
      ...(await tokensOf(directions[i] as Float32Array, model, context)),
      neighbours: (neighbours[i] as FeaturePage["neighbours"]).map((one) => {
        const label = labels.get(one.feature);
        return label === undefined ? one : { ...one, label };
      }),
    });
  }
  return sources;
}

/** Feature dashboards: their sources, and where the features are active in these texts, grouped by quantile. */
export function featurePages(sources: readonly PageSource[], readings: readonly Active[]): FeaturePage[] {
  return sources.map(({ feature, label, raised, lowered, neighbours }) => {
    const places = placesOf(feature, readings);
    return {
      feature,
      ...(label !== undefined && { label }),
      active_tokens: places.length,
      histogram: histogramOf(places),
      groups: groupsOf(places).map(({ name, places }) => ({
        name,
        examples: places.map((place) => exampleOf(feature, place, readings)),
      })),
      ...{ raised, lowered, neighbours },
    };
  });
}

/** Where a feature is active, strongest first, among the counted tokens. */
function placesOf(feature: number, readings: readonly Active[]): Place[] {
  const places: Place[] = [];
  for (const [text, { sparse, counted }] of readings.entries()) {
    for (let token = 0; token < counted.length; token++) {
      if (!counted[token]) continue;
      const activation = activationOf(sparse, token, feature);
      if (activation > 0) places.push({ text, token, activation });
    }
  }
  return places.sort((a, b) => b.activation - a.activation || a.text - b.text || a.token - b.token);
}

function activationOf(
  { pointers, indices, values }: Reading["sparse"],
  token: number,
  feature: number,
): number {
  for (let i = pointers[token] as number; i < (pointers[token + 1] as number); i++) {
    if (indices[i] === feature) return values[i] as number;
  }
  return 0;
}

function histogramOf(places: readonly Place[]): FeaturePage["histogram"] {
  const greatest = places[0]?.activation ?? 0;
  if (greatest === 0) return [];
  const counts = Array.from({ length: bins }, (_, i) => ({ least: (greatest * i) / bins, tokens: 0 }));
  for (const { activation } of places) {
    const bin = counts[Math.min(bins - 1, Math.floor((activation / greatest) * bins))];
    if (bin !== undefined) bin.tokens++;
  }
  return counts;
}

/** The strongest places, then a sample of each quarter by rank. */
function groupsOf(places: readonly Place[]): Array<{ name: FeatureExampleGroup["name"]; places: Place[] }> {
  const top = places.slice(0, topExamples);
  const names = ["75-100 %", "50-75 %", "25-50 %", "0-25 %"] as const;
  const groups = names.map((name, quarter) => {
    const from = Math.max(top.length, Math.floor((places.length * quarter) / 4));
    const own = places.slice(from, Math.max(from, Math.floor((places.length * (quarter + 1)) / 4)));
    const step = Math.max(1, own.length / groupExamples);
    const some = Array.from(
      { length: Math.min(groupExamples, own.length) },
      (_, i) => own[Math.floor(i * step)] as Place,
    );
    return { name, places: some };
  });
  return [{ name: "top" as const, places: top }, ...groups].filter(({ places }) => places.length > 0);
}

function exampleOf(
  feature: number,
  { text, token, activation }: Place,
  readings: readonly Active[],
): FeatureExampleGroup["examples"][number] {
  const { sparse, tokens } = readings[text] as Active;
  const from = Math.max(0, token - tokensBefore);
  const to = Math.min(tokens.length, token + tokensBehind + 1);
  return {
    ...{ text, token, activation, from },
    activations: Array.from({ length: to - from }, (_, i) => activationOf(sparse, from + i, feature)),
  };
}

/** The tokens that this direction alone would make most and least probable, relative to the average token. */
async function tokensOf(
  direction: Float32Array,
  model: Model,
  context: Context,
): Promise<Pick<FeaturePage, "raised" | "lowered">> {
  if (!context.lens.supported) return { raised: null, lowered: null };
  const logits = await context.lensLogits(direction);
  const mean = logits.reduce((sum, logit) => sum + logit, 0) / logits.length;
  const order = Int32Array.from(logits.keys()).sort(
    (a, b) => (logits[b] as number) - (logits[a] as number) || a - b,
  );
  const [raised, lowered] = [order.slice(0, namedTokens), order.slice(-namedTokens).reverse()];
  const piece = await pieceLookup(model, [...raised, ...lowered]);
  const named = (ids: Int32Array) =>
    Array.from(ids, (id) => ({ token_id: id, token: piece(id), effect: (logits[id] as number) - mean }));
  return { raised: named(raised), lowered: named(lowered) };
}

/** For each feature, the features with the most similar decoder rows by cosine. Reads the decoder once. */
async function neighboursOf(
  dictionary: OpenDictionary,
  features: readonly number[],
  directions: readonly Float32Array[],
): Promise<FeaturePage["neighbours"][]> {
  const { features: total, n_embd: hidden } = dictionary.stored;
  const atOnce = Math.max(1, Math.floor(pieceValues / hidden));
  const lengths = directions.map((direction) => Math.hypot(...direction));
  const found = features.map((): FeaturePage["neighbours"] => []);
  for (let first = 0; first < total; first += atOnce) {
    const last = Math.min(total, first + atOnce);
    const rows = await decoderRows(dictionary, first, last);
    for (let other = first; other < last; other++) {
      const row = rows.subarray((other - first) * hidden);
      let square = 0;
      for (let i = 0; i < hidden; i++) square += (row[i] as number) ** 2;
      for (const [i, feature] of features.entries()) {
        if (other === feature) continue;
        const direction = directions[i] as Float32Array;
        let product = 0;
        for (let j = 0; j < hidden; j++) product += (row[j] as number) * (direction[j] as number);
        const length = Math.sqrt(square) * (lengths[i] as number);
        keep(found[i] as FeaturePage["neighbours"], {
          feature: other,
          cosine: length > 0 ? product / length : 0,
        });
      }
    }
  }
  return found;
}

function keep(list: FeaturePage["neighbours"], one: { feature: number; cosine: number }): void {
  const place = list.findIndex(({ cosine }) => one.cosine > cosine);
  list.splice(place === -1 ? list.length : place, 0, one);
  list.length = Math.min(list.length, namedNeighbours);
}
