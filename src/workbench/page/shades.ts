/** The quantities that can colour the tokens of an answer. */
import { leastEntropy, percent } from "../../findings/numbers.js";
import type { AnswerToken } from "../wire.js";

export const shades = ["none", "probability", "entropy"] as const;
export type Shade = (typeof shades)[number] | `probe ${string}`;

/** Colours a token by a quantity. */
export function paint(span: HTMLElement, token: AnswerToken, shade: Shade): void {
  const value = quantityOf(token, shade);
  span.classList.toggle("shaded", value !== undefined);
  if (value === undefined) {
    span.style.removeProperty("--share");
    span.removeAttribute("title");
  } else {
    span.style.setProperty("--share", value.share.toFixed(3));
    span.title = value.words;
  }
}

/** The quantity as a share of the colour scale and as text; undefined if it was not recorded for the token. */
export function quantityOf(token: AnswerToken, shade: Shade): { share: number; words: string } | undefined {
  if (shade === "none") return undefined;
  if (shade === "probability") {
    if (token.probability === undefined) return undefined;
    return { share: token.probability, words: `probability ${percent(token.probability)}` };
  }
  if (shade === "entropy") {
    const bits = entropyOf(token);
    return bits === undefined
      ? undefined
      : { share: Math.min(1, bits / 3), words: `at least ${bits.toFixed(2)} bits` };
  }
  const name = shade.slice("probe ".length);
  const score = token.probes?.[name];
  return score == null ? undefined : { share: score, words: `${name} ${score.toFixed(2)}` };
}

/** The lower bound of the entropy given the recorded candidates, in bits. */
export function entropyOf({ candidates }: AnswerToken): number | undefined {
  if (candidates === undefined || candidates.length === 0) return undefined;
  return leastEntropy(candidates.map(({ probability }) => probability));
}
