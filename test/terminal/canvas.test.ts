import { test } from "uvu";
import * as assert from "uvu/assert";
import { canvasOf, colorsOf } from "../../src/terminal/index.js";

const terminal = { isTTY: true, columns: 80 };
const pipe = {};

test("a terminal gets the colours that its environment names", () => {
  assert.is(colorsOf(terminal, { COLORTERM: "truecolor", TERM: "xterm" }), "truecolor");
  assert.is(colorsOf(terminal, { TERM: "xterm-256color" }), "256");
  assert.is(colorsOf(terminal, { TERM: "linux" }), "16");
  assert.is(colorsOf(terminal, { TERM: "dumb" }), "none");
});

test("a pipe, a file and a CI log get no colors", () => {
  assert.is(colorsOf(pipe, { COLORTERM: "truecolor", TERM: "xterm-256color" }), "none");
  assert.is(colorsOf(pipe, { CI: "true", GITHUB_ACTIONS: "true" }), "none");
});

test("NO_COLOR turns colors off, unless it is empty", () => {
  assert.is(colorsOf(terminal, { NO_COLOR: "1", COLORTERM: "truecolor" }), "none");
  assert.is(colorsOf(terminal, { NO_COLOR: "", COLORTERM: "truecolor" }), "truecolor");
});

test("FORCE_COLOR decides, even without a terminal, and before NO_COLOR", () => {
  assert.is(colorsOf(pipe, { FORCE_COLOR: "1" }), "16");
  assert.is(colorsOf(pipe, { FORCE_COLOR: "" }), "16");
  assert.is(colorsOf(pipe, { FORCE_COLOR: "2" }), "256");
  assert.is(colorsOf(pipe, { FORCE_COLOR: "3", NO_COLOR: "1" }), "truecolor");
  assert.is(colorsOf(terminal, { FORCE_COLOR: "0", COLORTERM: "truecolor" }), "none");
});

test("the width is the terminal's, then COLUMNS, then 100", () => {
  assert.is(canvasOf(terminal, {}).width, 80);
  assert.is(canvasOf(terminal, { COLUMNS: "120" }).width, 80);
  assert.is(canvasOf(pipe, { COLUMNS: "120" }).width, 120);
  assert.is(canvasOf(pipe, { COLUMNS: "wide" }).width, 100);
  assert.is(canvasOf(pipe, {}).width, 100);
  assert.is(canvasOf({ isTTY: true, columns: 0 }, {}).width, 100);
});

test.run();
