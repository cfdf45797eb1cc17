import { createRequire } from "node:module";
import type { KatexOptions } from "katex";
import { hiddenCharacters } from "../../../contracts/studies/index.js";
import { Html } from "../../../markup/html.js";
import { mathLetters } from "./math-letters.js";

/** Loaded with the first formula, since it takes 5 MB of memory. */
let katex: { renderToString(tex: string, options: KatexOptions): string } | undefined;

/** Longer formulas are shown as source. A formula of this length takes up to 20 ms. */
const longest = 1000;
const mostMarkup = 60_000;

/** MathML elements that only typeset: none of them loads, links or runs anything. */
const elements = new Set(
  (
    "math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle mpadded mphantom menclose " +
    "msub msup msubsup munder mover munderover mmultiscripts mprescripts mtable mtr mlabeledtr mtd"
  ).split(" "),
);

/** Excludes colour and size, which could make text invisible. */
const attributes = new Set(
  (
    "display stretchy fence separator accent accentunder lspace rspace width scriptlevel displaystyle columnalign " +
    "rowspacing columnspacing linethickness minsize maxsize movablelimits largeop symmetric form columnlines rowlines " +
    "frame notation side minlabelspacing"
  ).split(" "),
);

/** Invisible operators that MathML puts between a function and its argument. */
const joiners = /[\u200b\u2061-\u2064]/g;

/**
 * A TeX formula as MathML, which browsers typeset without extra fonts or styles.
 * @returns null if it is invalid, too long, or has hidden characters; the source is then shown
 */
export function formula(source: string, display: boolean): Html | null {
  if (source.length > longest || isHiding(source)) return null;
  katex ??= createRequire(import.meta.url)("katex") as NonNullable<typeof katex>;
  let markup: string;
  try {
    markup = katex.renderToString(source, {
      output: "mathml",
      displayMode: display,
      throwOnError: true,
      trust: false,
      strict: "ignore",
      maxSize: 20,
      maxExpand: 100,
    });
  } catch {
    // Not TeX, too many expansions, or nested deeper than the stack.
    return null;
  }
  const math = /<math [\s\S]*<\/math>/.exec(markup)?.[0] ?? "";
  const bare = math.replace(/<annotation [^<>]*>[^<]*<\/annotation>/, "").replace(/<\/?semantics>/g, "");
  return bare.length === 0 || bare.length > mostMarkup ? null : checked(bare);
}

function isHiding(text: string): boolean {
  return text.replace(joiners, "").search(hiddenCharacters) !== -1;
}

/** The markup with only allowed attributes; null if it has unknown elements or is not well-formed. */
function checked(markup: string): Html | null {
  const open: { name: string; variant: string }[] = [];
  let written = "";
  let end = 0;
  for (const match of markup.matchAll(/<(\/?)([a-z]+)((?: [a-z]+="[^"<>]*")*)>|([^<>]+)/g)) {
    const [whole, closing, name = "", given = "", text] = match;
    if (match.index !== end) return null;
    end += whole.length;
    if (text !== undefined) {
      if (isHiding(text)) return null;
      written += mathLetters(text, open.at(-1)?.variant ?? "");
    } else if (!elements.has(name)) {
      return null;
    } else if (closing === "/") {
      if (open.pop()?.name !== name) return null;
      written += whole;
    } else {
      const pairs = [...given.matchAll(/([a-z]+)="([^"]*)"/g)].map(([, key, value]) => [key, value] as const);
      open.push({ name, variant: pairs.find(([key]) => key === "mathvariant")?.[1] ?? "" });
      const allowed = pairs.filter(
        ([key = "", value = ""]) => attributes.has(key) && /^[\w #%.+]*$/.test(value),
      );
      const upright = open.at(-1)?.variant === "normal" ? ' mathvariant="normal"' : "";
      written += `<${name}${allowed.map(([key, value]) => ` ${key}="${value}"`).join("")}${upright}>`;
    }
  }
  return end === markup.length && open.length === 0 ? new Html(written) : null;
}
