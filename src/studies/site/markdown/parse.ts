import MarkdownIt, { type StateBlock, type StateInline, type Token } from "markdown-it";
import type { Pace } from "../pace.js";

export type { Token };

/** Deeper texts are not parsed as Markdown, since the parser drops what exceeds its limit. */
const deepest = 40;
/** Most block tokens of a text. */
const mostTokens = 20_000;
/** Longer paragraphs are shown as source. */
export const longestParagraph = 20_000;
/** Target and maximum length of a piece that is parsed at a time. */
const pieceLength = 8_000;
const longestPiece = 30_000;

// CommonMark with tables, strikethrough and formulas. HTML and automatic links are off by default.
const markdown = new MarkdownIt();
markdown.options.maxNesting = deepest;
// Inline content is parsed afterwards, in slices; see `parsed`.
markdown.core.ruler.disable(["inline", "linkify", "replacements", "smartquotes", "text_join"]);
markdown.inline.ruler.before("escape", "formula", inlineFormula);
markdown.block.ruler.before("fence", "formula", blockFormula, {
  alt: ["paragraph", "reference", "blockquote", "list"],
});
// Links are validated when they are rendered.
markdown.validateLink = () => true;

/**
 * Parses Markdown in slices.
 * @returns null if the text nests too deeply or has too many blocks
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
 * Splits a long text into pieces, at a blank line followed by an ordinary line. If there is none for long, a list or
 * quotation is split in two.
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
    // An unclosed `$$` must not hold the text together.
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
 * `$a$`, `\(a\)`, `\[a\]` and `$$a$$` inline. An opening dollar has no space after it; a closing one has no space before it
 * and no digit after it, so that prices stay text.
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
  // Remember missing closing marks: if there is none from here on, there is none later.
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
    // A price or an escaped dollar; a later one may close the formula.
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

/** Lines from one that begins with `$$` to one that ends with `$$`. */
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
      // Formulas have no blank lines and few lines, so a missing end is detected early.
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
