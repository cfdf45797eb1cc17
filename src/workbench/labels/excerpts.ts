/** Excerpts of texts with and without a feature: some to propose a label from, the others to test it on. */

/** Tokens of an excerpt before and after its main token. */
const [before, behind] = [12, 8];
/** Excerpts that the label is proposed from, and held-out ones of each kind that it is tested on. */
const most = { shown: 8, heldOut: 15 };

/** A text's tokens and a feature's activation at each of them. */
export interface ReadText {
  tokens: readonly string[];
  activations: readonly number[];
}

export interface HeldOut {
  text: string;
  active: boolean;
}

export interface Excerpts {
  /** With the active tokens between « and ». */
  shown: string[];
  /** As many with the feature as without it, except where there are fewer. */
  heldOut: HeldOut[];
}

/**
 * One excerpt per text. Those with the feature, strongest first, are shown and held out in turn, so that both are alike; those
 * without it are spread evenly over the texts.
 */
export function excerptsOf(texts: readonly ReadText[]): Excerpts {
  const read = texts.map((text) => ({ ...text, strongest: Math.max(0, ...text.activations) }));
  const active = read.filter(({ strongest }) => strongest > 0).sort((a, b) => b.strongest - a.strongest);
  const silent = read.filter(({ strongest, tokens }) => strongest === 0 && tokens.length > 0);
  const shown = active.filter((_, at) => at % 2 === 0).slice(0, most.shown);
  const tested = active.filter((_, at) => at % 2 === 1).slice(0, most.heldOut);
  const others = evenly(silent, Math.min(tested.length, most.heldOut));
  return {
    shown: shown.map((text) => around(text, text.activations.indexOf(text.strongest), true)),
    heldOut: [
      ...tested.map((text) => ({
        text: around(text, text.activations.indexOf(text.strongest), false),
        active: true,
      })),
      ...others.map((text) => ({ text: around(text, text.tokens.length >> 1, false), active: false })),
    ],
  };
}

function around({ tokens, activations }: ReadText, middle: number, marks: boolean): string {
  const from = Math.max(0, middle - before);
  const words = tokens.slice(from, middle + behind + 1).map((token, at) => {
    if (!marks || !((activations[from + at] as number) > 0)) return token;
    const [, space = "", word = ""] = /^(\s*)([\s\S]*)$/.exec(token) ?? [];
    return `${space}«${word}»`;
  });
  return words.join("").replace(/\s+/g, " ").trim();
}

function evenly<T>(list: readonly T[], count: number): T[] {
  const step = list.length / Math.max(1, Math.min(count, list.length));
  return Array.from({ length: Math.min(count, list.length) }, (_, at) => list[Math.floor(at * step)] as T);
}
