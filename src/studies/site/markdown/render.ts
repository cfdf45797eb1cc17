import type { Html } from "../../../markup/html.js";
import { html } from "../html.js";
import type { Pace } from "../pace.js";
import type { Shown } from "../reveal.js";
import { formula } from "./formula.js";
import { longestParagraph, parsed, type Token } from "./parse.js";

/** Characters of formulas typeset per page; further formulas are shown as source. */
const mostFormulas = 20_000;
/** Fixed cost of a formula, in characters. */
const formulaCost = 40;

/** Renders a fenced block with a special label; null shows it as code. */
export type Fence = (label: string, text: string, shown: Shown, pace: Pace) => Promise<Html | null>;

export interface MarkdownOptions {
  /** Makes hidden characters visible. */
  shown: Shown;
  pace: Pace;
  fence?: Fence;
  /** Called with each heading; returns its id on the page. */
  heading?: (text: string) => string | null;
}

/** Renders the Markdown texts of one page. All output goes through `html` and `shown`; raw HTML is never passed on. */
export class Markdown {
  #formulas = 0;

  constructor(private readonly options: MarkdownOptions) {}

  /** @param heading level of the heading above the text */
  async of(text: string, heading: number): Promise<Html> {
    const { shown, pace, fence } = this.options;
    const tokens = await parsed(text, pace);
    if (tokens === null) return asWritten(text, shown);
    const parts: Html[] = [];
    const levels = new HeadingLevels(heading);
    for (const [at, token] of tokens.entries()) {
      await pace.turn();
      if (token.type === "heading_open") {
        parts.push(levels.open(token, this.options.heading, tokens[at + 1]));
        continue;
      }
      const more =
        token.type === "fence" ? await fence?.(token.info.trim(), token.content, shown, pace) : null;
      parts.push(more ?? (await this.#block(token, levels)));
    }
    return html`<div class="prose">${parts}</div>`;
  }

  async #block(token: Token, levels: HeadingLevels): Promise<Html> {
    const { shown } = this.options;
    switch (token.type) {
      case "inline":
        return this.#line(token);
      case "fence":
        return codeBlock(token.content, token.info.trim(), shown);
      case "code_block":
        return codeBlock(token.content, "", shown);
      case "formula":
        return html`<div class="formula" role="group" aria-label="Formula" tabindex="0">${this.#formula(token)}</div>`;
      case "heading_close":
        return levels.close();
      case "table_open":
        return html`<div class="scroll" role="group" aria-label="Table" tabindex="0"><table>`;
      case "table_close":
        return html`</table></div>`;
      case "ordered_list_open": {
        const start = Number(token.attrGet("start") ?? 1);
        return start === 1 ? html`<ol>` : html`<ol start="${start}">`;
      }
      default:
        return token.hidden ? html`` : (plainTags[token.type] ?? aligned(token));
    }
  }

  /** Inline content of a paragraph, heading or cell. */
  async #line(token: Token): Promise<Html> {
    const { shown, pace } = this.options;
    if (token.content.length > longestParagraph || token.children === null) return shown(token.content);
    const parts: Html[] = [];
    /** Open links, and whether each was rendered as a link. */
    const links: boolean[] = [];
    for (const child of token.children) {
      switch (child.type) {
        case "text":
          parts.push(links.includes(true) ? shown(child.content) : linked(child.content, shown));
          break;
        case "text_special":
          parts.push(shown(child.content));
          break;
        case "code_inline":
          parts.push(html`<code dir="ltr">${shown(child.content)}</code>`);
          break;
        case "softbreak":
          parts.push(html`\n`);
          break;
        case "hardbreak":
          parts.push(html`<br>`);
          break;
        case "formula":
          await pace.turn();
          parts.push(this.#formula(child));
          break;
        case "image":
          parts.push(image(child, shown, links.includes(true)));
          break;
        case "link_open": {
          const address = followed(String(child.attrGet("href") ?? ""));
          links.push(address !== null);
          if (address !== null) parts.push(html`<a href="${address}" rel="nofollow noopener ugc">`);
          break;
        }
        case "link_close":
          if (links.pop()) parts.push(html`</a>`);
          break;
        default:
          parts.push(inlineTags[child.type] ?? shown(child.content));
      }
    }
    return html`${parts}`;
  }

  #formula({ content, meta }: Token): Html {
    const { display, source } = meta as { display: boolean; source: string };
    this.#formulas += content.length + formulaCost;
    const set = this.#formulas > mostFormulas ? null : formula(content, display);
    // Inline formulas need a scrolling box; displayed ones have their block's.
    if (set !== null && !display) return html`<span class="tex-line">${set}</span>`;
    return set ?? html`<code class="tex" dir="ltr">${this.options.shown(source)}</code>`;
  }
}

/** A text as source, with its line breaks. */
export function asWritten(text: string, shown: Shown): Html {
  return html`<div class="text" dir="auto">${shown(text)}</div>`;
}

