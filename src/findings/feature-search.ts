import type { FeaturesResult } from "../contracts/index.js";

/** A feature that is active where a word occurs. */
export interface FoundFeature {
  feature: number;
  /** Mean over the tokens of the word; 0 where it is not among the strongest. */
  mean: number;
  max: number;
  /** The word's tokens where it is active. */
  on: number;
  /** Other tokens where it is active. */
  elsewhere: number;
}

/** Which features are active on a word, strongest first, and where else. */
export interface FeatureSearch {
  /** Tokens of the word, as `text token`. */
  places: ReadonlySet<string>;
  /** All tokens of the texts. */
  tokens: number;
  features: FoundFeature[];
}

/** The tokens of the texts that overlap a word, in any case; a word inside another one counts. */
function placesOf(texts: FeaturesResult["texts"], word: string): Set<string> {
  const wanted = word.trim().toLowerCase();
  const places = new Set<string>();
  if (wanted === "") return places;
  for (const [text, { tokens }] of texts.entries()) {
    const whole = tokens.join("").toLowerCase();
    const starts: number[] = [];
    let length = 0;
    for (const token of tokens) {
      starts.push(length);
      length += token.toLowerCase().length;
    }
    for (let from = whole.indexOf(wanted); from >= 0; from = whole.indexOf(wanted, from + 1)) {
      for (const [token, start] of starts.entries()) {
        if (start < from + wanted.length && (starts[token + 1] ?? length) > from)
          places.add(`${text} ${token}`);
      }
    }
  }
  return places;
}

/** Searches the strongest features of each token. */
export function featuresOn({ texts }: Pick<FeaturesResult, "texts">, word: string): FeatureSearch {
  const places = placesOf(texts, word);
  const found = new Map<number, { sum: number; max: number; on: number; elsewhere: number }>();
  for (const [text, { top }] of texts.entries()) {
    for (const [token, features] of top.entries()) {
      const isOn = places.has(`${text} ${token}`);
      for (const { feature, activation } of features) {
        const known = found.get(feature) ?? { sum: 0, max: 0, on: 0, elsewhere: 0 };
        found.set(feature, known);
        if (!isOn) known.elsewhere += 1;
        else {
          known.on += 1;
          known.sum += activation;
          known.max = Math.max(known.max, activation);
        }
      }
    }
  }
  const features = [...found].flatMap(([feature, { sum, max, on, elsewhere }]) =>
    on === 0 ? [] : [{ feature, mean: sum / places.size, max, on, elsewhere }],
  );
  return {
    places,
    tokens: texts.reduce((sum, { tokens }) => sum + tokens.length, 0),
    features: features.sort((a, b) => b.mean - a.mean || a.feature - b.feature),
  };
}

/** The finding of a search, as a sentence. */
export function searchSentence(word: string, { places, tokens, features }: FeatureSearch): string {
  const shown = `“${word.trim()}”`;
  if (places.size === 0) return `${shown} does not occur in these texts.`;
  const [best] = features;
  if (best === undefined) return `No feature is active on ${shown}.`;
  const others = tokens - places.size;
  const rest =
    best.elsewhere === 0 ? "and on no other token" : `and on ${best.elsewhere} of the ${others} other tokens`;
  return `Feature ${best.feature} is the strongest on ${shown}: active on ${best.on} of its ${places.size} ${places.size === 1 ? "token" : "tokens"} ${rest}.`;
}
