import type { TurnAnswer } from "../wire.js";
import { quantityOf, type Shade } from "./shades.js";
import { meansOf } from "./thoughts.js";

/**
 * The thinking tokens as one strip in the colours of the words; with many tokens, each part shows a mean.
 * @returns undefined if no token has the quantity
 */
export function stripOf({ tokens }: TurnAnswer, shade: Shade): HTMLElement | undefined {
  const values = tokens.filter(({ thinking }) => thinking === true).map((token) => quantityOf(token, shade));
  const known = values.filter((value) => value !== undefined).sort((a, b) => a.share - b.share);
  const [lowest, highest] = [known[0], known.at(-1)];
  if (lowest === undefined || highest === undefined) return undefined;
  const strip = document.createElement("span");
  strip.className = "thought-strip";
  strip.role = "img";
  strip.ariaLabel = strip.title = `from ${lowest.words} to ${highest.words}`;
  for (const share of meansOf(values.map((value) => value?.share))) {
    const part = document.createElement("span");
    part.className = share === undefined ? "unknown" : "part";
    if (share !== undefined) part.style.setProperty("--share", share.toFixed(3));
    strip.append(part);
  }
  return strip;
}