export function codeBlock(text: string, label: string, shown: Shown): Html {
  return html`${label === "" ? null : html`<p class="hint code-label">${shown(label)}</p>`}<pre class="code" dir="ltr">${shown(text.replace(/\n$/, ""))}</pre>`;
}

const plainTags: Record<string, Html> = {
  paragraph_open: html`<p dir="auto">`,
  paragraph_close: html`</p>`,
  bullet_list_open: html`<ul>`,
  bullet_list_close: html`</ul>`,
  ordered_list_close: html`</ol>`,
  list_item_open: html`<li dir="auto">`,
  list_item_close: html`</li>`,
  blockquote_open: html`<blockquote>`,
  blockquote_close: html`</blockquote>`,
  hr: html`<hr>`,
  thead_open: html`<thead>`,
  thead_close: html`</thead>`,
  tbody_open: html`<tbody>`,
  tbody_close: html`</tbody>`,
  tr_open: html`<tr>`,
  tr_close: html`</tr>`,
  th_close: html`</th>`,
  td_close: html`</td>`,
};

const inlineTags: Record<string, Html> = {
  em_open: html`<em>`,
  em_close: html`</em>`,
  strong_open: html`<strong>`,
  strong_close: html`</strong>`,
  s_open: html`<del class="struck">`,
  s_close: html`</del>`,
};

/** Table cells. Alignment is a class, since the site's policy forbids inline styles. */
function aligned(token: Token): Html {
  const side = /text-align:(right|center)/.exec(String(token.attrGet("style") ?? ""))?.[1];
  const named = side === undefined ? null : html` class="${side}"`;
  if (token.type === "th_open") return html`<th scope="col"${named} dir="auto">`;
  if (token.type === "td_open") return html`<td${named} dir="auto">`;
  throw new Error(`Unexpected Markdown token: ${token.type}`);
}

/** Nests headings below the page's own, without skipping a level. */
class HeadingLevels {
  #last: number;
  #open: number[] = [];

  constructor(private readonly above: number) {
    this.#last = above;
  }

  /** @param inside the heading's content */
  open(token: Token, name: MarkdownOptions["heading"], inside: Token | undefined): Html {
    const wanted = this.above + Number(token.tag.slice(1));
    const level = Math.min(6, wanted, this.#last + 1);
    this.#last = level;
    this.#open.push(level);
    const id = name?.(wordsOf(inside)) ?? null;
    return html`${opening[level]}${id === null ? null : html` id="${id}"`}>`;
  }

  close(): Html {
    return closing[this.#open.pop() as number] as Html;
  }
}

/** Plain text of a line. */
function wordsOf(line: Token | undefined): string {
  const parts = line?.children?.map(({ type, content, meta }) =>
    type === "formula" ? (meta as { source: string }).source : type === "softbreak" ? " " : content,
  );
  return parts?.join("") ?? line?.content ?? "";
}

const opening: Record<number, Html> = {
  3: html`<h3 dir="auto"`,
  4: html`<h4 dir="auto"`,
  5: html`<h5 dir="auto"`,
  6: html`<h6 dir="auto"`,
};
const closing: Record<number, Html> = { 3: html`</h3>`, 4: html`</h4>`, 5: html`</h5>`, 6: html`</h6>` };

/** The address if links may use it (http, https, mailto, or an anchor on this page), else null. */
export function followed(address: string): string | null {
  if (/^#[\w-]{1,100}$/.test(address)) return address;
  if (!URL.canParse(address)) return null;
  const url = new URL(address);
  return ["https:", "http:", "mailto:"].includes(url.protocol) ? url.href : null;
}

const bare = /\bhttps?:\/\/[^\s<>"'`\\^{}|\u0080-\uffff]{1,2000}/g;

/** Text with the addresses in it as links. */
function linked(text: string, shown: Shown): Html {
  if (!text.includes("://")) return shown(text);
  const parts: Html[] = [];
  let end = 0;
  for (const match of text.matchAll(bare)) {
    const [found = ""] = match;
    // Drop trailing punctuation; keep a closing bracket only if the address has an opening one.
    let trimmed = found.replace(/[.,;:!?*_~]+$/, "");
    if (trimmed.endsWith(")") && !trimmed.includes("(")) trimmed = trimmed.slice(0, -1);
    const address = followed(trimmed);
    if (address === null) continue;
    parts.push(shown(text.slice(end, match.index)));
    parts.push(html`<a href="${address}" rel="nofollow noopener ugc">${trimmed}</a>`);
    end = match.index + trimmed.length;
  }
  parts.push(shown(text.slice(end)));
  return html`${parts}`;
}

/** Pages load no external images, so an image becomes its description and a link. */
function image(token: Token, shown: Shown, inLink: boolean): Html {
  const address = inLink ? null : followed(String(token.attrGet("src") ?? ""));
  const label = html`image: ${shown(token.content)}`;
  return html`<span class="hint">[${
    address === null || address.startsWith("#")
      ? label
      : html`<a href="${address}" rel="nofollow noopener ugc">${label}</a>`
  }]</span>`;
}
