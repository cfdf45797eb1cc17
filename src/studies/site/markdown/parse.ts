import MarkdownIt, { type StateBlock, type StateInline, type Token } from "markdown-it";
import type { Pace } from "../pace.js";

export type { Token };

/** Deeper than this nothing is read as Markdown: the parser would leave it out. */
const deepest = 40;
/** Blocks of a text, and their ends, each a part of the page. */
const mostTokens = 20_000;
/** A paragraph with more characters is shown as it was written. */
export const longestParagraph = 20_000;
/** A piece of a text that is read in one go. */
const pieceLength = 8_000;
const longestPiece = 30_000;

// As CommonMark has it, with tables and strikethrough, and formulas. No HTML, and no guesses at what is a link: as it comes.
const markdown = new MarkdownIt();
markdown.options.maxNesting = deepest;
// What stands between blocks is read afterwards, in slices; see `parsed`.
markdown.core.ruler.disable(["inline", "linkify", "replacements", "smartquotes", "text_join"]);
markdown.inline.ruler.before("escape", "formula", inlineFormula);
markdown.block.ruler.before("fence", "formula", blockFormula, {
  alt: ["paragraph", "reference", "blockquote", "list"],
});
// Every destination is looked at where links are written.
markdown.validateLink = () => true;

/**
 * Reads a text as Markdown, in slices.
 * @returns null for what the parser would leave out of (too deep) or what would make too many parts
 */
export async function parsed(text: string, pace: Pace): Promise<Token[] | null> {
  const env = {};
  const tokens: Token[] = [];
  for (const piece of piecesOf(text)) {
    await pace.turn();
    tokens.push(...markdown.parse(piece, env));
    if (tokens.length > mostTokens) return null;
  }
  for (const token of tokens) {
    if (token.level >= deepest - 2) return null;
    if (token.type !== "inline" || token.content.length > longestParagraph) continue;
    await pace.turn();
    token.children = [];
    markdown.inline.parse(token.content, markdown, env, token.children);
  }
  return tokens;
}

/**
 * A long text in pieces that are read one after the other: cut where a blank line ends one block and an ordinary line
 * begins the next. Where there is no such place for very long, a list or quotation is cut and goes on as another one.
 */
export function piecesOf(text: string): string[] {
  if (text.length <= pieceLength) return [text];
  const pieces: string[] = [];
  let start = 0;
  let at = 0;
  let fence = "";
  let blank = false;
  for (const line of text.split("\n")) {
    const length = at - start;
    const plain = blank && /^[^\s\d>*+-]/.test(line);
    // What only looks like the beginning of a formula holds no text together.
    const open = fence === "" || (fence === "$$" && length >= pieceLength);
    if (open && ((length >= pieceLength && (plain || fence === "$$")) || length >= longestPiece)) {
      pieces.push(text.slice(start, at));
      start = at;
      fence = "";
    }
    const mark = /^ {0,3}(`{3,}|~{3,}|\$\$)/.exec(line)?.[1] ?? "";
    if (fence === "") {
      if (!isClosedFormula(line)) fence = mark;
    } else if (fence === "$$" ? line.trimEnd().endsWith("$$") : mark.startsWith(fence)) fence = "";
    blank = line.trim() === "";
    at += line.length + 1;
  }
  pieces.push(text.slice(start));
  return pieces;
}

function isClosedFormula(line: string): boolean {
  return /^ {0,3}\$\$.*\$\$\s*$/.test(line);
}

const [dollar, backslash, paren, bracket] = [36, 92, 40, 91];

/**
 * `$a$`, `\(a\)`, `\[a\]` and `$$a$$` in a line. A dollar opens where no space follows it, and closes where none is before
 * it and no digit follows, so that prices stay prices.
 */
function inlineFormula(state: StateInline, silent: boolean): boolean {
  const { src, pos, posMax } = state;
  const first = src.charCodeAt(pos);
  let open: string;
  let close: string;
  if (first === dollar) {
    open = src.startsWith("$$", pos) ? "$$" : "$";
    close = open;
  } else if (first === backslash && src.charCodeAt(pos + 1) === paren) {
    [open, close] = ["\\(", "\\)"];
  } else if (first === backslash && src.charCodeAt(pos + 1) === bracket) {
    [open, close] = ["\\[", "\\]"];
  } else return false;
  const begin = pos + open.length;
  if (open === "$" && /\s/.test(src[begin] ?? " ")) return false;
  // Each kind of closing mark is looked for once: where there is none from here on, there is none later.
  const none = formulaEnds(state);
  if (none.has(close)) return false;
  let end = begin;
  for (;;) {
    end = src.indexOf(close, end);
    if (end === -1) none.add(close);
    if (end === -1 || end + close.length > posMax) return false;
    const escaped = src[end - 1] === "\\" && open.startsWith("$");
    const wrong = open === "$" && (/\s/.test(src[end - 1] ?? " ") || /\d/.test(src[end + 1] ?? ""));
    if (!escaped && !wrong && end > begin) break;
    // A price, or a dollar that is meant as one: what follows may still close.
    end += close.length;
  }
  const content = src.slice(begin, end);
  if (!silent) {
    const token = state.push("formula", "", 0);
    token.content = content;
    token.markup = open;
    token.meta = { display: open === "$$" || open === "\\[", source: src.slice(pos, end + close.length) };
  }
  state.pos = end + close.length;
  return true;
}

const ends = new WeakMap<StateInline, Set<string>>();

function formulaEnds(state: StateInline): Set<string> {
  const known = ends.get(state);
  if (known !== undefined) return known;
  const made = new Set<string>();
  ends.set(state, made);
  return made;
}

const mostFormulaLines = 50;

/** Lines from one that begins with `$$` to one that ends so. */
function blockFormula(state: StateBlock, startLine: number, endLine: number, silent: boolean): boolean {
  const textOf = (line: number) =>
    state.src.slice((state.bMarks[line] ?? 0) + (state.tShift[line] ?? 0), state.eMarks[line]);
  if ((state.sCount[startLine] ?? 0) - state.blkIndent >= 4) return false;
  const first = textOf(startLine).trimEnd();
  if (!first.startsWith("$$")) return false;
  const inOne = first.length > 4 && first.endsWith("$$");
  if (!inOne && first.slice(2).includes("$$")) return false;
  let line = startLine;
  const lines = [inOne ? first.slice(2, -2) : first.slice(2)];
  if (!inOne) {
    for (;;) {
      line += 1;
      if (line >= endLine || (state.sCount[line] ?? 0) < state.blkIndent) return false;
      const text = textOf(line).trimEnd();
      // A formula has no blank lines, nor very many: that its end is missing shows soon.
      if (text === "" || lines.length === mostFormulaLines) return false;
      if (text.endsWith("$$")) {
        lines.push(text.slice(0, -2));
        break;
      }
      lines.push(text);
    }
  }
  if (silent) return true;
  state.line = line + 1;
  const token = state.push("formula", "", 0);
  token.content = lines.join("\n");
  token.meta = { display: true, source: `$$${token.content}$$` };
  return true;
}
