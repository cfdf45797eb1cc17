/** Text fields as Markdown with formulas: what is set, and that nothing else can become markup. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { formula } from "../../src/studies/site/markdown/formula.js";
import { piecesOf } from "../../src/studies/site/markdown/parse.js";
import { followed, Markdown } from "../../src/studies/site/markdown/render.js";
import { Pace } from "../../src/studies/site/pace.js";
import { Reveal } from "../../src/studies/site/reveal.js";
import { hostile } from "../report/jobs.js";
import { fc } from "../support/fc.js";

const pace = new Pace();

/** Markup of a text under a heading of level 2, without its frame. */
async function set(text: string, heading = 2): Promise<string> {
  const { markup } = await new Markdown({ shown: new Reveal().show, pace }).of(text, heading);
  return markup.replace(/^<div class="prose">([\s\S]*)<\/div>$/, "$1");
}

test("Markdown is set: headings below the page's, emphasis, lists, tables, code, lines", async () => {
  assert.is(
    await set("# A\n\n### B\n\n# C"),
    '<h3 dir="auto">A</h3><h4 dir="auto">B</h4><h3 dir="auto">C</h3>',
  );
  assert.is(await set("###### deep", 3), '<h4 dir="auto">deep</h4>', "none skips a level");
  assert.is(
    await set("one *two* **three** `fo<u>r` ~~five~~\nnext line"),
    '<p dir="auto">one <em>two</em> <strong>three</strong> <code dir="ltr">fo&lt;u&gt;r</code> <del class="struck">five</del>\nnext line</p>',
  );
  assert.is(await set("3. a\n4. b"), '<ol start="3"><li dir="auto">a</li><li dir="auto">b</li></ol>');
  assert.is(
    await set("a | b\n-: | -\n1 | *2*"),
    '<div class="scroll" role="group" aria-label="Table" tabindex="0"><table><thead><tr><th scope="col" class="right" dir="auto">a</th>' +
      '<th scope="col" dir="auto">b</th></tr></thead><tbody><tr><td class="right" dir="auto">1</td><td dir="auto"><em>2</em></td></tr></tbody></table></div>',
  );
  assert.is(
    await set("```py\nx = 1\n\n<b>\n```"),
    '<p class="hint code-label">py</p><pre class="code" dir="ltr">x = 1\n\n&lt;b&gt;</pre>',
  );
  assert.is(await set("> a\n\n---"), '<blockquote><p dir="auto">a</p></blockquote><hr>');
});

test("links lead to pages and mailboxes only, and pictures are told, not loaded", async () => {
  const link = (to: string, text: string) => `<a href="${to}" rel="nofollow noopener ugc">${text}</a>`;
  assert.is(
    await set("[a](https://example.org/x?y=1&z) and https://example.org/(b). <mailto:a@b.c>"),
    `<p dir="auto">${link("https://example.org/x?y=1&amp;z", "a")} and ${link("https://example.org/(b)", "https://example.org/(b)")}. ${link("mailto:a@b.c", "mailto:a@b.c")}</p>`,
  );
  assert.is(await set("[entry](#entry-1)"), `<p dir="auto">${link("#entry-1", "entry")}</p>`);
  const refused = [
    "javascript:alert(1)",
    "JaVaScRiPt&colon;alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "file:///etc/passwd",
    "//evil.example/x",
    "/sign-out",
    "blob:https://a/b",
    "\u0001javascript:alert(1)",
    "java\tscript:alert(1)",
  ];
  for (const address of refused) {
    assert.not.match(await set(`[a](<${address}>)`), /href/, address);
    assert.is(followed(address), null, address);
  }
  assert.is(
    await set("![a *chart*](https://example.org/x.png) ![](javascript:x)"),
    `<p dir="auto"><span class="hint">[${link("https://example.org/x.png", "picture: a *chart*")}]</span> <span class="hint">[picture: ]</span></p>`,
  );
});

