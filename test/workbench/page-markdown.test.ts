/** An answer's Markdown as elements, and the colours of its tokens. What stands in the source is in [], with its place. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { AnswerToken } from "../../src/workbench/wire.js";
import { openDocument, PageElement } from "./page-elements.js";
import { pageModule } from "./page-modules.js";

type Shade = "none" | "probability" | "entropy" | `probe ${string}`;
const { markdownOf } = await pageModule<{
  markdownOf(source: string, nodesOf: (from: number, to: number) => string[]): PageElement | undefined;
}>("markdown");
const { entropyOf, paint, quantityOf } = await pageModule<{
  entropyOf(token: AnswerToken): number | undefined;
  paint(span: PageElement, token: AnswerToken, shade: Shade): void;
  quantityOf(token: AnswerToken, shade: Shade): { share: number; words: string } | undefined;
}>("shades");

test.after(openDocument());

/** The elements of a text; every node that was made of the source says from which character to which. */
function set(source: string): string | undefined {
  const box = markdownOf(source, (from, to) => [`[${from}-${to} ${source.slice(from, to)}]`]);
  const told = box?.told;
  return told?.replace(/^<div\.markdown>(.*)<\/div>$/s, "$1");
}

test("plain paragraphs stay as they came, and so does what is too long", () => {
  for (const source of ["", "One.", "One\ntwo.\n\nThree.", "<b>no</b>"])
    assert.is(set(source), undefined, source);
  const long = `**a** ${"b".repeat(200_000)}`;
  assert.ok(set(long.slice(0, 200_000)));
  assert.is(set(long.slice(0, 200_001)), undefined);
});

test("inline: strong, emphasis, strikethrough and code, also nested", () => {
  assert.is(
    set("a **b _c_** ~~d~~ `e`"),
    "<p>[0-2 a ]<strong>[4-6 b ]<em>[7-8 c]</em></strong>[11-12  ]<s>[14-15 d]</s>[17-18  ]<code>[19-20 e]</code></p>",
  );
  assert.is(set("*a*\nb"), "<p><em>[1-2 a]</em><br></br>[4-5 b]</p>");
  // Two blanks before the end of a line, or a backslash.
  assert.is(set("*a*  \nb"), "<p><em>[1-2 a]</em><br></br>[6-7 b]</p>");
});

test("a repeated word matches its own position", () => {
  assert.is(set("a *a* a"), "<p>[0-2 a ]<em>[3-4 a]</em>[5-7  a]</p>");
  assert.is(
    set("# x\n\nx\n\n- x"),
    "<p.heading.h1>[2-3 x]</p><p>[5-6 x]</p><ul><li><span>[10-11 x]</span></li></ul>",
  );
});

test("text that differs from its source has no source position", () => {
  assert.is(set("*a* &gt; b"), "<p><em>[1-2 a]</em>[3-4  ]{>}[8-10  b]</p>");
  // The text of a code block without the blanks that indent it; a word of a later block is none of this one's.
  assert.is(set("*a* &lt;\n\n<"), "<p><em>[1-2 a]</em>[3-4  ]{<}</p><p>[10-11 <]</p>");
});

test("blocks: headings of all levels, lists with their first number, quotes, rules, code and tables", () => {
  assert.is(set("### deep"), "<p.heading.h3>[4-8 deep]</p>");
  assert.is(
    set("3. a\n4. b\n\n   c"),
    "<ol start=3><li><p>[3-4 a]</p></li><li><p>[8-9 b]</p><p>[14-15 c]</p></li></ol>",
  );
  assert.is(set("1. a"), "<ol start=1><li><span>[3-4 a]</span></li></ol>");
  assert.is(set("> a\n\n---"), "<blockquote><p>[2-3 a]</p></blockquote><hr></hr>");
  assert.is(
    set("```js\nlet js;\n\nb\n```\nc"),
    "<pre role=region aria-label=Code tab><code>[6-14 let js;\n][14-15 \n][15-16 b]</code></pre><p>[21-22 c]</p>",
  );
  assert.is(
    set("    a\n    b"),
    "<pre role=region aria-label=Code tab><code>[4-6 a\n][10-11 b]</code></pre>",
  );
  assert.is(
    set("|a|b|\n|-|-|\n|c|d|"),
    "<table><thead><tr><th>[1-2 a]</th><th>[3-4 b]</th></tr></thead>" +
      "<tbody><tr><td>[13-14 c]</td><td>[15-16 d]</td></tr></tbody></table>",
  );
});

