import { test } from "uvu";
import * as assert from "uvu/assert";
import { cut, width } from "../../src/findings/text.js";
import { fit, wrap } from "../../src/terminal/fit.js";
import { visible } from "../../src/text/visible.js";
import { character, fc } from "../support/fc.js";

test("tokens that differ look different, and each leaves a mark", () => {
  assert.is(visible(" Paris"), "·Paris");
  assert.is(visible("Paris"), "Paris");
  assert.is(visible("\n\n"), "↵↵");
  assert.is(visible("\r"), "␍");
  assert.is(visible("\t"), "␉");
  assert.is(visible("\u001b[31m"), "␛[31m");
  assert.is(visible("\u007f"), "␡");
  assert.is(visible("a\u200bb"), "a<200B>b");
  assert.is(visible("\u202etxt"), "<202E>txt");
  assert.is(visible("\ufeff"), "<FEFF>");
  assert.is(visible("\u00a0"), "<00A0>");
  assert.is(visible("\u{e0041}"), "<E0041>");
  assert.is(visible("\ud800"), "<D800>");
  assert.is(visible("\ufffd"), "\ufffd");
  assert.is(visible(""), "∅");
});

test("marks and emoji stay whole, a mark alone gets something to sit on", () => {
  assert.is(visible("e\u0301"), "e\u0301");
  assert.is(visible("\u0301"), "◌\u0301");
  assert.is(visible("👩‍👩‍👧"), "👩‍👩‍👧");
  assert.is(visible("❤️"), "❤️");
  assert.is(visible("\u200d"), "<200D>");
});

test("columns are counted as terminals count them", () => {
  assert.is(width("Paris"), 5);
  assert.is(width("東京"), 4);
  assert.is(width("ｱ"), 1);
  assert.is(width("Ａ"), 2);
  assert.is(width("e\u0301"), 1);
  assert.is(width("👩‍👩‍👧"), 2);
  assert.is(width("🇫🇷"), 2);
  assert.is(width(visible("\u0301")), 1);
});

test("cutting never splits a character and fills the gap of a wide one", () => {
  assert.is(cut("capital", 7), "capital");
  assert.is(cut("capital", 4), "cap…");
  assert.is(cut("東京都", 4), "東…");
  assert.is(fit("東京都", 4), "東… ");
  assert.is(fit("12", 4, "right"), "  12");
  assert.is(cut("abc", 0), "");
});

test("nothing in a visible token moves the cursor, whatever the token", () => {
  fc.assert(
    fc.property(fc.string({ unit: character }), (token) => {
      const shown = visible(token);
      assert.not.match(shown, /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u);
      assert.ok(width(shown) > 0);
    }),
    { numRuns: 500 },
  );
});

test("fit is exact for any text and width", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 1, max: 40 }), (text, columns) => {
      assert.is(width(fit(visible(text), columns)), columns);
    }),
    { numRuns: 500 },
  );
});

test("wrapped text keeps its words in order and within the width", () => {
  assert.equal(wrap("the quick brown fox", 9), ["the quick", "brown fox"]);
  assert.equal(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
  assert.equal(wrap("", 10), []);
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 8, max: 40 }), (text, columns) => {
      const lines = wrap(visible(text), columns);
      for (const line of lines) assert.ok(width(line) <= columns);
      assert.is(lines.join("").replaceAll(" ", ""), visible(text).replaceAll(/\s/g, ""));
    }),
  );
});

test.run();
