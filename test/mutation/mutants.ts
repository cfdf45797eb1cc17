/** Small faults that a test should notice, as changes of a source text. They rely on how this code is formatted. */

export interface Mutant {
  /** Offset of the text that is replaced. */
  at: number;
  from: string;
  to: string;
}

/** Comments, strings and regular expressions: nothing in them is changed. */
const opaque =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|`(?:\\[\s\S]|[^`\\])*`|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?<=[(,=:[!&|?{};]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\/[a-z]*/g;

/** Lines that only declare types. */
const typesOnly =
  /^\s*(?:import|export type|type|export interface|interface|readonly \w+\??:|\w+\??: [\w<>[\] |]+;$)/;

const swaps: [from: RegExp, to: string | ((found: string) => string)][] = [
  [/ === /g, " !== "],
  [/ !== /g, " === "],
  [/ < /g, " <= "],
  [/ <= /g, " < "],
  [/ > /g, " >= "],
  [/ >= /g, " > "],
  [/ && /g, " || "],
  [/ \|\| /g, " && "],
  [/ \+ /g, " - "],
  [/ - /g, " + "],
  [/ \+= /g, " -= "],
  [/\btrue\b/g, "false"],
  [/\bfalse\b/g, "true"],
  [/(?<![\w$.#])\d[\d_]*(?:\.\d+)?(?![\w.])/g, (number) => `(${number} + 1)`],
  // A statement that is left out.
  [/(?<=^[ \t]*)(?:await |void )?[\w$#][\w$.#!?[\]]*\([^\n]*\);$/gm, ""],
  [/(?<=^[ \t]*)[\w$#][\w$.#!?[\]]* [+-]?= [^\n]*;$/gm, ""],
  [/(?<=^[ \t]*|\) )throw [^\n]*;$/gm, ";"],
  [/(?<=\) )(?:return|continue|break);$/gm, ";"],
];

/** A source text with a dot for each character of comments, strings and regular expressions. */
export function masked(source: string): string {
  return source.replace(opaque, (text) => text.replace(/[^\n]/g, "\u00b7"));
}

/** Every mutant of a source text, in order. */
export function mutantsOf(source: string): Mutant[] {
  const program = masked(source);
  const mutants = swaps.flatMap(([from, to]) =>
    [...program.matchAll(from)].map((match): Mutant => {
      const text = source.slice(match.index, match.index + match[0].length);
      return { at: match.index, from: text, to: typeof to === "string" ? to : to(text) };
    }),
  );
  for (const { index } of program.matchAll(/\bif \(/g)) {
    const begin = index + "if ".length;
    const end = closing(program, begin);
    const from = source.slice(begin, end);
    mutants.push({ at: begin, from, to: `(!${from})` });
  }
  return mutants
    .filter(({ at, from, to }) => from !== to && !typesOnly.test(lineAt(program, at)))
    .sort((a, b) => a.at - b.at);
}

export function apply(source: string, { at, from, to }: Mutant): string {
  return source.slice(0, at) + to + source.slice(at + from.length);
}

/** The place behind the bracket that closes the one at `begin`. */
function closing(text: string, begin: number): number {
  let open = 0;
  for (let place = begin; place < text.length; place++) {
    if (text[place] === "(") open++;
    if (text[place] === ")" && --open === 0) return place + 1;
  }
  return begin;
}

function lineAt(text: string, at: number): string {
  const end = text.indexOf("\n", at);
  return text.slice(text.lastIndexOf("\n", at - 1) + 1, end === -1 ? undefined : end);
}