test("links show their address as text, and pictures their alternative text", () => {
  assert.is(set("[a](http://x.y/z)"), "<p><span.link>[1-2 a]</span><bdi.address> ‹http://x.y/z›</bdi></p>");
  assert.is(
    set("[a](javascript:alert(1)) [b](data:x)"),
    "<p><span.link>[1-2 a]</span><bdi.address> ‹javascript:alert(1)›</bdi>[24-25  ]" +
      "<span.link>[26-27 b]</span><bdi.address> ‹data:x›</bdi></p>",
  );
  assert.is(set("![w](http://x/i.png)"), "<p>[2-3 w]<bdi.address> ‹http://x/i.png›</bdi></p>");
  assert.is(
    set("<http://x/ä>"),
    "<p><span.link>[1-11 http://x/ä]</span><bdi.address> ‹http://x/ä›</bdi></p>",
  );
  // What hides in an address is shown, and of a long one the beginning.
  assert.is(
    set("[a](http://x/\u202ea)"),
    "<p><span.link>[1-2 a]</span><bdi.address> ‹http://x/<202E>a›</bdi></p>",
  );
  assert.is(
    set(`[a](${"b".repeat(301)})`),
    `<p><span.link>[1-2 a]</span><bdi.address> ‹${"b".repeat(300)}›</bdi></p>`,
  );
});

test("markup from a model is shown as text, and nesting is bounded", () => {
  assert.is(set("*a* <b onclick=x>c</b>"), "<p><em>[1-2 a]</em>[3-22  <b onclick=x>c</b>]</p>");
  const deep = set(`${"> ".repeat(100)}a`) ?? "";
  const quotes = deep.split("<blockquote>").length - 1;
  assert.ok(quotes > 5 && quotes <= 40, String(quotes));
});

const shaded = (token: Partial<AnswerToken>, shade: Shade) => quantityOf({ text: "a", ...token }, shade);

test("a token's shade: its probability, its entropy of three bits at most, a probe's score", () => {
  const candidates = [0.5, 0.25, 0.25].map((probability, id) => ({ token_id: id, token: "a", probability }));
  assert.is(shaded({ probability: 0.5 }, "none"), undefined);
  assert.equal(shaded({ probability: 0.5 }, "probability"), { share: 0.5, words: "probability 50.0 %" });
  assert.is(shaded({}, "probability"), undefined);
  assert.equal(shaded({ candidates }, "entropy"), { share: 0.5, words: "at least 1.50 bits" });
  const even = Array.from({ length: 16 }, (_, id) => ({ token_id: id, token: "a", probability: 1 / 16 }));
  assert.equal(shaded({ candidates: even }, "entropy"), { share: 1, words: "at least 4.00 bits" });
  assert.equal([shaded({ candidates: [] }, "entropy"), shaded({}, "entropy")], [undefined, undefined]);
  assert.is(entropyOf({ text: "a", candidates: [candidates[0]!] }), 1);
  assert.equal(shaded({ probes: { calm: 0.125, x: null } }, "probe calm"), {
    share: 0.125,
    words: "calm 0.13",
  });
  assert.is(shaded({ probes: { calm: 0.125, x: null } }, "probe x"), undefined);
  assert.is(shaded({ probes: { calm: 0.125 } }, "probe other"), undefined);
  assert.equal(shaded({ probes: { calm: 0 } }, "probe calm"), { share: 0, words: "calm 0.00" });
});

test("a span shows its share and words only while it has one", () => {
  const span = new PageElement("span");
  const painted = (token: Partial<AnswerToken>, shade: Shade) => {
    paint(span, { text: "a", ...token }, shade);
    return [span.className, span.styles.get("--share"), span.title];
  };
  assert.equal(painted({ probability: 0.12345 }, "probability"), ["shaded", "0.123", "probability 12.3 %"]);
  assert.equal(painted({ probability: 0.5 }, "none"), ["", undefined, ""]);
  assert.equal(painted({ probes: { calm: 1 } }, "probe calm"), ["shaded", "1.000", "calm 1.00"]);
  assert.equal(painted({}, "probe calm"), ["", undefined, ""]);
});

test.run();
