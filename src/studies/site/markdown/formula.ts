import { createRequire } from "node:module";
import type { KatexOptions } from "katex";
import { hiddenCharacters } from "../../../contracts/studies/index.js";
import { Html } from "../../../markup/html.js";
import { mathLetters } from "./math-letters.js";

/** Loaded with the first formula: a service whose studies have none does without its 5 MB. */
let katex: { renderToString(tex: string, options: KatexOptions): string } | undefined;

/** Characters of a formula that is set; longer ones stay as they were written. A formula of so many takes up to 20 ms. */
const longest = 1000;
const mostMarkup = 60_000;

/** Elements of MathML that set something; none of them loads, links or runs anything. */
const elements = new Set(
  (
    "math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle mpadded mphantom menclose " +
    "msub msup msubsup munder mover munderover mmultiscripts mprescripts mtable mtr mlabeledtr mtd"
  ).split(" "),
);

/** What sets colour or size is not among them: text that nobody sees would be one formula away. */
const attributes = new Set(
  (
    "display stretchy fence separator accent accentunder lspace rspace width scriptlevel displaystyle columnalign " +
    "rowspacing columnspacing linethickness minsize maxsize movablelimits largeop symmetric form columnlines rowlines " +
    "frame notation side minlabelspacing"
  ).split(" "),
);

/** U+2061 to U+2064 and U+200B: what MathML writes between a function and its argument. */
const joiners = /[\u200b\u2061-\u2064]/g;

/**
 * A formula in TeX as MathML, which browsers set without fonts or styles of ours.
 * @returns null for what is no formula, is too long, or hides characters: it is shown as it was written
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

/** Markup of known elements and attributes, closed in order, with nothing else in it; null where it is not. */
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
      const kept = pairs.filter(
        ([key = "", value = ""]) => attributes.has(key) && /^[\w #%.+]*$/.test(value),
      );
      const upright = open.at(-1)?.variant === "normal" ? ' mathvariant="normal"' : "";
      written += `<${name}${kept.map(([key, value]) => ` ${key}="${value}"`).join("")}${upright}>`;
    }
  }
  return end === markup.length && open.length === 0 ? new Html(written) : null;
}
