import { test } from "uvu";
import * as assert from "uvu/assert";
import { story } from "../../src/findings/story.js";
import { width } from "../../src/findings/text.js";
import {
  bars,
  type Canvas,
  type Colors,
  inScale,
  legend,
  lensGrid,
  magnitudeScale,
  narrowest,
  normsGrid,
  probabilityScale,
} from "../../src/terminal/index.js";
import { targetGrid } from "../../src/terminal/inspect-grids.js";
import { character, fc } from "../support/fc.js";
import { example } from "./example.js";

const plain: Canvas = { width: 100, colors: "none" };
const france = example(["The", " capital", " of", " France", " is"]);
const allColors: Colors[] = ["none", "16", "256", "truecolor"];

/** The picture without its colours. */
function bare(picture: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours start with an escape character
  return picture.replace(/\u001b\[[\d;]*m/g, "");
}

test("the lens: deepest layer on top, prompt tokens below, probabilities as figures", () => {
  const lines = lensGrid(france, plain).split("\n");
  assert.is(lines.length, 9);
  assert.match(lines[0]!, /^ {4}7 .*·Paris +\.98 $/);
  assert.match(lines[2]!, /^ {4}5 .*·Paris +\.73 $/);
  assert.match(lines[3]!, /^ {4}4 .*·France +\.61 $/);
  assert.match(lines[7]!, /^ {4}0 .*·is +\.12 $/);
  assert.match(lines[8]!, /^layer +The +·capital +·of +·France +·is *$/);
  const columnOf = (line: string, text: string) => width(line.slice(0, line.indexOf(text)));
  assert.is(columnOf(lines[0]!, "·Paris"), columnOf(lines[8]!, "·is"));
});

test("a followed token has rank and probability in every cell", () => {
  const target = [
    [12_345, 3e-5],
    [2, 0.25],
  ].map(([rank, probability]) => ({ rank: rank!, probability: probability! }));
  const result = {
    tokens: ["A", " b"],
    layers: [
      { layer: 0, norms: [1, 1], target },
      { layer: 3, norms: [1, 1], target: [target[1]!, { rank: 1, probability: 0.999 }] },
    ],
  };
  assert.equal(
    targetGrid(result, { width: 40, colors: "none" }).map((line) => line.trimEnd()),
    [
      "    3  #2         .25  #1         1.0",
      "    0  #12k      3e-5  #2         .25",
      "layer  A               ·b",
    ],
  );
  const answer = { ...result, layers: result.layers.map((layer) => ({ ...layer, target: target.slice(1) })) };
  assert.equal(targetGrid(answer, plain), []);
});

test("layers arrive in any order and are drawn by depth", () => {
  const shuffled = { ...france, layers: [...france.layers].reverse() };
  assert.is(lensGrid(shuffled, plain), lensGrid(france, plain));
});

test("colours change nothing but colours", () => {
  for (const colors of allColors) {
    assert.is(bare(lensGrid(france, { width: 100, colors })), lensGrid(france, plain), colors);
    assert.is(bare(normsGrid(france, { width: 100, colors })), normsGrid(france, plain), colors);
    assert.is(
      bare(bars(france.next_tokens, { width: 100, colors })),
      bars(france.next_tokens, plain),
      colors,
    );
  }
});

test("each depth uses only the codes that it has", () => {
  const codes = (colors: Colors) => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours start with an escape character
    const found = lensGrid(france, { width: 100, colors }).matchAll(/\u001b\[([\d;]*)m/g);
    return [...new Set([...found].map(([, code]) => code!))];
  };
  assert.equal(codes("none"), []);
  for (const code of codes("16")) assert.match(code, /^(0|2|(1;)?(30|97);4[0-7])$/);
  for (const code of codes("256")) assert.match(code, /^(0|2|(1;)?38;5;\d+;48;5;\d+)$/);
  for (const code of codes("truecolor")) assert.match(code, /^(0|2|(1;)?38;2;\d+;\d+;\d+;48;2;\d+;\d+;\d+)$/);
});

test("colored text is readable on a black and on a white terminal", () => {
  const levels = [0, 95, 135, 175, 215, 255]; // of the 256 colours' cube
  const rgb = (painted: string): number[] => {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours start with an escape character
    const [, code = ""] = /\u001b\[38;([\d;]+)m/.exec(painted) ?? [];
    const [kind, ...rest] = code.split(";").map(Number);
    if (kind === 2) return rest;
    const index = rest[0]! - 16;
    return [levels[Math.floor(index / 36)]!, levels[Math.floor(index / 6) % 6]!, levels[index % 6]!];
  };
  const luminance = (channels: number[]) => {
    const [red, green, blue] = channels.map((channel) =>
      channel <= 10 ? channel / 3294 : ((channel / 255 + 0.055) / 1.055) ** 2.4,
    );
    return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
  };
  for (const scale of [probabilityScale, magnitudeScale]) {
    for (const colors of ["truecolor", "256"] as const) {
      for (const value of [-1, 0, 0.25, 0.5, 0.75, 0.9, 1, Number.NaN]) {
        const own = luminance(rgb(inScale("x", value, scale, colors)));
        assert.ok(1.05 / (own + 0.05) > 2.7, `${colors} ${value} on white: ${1.05 / (own + 0.05)}`);
        assert.ok((own + 0.05) / 0.05 > 2.7, `${colors} ${value} on black: ${(own + 0.05) / 0.05}`);
      }
    }
  }
});

test("cells that hold the model's answer are bold", () => {
  const lines = lensGrid(france, { width: 100, colors: "16" }).split("\n");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours start with an escape character
  const bolds = lines.map((line) => [...line.matchAll(/\u001b\[1;[\d;]*m ([^ ]+)/g)].map(([, text]) => text));
  assert.equal(bolds.slice(0, 4), [["·Paris"], ["·Paris"], ["·Paris"], []]);
});

test("on narrow terminals the last tokens are drawn and the rest is counted", () => {
  const long = example(Array.from({ length: 40 }, (_, index) => ` w${index}`));
  const lines = lensGrid(long, plain).split("\n");
  assert.match(lines.at(-2)!, /·w39 *$/);
  assert.is(lines.at(-1), "… 33 earlier tokens not shown");
  assert.match(lines[0]!, /·Paris +\.98 $/);
  const colored = bare(lensGrid(long, { width: 100, colors: "256" })).split("\n");
  assert.is(colored.at(-1), "… 29 earlier tokens not shown");
});

test("layers without a lens are listed in words", () => {
  const note = "This architecture has no usable final norm.";
  const layers = france.layers.map(({ layer, norms }) => ({ layer, norms, note }));
  assert.is(lensGrid({ ...france, layers }, plain), note);
});

test("norms have three digits, and one outlier does not flatten the rest", () => {
  const picture = normsGrid(france, plain);
  assert.match(picture, /^ {4}7 +1\.0k +/);
  assert.match(picture, / 80\.0 +4\.44 /);
  const colored = normsGrid(france, { width: 100, colors: "truecolor" }).split("\n");
  const backgrounds = (line: string) => [...line.matchAll(/48;2;[\d;]+/g)].map(String);
  assert.is.not(backgrounds(colored[0]!)[4], backgrounds(colored[7]!)[4]);
});

test("a full bar is 1; less than an eighth of a column is empty", () => {
  const lines = bars(france.next_tokens, { width: 60, colors: "none" }).split("\n");
  assert.equal(
    lines.map((line) => line.slice(-5)),
    ["0.974", "0.013", "0.008", "0.000", "0.000"],
  );
  const blocks = (line: string) => [...line].filter((character) => character === "█").length;
  assert.is(blocks(lines[0]!), Math.floor(0.974 * 47));
  assert.is(blocks(lines[1]!), 0);
  const sure = bars([{ token_id: 0, token: "x", probability: 1 }], { width: 40, colors: "none" });
  assert.is(sure, `x ${"█".repeat(32)} 1.000`);
});

test("a legend only with colors", () => {
  assert.is(legend(probabilityScale, "0", "1", plain), "");
  assert.is(bare(legend(probabilityScale, "0", "1", { width: 100, colors: "256" })), `0 ${" ".repeat(12)} 1`);
});

test("the story names the layer from which the answer leads for good", () => {
  assert.is(
    story(france),
    "“·Paris” is on top by layer 5 (0.73) and ends at 0.97; at layer 4 it was still “·France”.",
  );
  assert.is(
    story(example(["a", "b"], { leads: 0 })),
    "“·Paris” is on top from layer 0, the first captured (0.12), and ends at 0.97.",
  );
  assert.is(
    story(example(["a", "b"], { leads: 8 })),
    "Layer 7, the last captured, still predicts “a”; the model predicts “·Paris” (0.97).",
  );
  const blind = { ...france, layers: france.layers.map(({ layer, norms }) => ({ layer, norms })) };
  assert.is(story(blind), "“·Paris” comes next, with probability 0.97.");
});

test("the story says how far the answer was from the lead, where the lens recorded it", () => {
  const close = structuredClone(france);
  close.layers[4]!.predictions!.at(-1)![1] = { token_id: 999, token: " Paris", probability: 0.21 };
  assert.match(story(close), /at layer 4 it was still “·France” \(0\.61 against 0\.21\)\.$/);
});

test("an answer that leads at the last layer alone has one probability", () => {
  const late = example(["a", "b"], { leads: 7 });
  late.layers[7]!.predictions!.at(-1)![0] = { token_id: 999, token: " Paris", probability: 0.974 };
  assert.is(story(late), "“·Paris” is on top only at layer 7 (0.97); at layer 6 it was still “b”.");
});

test("an early lead that is lost again does not count", () => {
  const lost = structuredClone(france);
  lost.layers[1]!.predictions!.at(-1)![0] = { token_id: 999, token: " Paris", probability: 0.2 };
  assert.match(story(lost), /is on top by layer 5 /);
});

test("no line is wider than the canvas, for any tokens, numbers, widths and colours", () => {
  const anyNumber = fc.double({ noDefaultInfinity: false, noNaN: false });
  const anyToken = fc.oneof(
    fc.string({ unit: character, maxLength: 12 }),
    fc.string({ unit: "grapheme", maxLength: 12 }),
    fc.constantFrom("", " ", "\n", "東京東京東京", "👩‍👩‍👧", "\u0301", "\u200b", "\u001b[2J", "日本語"),
  );
  const candidate = fc.record({
    token_id: fc.nat(),
    token: anyToken,
    probability: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  const input = fc.array(anyToken, { minLength: 1, maxLength: 40 }).chain((tokens) => {
    const each = { minLength: tokens.length, maxLength: tokens.length };
    const layer = fc.record({
      layer: fc.integer({ min: 0, max: 255 }),
      norms: fc.array(anyNumber, each),
      predictions: fc.option(fc.array(fc.array(candidate, { maxLength: 3 }), each), { nil: undefined }),
    });
    return fc.record({
      tokens: fc.constant(tokens),
      layers: fc.array(layer, { maxLength: 8 }),
      next_tokens: fc.array(candidate, { maxLength: 5 }),
    });
  });
  fc.assert(
    fc.property(
      input,
      fc.integer({ min: 1, max: 250 }),
      fc.constantFrom(...allColors),
      (result, columns, colors) => {
        const canvas = { width: columns, colors };
        for (const draw of [lensGrid, normsGrid] as const) check(draw(result, canvas), columns);
        check(bars(result.next_tokens, canvas), columns);
        assert.type(story(result), "string");
      },
    ),
    { numRuns: 200 },
  );
});

function check(picture: string, columns: number): void {
  for (const line of bare(picture).split("\n")) {
    assert.ok(width(line) <= Math.max(narrowest, columns), `${width(line)} > ${columns}: ${line}`);
  }
}

test.run();