test("formulas are set as MathML; prices, bad TeX and what is too long stay text", async () => {
  assert.is(
    await set("so $x^2$ holds"),
    '<p dir="auto">so <math><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math> holds</p>',
  );
  for (const display of ["$$\na = b\n$$", "$$a = b$$", "\\[a = b\\]"]) {
    assert.match(
      await set(display),
      /<math display="block"><mrow><mi>a<\/mi><mo>=<\/mo><mi>b<\/mi>/,
      display,
    );
  }
  assert.match(await set("\\(\\mathbb{R}\\)"), /<mi>ℝ<\/mi>/, "browsers no longer know mathvariant");
  assert.is(await set("costs $5 and $10, or $5-$10"), '<p dir="auto">costs $5 and $10, or $5-$10</p>');
  assert.is(await set("$\\frac{$"), '<p dir="auto"><code class="tex" dir="ltr">$\\frac{$</code></p>');
  assert.is(await set("`$x$` and \\$x$"), '<p dir="auto"><code dir="ltr">$x$</code> and $x$</p>');
  assert.is(formula("x".repeat(1001), false), null);
  assert.is(formula("\\def\\a{\\a\\a}\\a", false), null, "an expansion without end");
  assert.is(formula("{".repeat(900), true), null);
  assert.ok(formula("x^{".repeat(200) + "}".repeat(200), true));
  // Whatever hides, or is drawn so that nobody sees it.
  assert.is(formula('\\char"202E x', false), null);
  assert.is(formula("\\text{a\u200db}", false), null);
  const painted =
    formula("\\color{white}{x}\\Huge y\\colorbox{white}{z}\\hspace{-10em}w", false)?.markup ?? "";
  assert.not.match(painted, /color|size|background|"-/);
  for (const link of [
    "\\href{javascript:alert(1)}{x}",
    "\\url{https://a.b}",
    "\\includegraphics{https://a.b/c.png}",
  ]) {
    assert.not.match(formula(link, false)?.markup ?? "", /<a|href=|src=|https|javascript/, link);
  }
});

test("what Markdown would hide is shown as it was written", async () => {
  const deep = `${"> ".repeat(60)}secret`;
  assert.ok((await set(deep)).includes("secret"));
  assert.ok((await set(`${"- ".repeat(60)}secret`)).includes("secret"));
  assert.match(
    await set("a\u202eb &#x202e; \u00ad"),
    /U\+202E.*U\+202E.*U\+00AD/s,
    "also where it is an entity",
  );
  const cells = "x|y\n".repeat(20_000);
  assert.ok((await set(`a|b\n-|-\n${cells}`)).includes(cells.slice(0, -1)), "too many cells for a page");
});

test("a long text is read in pieces that joined are the text, and reads as in one", async () => {
  const paragraph = "Some words of *many*, and more of them in this line.\n\n";
  const list = "- one\n- two\n\n  - three\n\n";
  const fence = "```\ncode\n\nA line\n```\n\n";
  const text = `${paragraph.repeat(30)}${list.repeat(20)}${fence.repeat(30)}$$\na\n$$\n\n`.repeat(12);
  const pieces = piecesOf(text);
  assert.ok(pieces.length > 3);
  assert.is(pieces.join(""), text);
  for (const piece of pieces) assert.is((piece.match(/```/g)?.length ?? 0) % 2, 0, "no code is cut");
  const whole = await set(text);
  assert.is(whole.match(/<em>/g)?.length, 30 * 12);
  assert.is(whole.match(/<pre/g)?.length, 30 * 12);
  assert.is(whole.match(/<math/g)?.length, 12);
  assert.is(piecesOf("x".repeat(90_000)).length, 1);
});

/** Elements and attributes that may be there; whatever else would be an injection. */
const allowed: Record<string, RegExp> = {
  div: /^ class="(?:prose|scroll|formula|text)"(?: role="group" aria-label="(?:Table|Formula)" tabindex="0"| dir="auto")?$/,
  p: /^ (?:dir="auto"|class="hint code-label")$/,
  a: /^ href="(?:https?:\/\/|mailto:|#)[^"<>]*" rel="nofollow noopener ugc"$/,
  h3: /^ dir="auto"$/,
  h4: /^ dir="auto"$/,
  h5: /^ dir="auto"$/,
  h6: /^ dir="auto"$/,
  li: /^ dir="auto"$/,
  ol: /^(?: start="\d+")?$/,
  pre: /^ class="code" dir="ltr"$/,
  code: /^(?: class="tex")? dir="ltr"$/,
  del: /^ class="struck"$/,
  span: /^ class="(?:hint|hidden-char)"(?: title="[\w\- ]+")?$/,
  th: /^ scope="col"(?: class="(?:right|center)")? dir="auto"$/,
  td: /^(?: class="(?:right|center)")? dir="auto"$/,
};
const bare = new Set("table thead tbody tr ul em strong br hr blockquote".split(" "));
const math = new Set(
  "math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle mpadded mphantom menclose msub msup msubsup munder mover munderover mmultiscripts mprescripts mtable mtr mlabeledtr mtd".split(
    " ",
  ),
);

/** Reads markup as a browser would begin to: every `<` opens a known element, closed in order. */
function assertHarmless(markup: string, about: string): void {
  const open: string[] = [];
  let text = markup;
  for (let at = text.indexOf("<"); at !== -1; at = text.indexOf("<")) {
    const [tag, end, name = "", given = ""] =
      /^<(\/?)([a-z0-9]+)((?: [a-z-]+="[^"<>]*")*)>/.exec(text.slice(at)) ?? [];
    assert.ok(tag, `${about}: ${text.slice(at, at + 80)}`);
    if (end === "/") assert.is(open.pop(), name, about);
    else {
      const known = math.has(name)
        ? /^(?: (?!on|href|src|style|id|class)[a-z]+="[\w #%.+]*")*$/.test(given)
        : (allowed[name]?.test(given) ?? (bare.has(name) && given === ""));
      assert.ok(known, `${about}: ${tag}`);
      if (name !== "br" && name !== "hr") open.push(name);
    }
    text = text.slice(at + (tag as string).length);
  }
  assert.equal(open, [], about);
  assert.not.match(
    markup.replace(/[\u2061-\u2064\u200b]/g, ""),
    /[\u202a-\u202e\u2066-\u2069\u00ad\0]/,
    about,
  );
}

const corpus = [
  ...hostile,
  "<svg onload=alert(1)><math><mtext><script>alert(1)</script>",
  "[a](javascript:alert(1) 'x') [b]: javascript:alert(1)\n\n[b]",
  '[a](https://x.y/"onmouseover="alert(1)) ![x](https://x.y "onerror=alert(1)")',
  "<https://x.y/'><img src=x onerror=alert(1)>>",
  "$</math><img src=x onerror=alert(1)>$ $\\text{</mtext><script>alert(1)</script>}$",
  "$\\htmlClass{x}{y} \\htmlStyle{color:red}{x} \\htmlData{onclick=alert(1)}{x} \\unicode{x202E}$",
  "$\\class{x}{y}\\style{background:url(https://x.y)}{x}\\require{html}\\tag{<b>}$",
  '```" onclick="alert(1)\nx\n```',
  'a|b\n:-:" onclick=x|-\n<b>|x',
  '# x {#id onclick="alert(1)"}\n\n1. [ ] <input>',
  "[![a](https://x.y/z)](javascript:x)",
  "&lt;script&gt; &#60;script&#62; &#x3c;img src=x onerror=alert(1)&#x3e;",
  "[a][b]\n\n[b]: <data:text/html,<script>alert(1)</script>>",
  "https://x.y/<script>alert(1)</script> https://x.y/\u202e https://x.y/'\"`",
];

test("hostile texts: nothing becomes markup but what Markdown has", async () => {
  for (const text of corpus) assertHarmless(await set(text), text);
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(
          fc.constantFrom(...corpus),
          fc.constantFrom(
            "*",
            "_",
            "`",
            "```",
            "\n",
            "\n\n",
            "[",
            "](",
            ")",
            "<",
            ">",
            "|",
            "-|-",
            "$",
            "$$",
            "\\(",
            "\\)",
            "# ",
            "- ",
            "> ",
            "![",
            "&",
            ";",
            '"',
            "'",
            "\\",
            "~~",
            "    ",
            "{",
            "}",
            "^",
            "javascript:",
            "https://x.y/",
          ),
          fc.string({ maxLength: 12, unit: "binary" }),
        ),
        { maxLength: 14 },
      ),
      async (parts) => {
        const text = parts.join("");
        assertHarmless(await set(text), text);
      },
    ),
    { numRuns: 200 },
  );
  await fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom(
          "\\",
          "{",
          "}",
          "frac",
          "text",
          "char",
          '"202E',
          "<",
          ">",
          '"',
          "&",
          "\\\\",
          "^",
          "_",
          "x",
          "$",
          "href",
          "begin{matrix}",
          "end{matrix}",
          "'",
          "#",
          "%",
        ),
        { maxLength: 20 },
      ),
      (parts) => {
        const made = formula(parts.join(""), true);
        if (made !== null) assertHarmless(made.markup, parts.join(""));
      },
    ),
    { numRuns: 200 },
  );
});

test.run();
