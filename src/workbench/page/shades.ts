/** What colours the tokens of an answer; one quantity at a time. */
import { leastEntropy, percent } from "../../findings/numbers.js";
import type { AnswerToken } from "../wire.js";

export const shades = ["none", "probability", "entropy"] as const;
export type Shade = (typeof shades)[number] | `probe ${string}`;

/** Colours a token by one quantity, from nothing to all. */
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

/** The quantity as a share of what colours can show, and in words; undefined where it is not known of the token. */
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
      : { share: Math.min(1, bits / 3), words: `${bits.toFixed(2)} bits or more` };
  }
  const name = shade.slice("probe ".length);
  const score = token.probes?.[name];
  return score == null ? undefined : { share: score, words: `${name} ${score.toFixed(2)}` };
}

/** The least entropy that the candidates which are told allow, in bits. */
export function entropyOf({ candidates }: AnswerToken): number | undefined {
  if (candidates === undefined || candidates.length === 0) return undefined;
  return leastEntropy(candidates.map(({ probability }) => probability));
}
