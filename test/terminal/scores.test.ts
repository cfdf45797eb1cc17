import { test } from "uvu";
import * as assert from "uvu/assert";
import { AnswerWriter } from "../../src/terminal/index.js";

const token = (text: string, truth: number | null) => ({ token: text, probes: { truth } });

function written(colors: "none" | "truecolor", say: (writer: AnswerWriter) => void) {
  let text = "";
  const output = { write: (part: string) => (text += part) };
  const writer = new AnswerWriter(output, { colors, thinking: true, watch: "truth" });
  say(writer);
  writer.end();
  return { text, summary: writer.summary(80) };
}

test("without colors a digit after each token shows the tenths of its score", () => {
  const { text, summary } = written("none", (writer) => {
    writer.answer("Par", [token("Par", 0.93)]);
    // Held back, then two at once; the end of the turn writes nothing.
    writer.answer("", [token("is", 0.08)]);
    writer.answer("is.\nYes", [token(".", 1), token("\nYes", 0.5), { probes: { truth: 0.2 } }]);
  });
  assert.is(text, "Par₉is₀.₉\nYes₅\n");
  assert.is(summary, "digits are tenths of truth's score; mean 0.54, highest 1.00 at .");
});

test("with colors each token is separate, and a legend explains them", () => {
  const { text, summary } = written("truecolor", (writer) => {
    writer.answer("Par", [token("Par", 0)]);
    writer.answer("is", [token("is", 1)]);
  });
  // The ends of the scale: dark under white letters, yellow under black ones.
  assert.is(
    text,
    "\u001b[38;2;255;255;255;48;2;38;29;62mPar\u001b[0m\u001b[38;2;16;16;16;48;2;246;225;56mis\u001b[0m\n",
  );
  assert.match(summary, /^truth .*0.* .*1.*mean 0\.50, highest 1\.00 at is/);
});

test("of equal scores the first is the highest", () => {
  const { summary } = written("none", (writer) => {
    writer.answer("abc", [token("a", 0.25), token("b", 0.75), token("c", 0.75)]);
  });
  assert.is(summary, "digits are tenths of truth's score; mean 0.58, highest 0.75 at b");
});

test("tokens without a score, and text without tokens, are written as they are", () => {
  const { text, summary } = written("none", (writer) => {
    writer.answer("\u{1F642}", [token("\ufffd", null), token("\ufffd", null)]);
    writer.answer(" and more", []);
  });
  assert.is(text, "\u{1F642} and more\n");
  assert.is(summary, "");
});

test.run();
