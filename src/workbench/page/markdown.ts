/**
 * Renders answers as Markdown, element by element: no HTML is parsed, so a model's HTML stays inert. Images and raw HTML
 * are shown as text, and links are not clickable; their address is shown next to them.
 */
import MarkdownIt, { type Token } from "markdown-it";
import { visible } from "../../text/visible.js";

/** Longer answers stay plain text. */
const mostCharacters = 200_000;
const deepest = 40;

const parser = new MarkdownIt("default", { html: false, linkify: false, typographer: false, breaks: true });
parser.options.maxNesting = deepest;
// Keep text pieces separate, so that each is found at its place in the source.
parser.core.ruler.disable(["linkify", "replacements", "smartquotes", "text_join"]);
// Addresses are shown and never opened.
parser.validateLink = () => true;
parser.normalizeLink = (address) => address;

/** HTML elements of the parser's tokens; other tokens get none. */
const elements: Record<string, string> = {
  paragraph_open: "p",
  bullet_list_open: "ul",
  ordered_list_open: "ol",
  list_item_open: "li",
  blockquote_open: "blockquote",
  strong_open: "strong",
  em_open: "em",
  s_open: "s",
  table_open: "table",
  thead_open: "thead",
  tbody_open: "tbody",
  tr_open: "tr",
  th_open: "th",
  td_open: "td",
};

/** Creates the nodes of a range of the source. */
export type NodesOf = (from: number, to: number) => Node[];

/**
 * An answer's Markdown as elements.
 * @returns undefined for plain paragraphs and for texts that are too long
 */
export function markdownOf(source: string, nodesOf: NodesOf): HTMLElement | undefined {
  if (source.length > mostCharacters) return undefined;
  const tokens = parser.parse(source, {});
  if (tokens.every(isPlain)) return undefined;
  const box = document.createElement("div");
  box.className = "markdown";
  new Builder(source, nodesOf, box).build(tokens);
  return box;
}

function isPlain({ type, children }: Token): boolean {
  if (type === "inline") {
    return (children ?? []).every(({ type: one }) => ["text", "softbreak", "hardbreak"].includes(one));
  }
  return type === "paragraph_open" || type === "paragraph_close";
}

class Builder {
  readonly #source: string;
  readonly #nodesOf: NodesOf;
  readonly #open: HTMLElement[];
  /** Offset of each line of the source. */
  readonly #lines: number[];
  /** The source up to here has been rendered. */
  #at = 0;
  /** End of the current block. */
  #end: number;

  constructor(source: string, nodesOf: NodesOf, box: HTMLElement) {
    this.#source = source;
    this.#nodesOf = nodesOf;
    this.#open = [box];
    this.#lines = [0];
    for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) this.#lines.push(at + 1);
    this.#end = source.length;
  }

  build(tokens: readonly Token[]): void {
    for (const token of tokens) {
      if (token.map) {
        this.#at = Math.max(this.#at, this.#lines[token.map[0]] ?? 0);
        this.#end = this.#lines[token.map[1]] ?? this.#source.length;
      }
      if (token.type === "inline") this.#inline(token.children ?? []);
      else this.#block(token);
    }
  }

  #block(token: Token): void {
    const { type, content, nesting, tag } = token;
    if (type === "fence" || type === "code_block") {
      const pre = this.#begin("pre");
      this.#begin("code");
      pre.tabIndex = 0;
      pre.setAttribute("role", "region");
      pre.setAttribute("aria-label", "Code");
      // Skip the opening line.
      if (type === "fence" && token.map) this.#at = this.#lines[token.map[0] + 1] ?? this.#at;
      for (const line of content.replace(/\n$/, "").split(/(?<=\n)/)) this.#text(line);
      this.#open.length -= 2;
    } else if (type === "hr") this.#top.append(document.createElement("hr"));
    else if (type === "heading_open") this.#begin("p").className = `heading ${tag}`;
    else if (nesting === 1) {
      // Tight list items contain no paragraphs.
      const made = this.#begin(token.hidden ? "span" : (elements[type] ?? "div"));
      if (type === "ordered_list_open") made.setAttribute("start", String(token.attrGet("start") ?? 1));
    } else if (nesting === -1 && this.#open.length > 1) this.#open.pop();
    else if (content !== "") this.#text(content);
  }

  #inline(children: readonly Token[]): void {
    for (const child of children) {
      switch (child.type) {
        case "text":
        case "text_special":
          this.#text(child.content);
          break;
        case "code_inline":
          this.#begin("code");
          this.#text(child.content);
          this.#open.pop();
          break;
        case "softbreak":
        case "hardbreak":
          this.#top.append(document.createElement("br"));
          break;
        case "link_open":
          this.#begin("span").className = "link";
          break;
        case "link_close":
          this.#address(children, child);
          break;
        case "image":
          // Show the image as text.
          this.#text(child.content);
          this.#aside(String(child.attrGet("src") ?? ""));
          break;
        default:
          if (child.nesting === 1) this.#begin(elements[child.type] ?? "span");
          else if (child.nesting === -1) this.#open.pop();
          else this.#text(child.content);
      }
    }
  }

  #address(children: readonly Token[], closing: Token): void {
    const opening = children.findLast(
      ({ type, level }, at) =>
        type === "link_open" && level === closing.level && at < children.indexOf(closing),
    );
    this.#open.pop();
    this.#aside(String(opening?.attrGet("href") ?? ""));
  }

  #aside(address: string): void {
    const shown = document.createElement("bdi");
    shown.className = "address";
    shown.textContent = ` ‹${visible(address.slice(0, 300))}›`;
    this.#top.append(shown);
  }

  get #top(): HTMLElement {
    return this.#open.at(-1) as HTMLElement;
  }

  #begin(name: string): HTMLElement {
    const made = document.createElement(name);
    this.#top.append(made);
    this.#open.push(made);
    return made;
  }

  /** Text that is found verbatim in the source; text such as `&amp;` differs and gets no token spans. */
  #text(content: string): void {
    if (content === "") return;
    const found = this.#source.indexOf(content, this.#at);
    if (found < 0 || found + content.length > this.#end) {
      this.#top.append(document.createTextNode(content));
      return;
    }
    this.#at = found + content.length;
    this.#top.append(...this.#nodesOf(found, this.#at));
  }
}
