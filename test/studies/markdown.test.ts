/** Text fields as Markdown with formulas: what is rendered, and that nothing else can become markup. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { formula } from "../../src/studies/site/markdown/formula.js";
import { parsed, piecesOf } from "../../src/studies/site/markdown/parse.js";
import { followed, Markdown } from "../../src/studies/site/markdown/render.js";
import { Pace } from "../../src/studies/site/pace.js";
import { Reveal } from "../../src/studies/site/reveal.js";
import { hostile } from "../report/jobs.js";
import { character, fc } from "../support/fc.js";

const pace = new Pace();

/** Markup of a text under a heading of level 2, without its frame. */
async function set(text: string, heading = 2): Promise<string> {
  const { markup } = await new Markdown({ shown: new Reveal().show, pace }).of(text, heading);
  return markup.replace(/^<div class="prose">([\s\S]*)<\/div>$/, "$1");
}

test("Markdown renders lower headings, emphasis, lists, tables, code and rules", async () => {
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

test("links lead only to pages and mailboxes; images are named, not loaded", async () => {
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
    `<p dir="auto"><span class="hint">[${link("https://example.org/x.png", "image: a *chart*")}]</span> <span class="hint">[image: ]</span></p>`,
  );
});

test("formulas render as MathML; prices, bad TeX and oversized formulas stay text", async () => {
  assert.is(
    await set("so $x^2$ holds"),
    '<p dir="auto">so <span class="tex-line"><math><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math></span> holds</p>',
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
  assert.match(
    formula("\\rule{50em}{1em}", false)?.markup ?? "",
    ' width="20em"',
    "nothing is wider than twenty letters",
  );
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

test("text that Markdown would hide is shown as written", async () => {
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

test("a long text is parsed in pieces that join to the text and render the same", async () => {
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

/** A formula in a line or a text: its delimiter, its content, whether it is displayed, and its source. */
const asFormula = ({ markup, content, meta }: { markup: string; content: string; meta: unknown }) => {
  const { display, source } = meta as { display: boolean; source: string };
  return [markup, content, display, source];
};

test("inline formulas: where they start and end, and what is not a formula", async () => {
  const inLine = async (text: string) =>
    ((await parsed(text, pace)) ?? [])
      .flatMap(({ children }) => children ?? [])
      .map((token) => (token.type === "formula" ? asFormula(token) : token.content));
  const one = (markup: string, content: string, display: boolean, source: string) => [
    [markup, content, display, source],
  ];
  for (const [text, expected] of [
    ["$a$", one("$", "a", false, "$a$")],
    ["x $$a$$ y", ["x ", ["$$", "a", true, "$$a$$"], " y"]],
    ["x \\(a\\) y", ["x ", ["\\(", "a", false, "\\(a\\)"], " y"]],
    ["x \\[a\\] y", ["x ", ["\\[", "a", true, "\\[a\\]"], " y"]],
    ["$a$ and $b$", [["$", "a", false, "$a$"], " and ", ["$", "b", false, "$b$"]]],
    // A space after the first dollar sign or before the last; a digit after it.
    ["$ a$", ["$ a$"]],
    ["$a $", ["$a $"]],
    ["$a$5", ["$a$5"]],
    ["$a$5$", one("$", "a$5", false, "$a$5$")],
    ["$a $b$", one("$", "a $b", false, "$a $b$")],
    // An escaped dollar ends nothing; a backslash before another mark is the formula's own.
    ["$a\\$b$", one("$", "a\\$b", false, "$a\\$b$")],
    ["\\(a\\\\)", one("\\(", "a\\", false, "\\(a\\\\)")],
    // Nothing between the marks.
    ["x $$$$ y", ["x $$$$ y"]],
    ["x $$$$a$$ y", ["x ", ["$$", "$$a", true, "$$$$a$$"], " y"]],
    ["x \\(\\) y", ["x ", "(", "", ")", " y"]],
    ["$", ["$"]],
    ["$a", ["$a"]],
    ["x \\(a", ["x ", "(", "a"]],
    // Each kind of delimiter is searched separately.
    ["\\(a $b$", ["", "(", "a ", ["$", "b", false, "$b$"]]],
  ] as [string, unknown[]][]) {
    const found = await inLine(text);
    assert.equal(
      found.filter((part) => part !== ""),
      expected.filter((part) => part !== ""),
      text,
    );
  }
});

test("displayed formulas start a line with their delimiter and end one with it", async () => {
  const kinds = async (text: string) =>
    ((await parsed(text, pace)) ?? [])
      .filter(({ type }) => !/_(?:open|close)$/.test(type))
      .map((token) =>
        token.type === "formula"
          ? `formula ${JSON.stringify(token.content)}`
          : `${token.type} ${token.content}`,
      );
  const middle = (count: number) => Array.from({ length: count }, (_, at) => `x_${at}`).join("\n");
  for (const [text, ...expected] of [
    ["$$a$$", 'formula "a"'],
    ["  $$a$$  ", 'formula "a"'],
    ["$$a\nb$$", 'formula "a\\nb"'],
    ["$$\na = b$$\nafter", 'formula "\\na = b"', "inline after"],
    ["before\n$$\na\n$$\nafter", "inline before", 'formula "\\na\\n"', "inline after"],
    ["$$$$", "inline $$$$"],
    ["$$ a $$ and more", "inline $$ a $$ and more"],
    // Without an end, with a blank line, or longer than 50 lines it is text.
    ["$$\na", "inline $$\na"],
    ["$$\na\n\nb\n$$", "inline $$\na", "inline b\n$$"],
    [`$$\n${middle(48)}\n$$`, `formula ${JSON.stringify(`\n${middle(48)}\n`)}`],
    [`$$\n${middle(49)}\n$$`, `inline $$\n${middle(49)}\n$$`],
    // Of a list's item it goes no further than the item does.
    ["- $$\n  a\n  $$", 'formula "\\na\\n"'],
    ["- $$\na\n$$", "inline $$\na\n$$"],
    // Indented by four more spaces, it continues the paragraph.
    ["> a\n    $$b$$", "inline a\n    $$b$$"],
    ["> a\n   $$b$$", "inline a", 'formula "b"'],
    ["    $$a$$", "code_block $$a$$\n"],
  ] as [string, ...string[]][]) {
    assert.equal(await kinds(text), expected, text);
  }
  const [token] = (await parsed("$$\na\n$$", pace)) ?? [];
  assert.equal(token?.meta, { display: true, source: "$$\na\n$$" });
});

test("searching for a formula's end costs one pass per delimiter, not per dollar sign", async () => {
  const { indexOf } = String.prototype;
  let looked = 0;
  String.prototype.indexOf = function (...asked) {
    looked += 1;
    return indexOf.apply(this, asked);
  };
  try {
    await parsed("$a ".repeat(1000), pace);
  } finally {
    String.prototype.indexOf = indexOf;
  }
  assert.ok(looked < 20_000, `${looked} times`);
});

test("long texts split after 8,000 characters at a paragraph, after 30,000 anywhere", () => {
  const lengths = (text: string) => {
    const pieces = piecesOf(text);
    assert.is(pieces.join(""), text);
    return pieces.map(({ length }) => length);
  };
  const a = (count: number) => "a".repeat(count);
  const lines = (count: number) => `${a(99)}\n`.repeat(count);
  for (const [text, ...expected] of [
    [a(8000), 8000],
    [`${a(3990)}\n\n${a(4008)}`, 8000],
    [`${a(7998)}\n\nNext`, 8000, 4],
    [`${a(7997)}\n\nNext`, 8003],
    [`${a(8000)}\nNext`, 8005],
    [`${a(8000)}\n \nNext`, 8003, 4],
    ...["- x", "+ x", "* x", "> x", "1. x", " x"].map((next) => [
      `${a(8000)}\n\n${next}`,
      8002 + next.length,
    ]),
    [lines(301), 30_000, 100],
    [lines(300), 30_000, 0],
    [lines(299), 29_900],
    // Code is not cut, however long; a longer or other mark does not end it, and one that is as long does.
    [`\`\`\`\n${lines(400)}\`\`\`\n\nNext`, 40_008, 5],
    [`\`\`\`\n${lines(80)}~~~\n\nNext\n\`\`\`\n\nLast`, 8019, 4],
    [`~~~~\n${lines(80)}~~~\n\nNext\n~~~~~\n\nLast`, 8022, 4],
    // What begins as a formula holds a text together for 8,000 characters, unless it ends.
    [`$$\n${lines(90)}`, 8003, 1000],
    [`$$\n${lines(10)}a $$ \n${lines(90)}`, 10_009],
    [`$$a$$\n${lines(90)}`, 9006],
    [`   $$a\n${lines(90)}`, 8007, 1000],
    [`    $$a\n${lines(90)}`, 9008],
    // Each piece is measured from its own beginning.
    [`${a(7998)}\n\n${a(7997)}\n\n${a(10)}`, 8000, 8009],
    [`${a(7998)}\n\n${a(7998)}\n\n${a(10)}`, 8000, 8000, 10],
  ] as [string, ...number[]][]) {
    assert.equal(lengths(text), expected, text.replace(/a{20,}/g, "…").slice(0, 60));
  }
});

test("excess blocks, nesting, long paragraphs and formulas stay as written", async () => {
  const rule = "***\n";
  assert.is(await set(rule.repeat(20_000)), "<hr>".repeat(20_000));
  assert.match(await set(rule.repeat(20_001)), /^<div class="text" dir="auto">\*\*\*\n/);
  assert.match(await set(`${"> ".repeat(36)}*x*`), /^(?:<blockquote>){36}<p dir="auto"><em>x<\/em>/);
  assert.match(await set(`${"> ".repeat(37)}*x*`), /^<div class="text" dir="auto">(?:&gt; ){37}\*x\*</);
  const long = (length: number) => `*x*${"y".repeat(length - 3)}`;
  assert.is(await set(long(20_000)), `<p dir="auto"><em>x</em>${"y".repeat(19_997)}</p>`);
  assert.is(await set(long(20_001)), `<p dir="auto">${long(20_001)}</p>`);
  // Formulas share a budget of 20,000 characters, plus 40 for each; one of more than 1,000 is never rendered.
  const after = async (length: number) => {
    const markup = await set(`$${"z".repeat(length)}$\n\n$a$`);
    assert.match(markup, `<code class="tex" dir="ltr">$${"z".repeat(30)}`);
    return markup.split("</p>")[1];
  };
  assert.is(
    await after(19_919),
    '<p dir="auto"><span class="tex-line"><math><mrow><mi>a</mi></mrow></math></span>',
  );
  assert.is(await after(19_920), '<p dir="auto"><code class="tex" dir="ltr">$a$</code>');
  assert.ok(formula("x".repeat(1000), false));
});

test("headings get ids from their words without markup, and inline markup renders once", async () => {
  const said: string[] = [];
  const heading = (words: string) => {
    said.push(words);
    return said.length === 1 ? "first" : null;
  };
  const { markup } = await new Markdown({ shown: new Reveal().show, pace, heading }).of(
    "a *b* `c` $x$\nd\n===\n\n# e",
    2,
  );
  assert.equal(said, ["a b c $x$ d", "e"]);
  assert.match(markup, '<h3 dir="auto" id="first">a <em>b</em>');
  assert.match(markup, '<h3 dir="auto">e</h3>');
  const link = (to: string, text: string) => `<a href="${to}" rel="nofollow noopener ugc">${text}</a>`;
  for (const [text, expected] of [
    ["a  \nb \\* c", "a<br>b * c"],
    ["[a](javascript:x) b", "a b"],
    ["[a https://in.example b](https://b.example/)", link("https://b.example/", "a https://in.example b")],
    [
      "[x](javascript:y) https://a.example/b and [c](https://d.example/) https://e.example/",
      `x ${link("https://a.example/b", "https://a.example/b")} and ${link("https://d.example/", "c")} ${link("https://e.example/", "https://e.example/")}`,
    ],
    [
      "[![alt](https://p.example/x.png)](https://b.example/)",
      link("https://b.example/", '<span class="hint">[image: alt]</span>'),
    ],
    ["![alt](#here)", '<span class="hint">[image: alt]</span>'],
    // Punctuation that ends a sentence is not part of the address; a closing bracket is if the address has the opening
    // one.
    ["(see https://a.example/b).", `(see ${link("https://a.example/b", "https://a.example/b")}).`],
    ["https://a.example/(b)!?", `${link("https://a.example/(b)", "https://a.example/(b)")}!?`],
    [
      "https://a.example/x:// https://%/ y",
      `${link("https://a.example/x://", "https://a.example/x://")} https://%/ y`,
    ],
  ] as const) {
    assert.is(await set(text), `<p dir="auto">${expected}</p>`, text);
  }
});

test("long texts render in slices", async () => {
  let turns = 0;
  const counting = {
    turn: async () => {
      turns += 1;
    },
  } as unknown as Pace;
  const turnsOf = async (text: string) => {
    turns = 0;
    await new Markdown({ shown: new Reveal().show, pace: counting }).of(text, 2);
    return turns;
  };
  // Each piece of the text, each block of it, each line of each, each formula in a line.
  for (const [text, least] of [
    ["***\n".repeat(100), 1 + 100],
    ["a\n\n".repeat(100), 1 + 300 + 100],
    ["$x$ ".repeat(100), 1 + 3 + 1 + 100],
    [`${"a".repeat(7998)}\n\n`.repeat(5), 5 + 15 + 5],
  ] as const)
    assert.ok((await turnsOf(text)) >= least, text.slice(0, 8));
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
  span: /^ class="(?:hint|hidden-char|tex-line)"(?: title="[\w\- ]+")?$/,
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

test("hostile texts produce only the markup that Markdown has", async () => {
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
          fc.string({ maxLength: 12, unit: character }),
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
