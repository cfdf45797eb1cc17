import { readFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { BuildError, sentenceOf } from "../../scripts/build/errors.js";

test("a file system error from any call becomes a sentence", () => {
  const full = Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
  assert.is(sentenceOf(full), "The disk is full: make room and run `npm run build:native` again.");
  const foreign = Object.assign(new Error("EACCES"), { code: "EACCES", path: "/elsewhere/.build/cpu.lock" });
  assert.match(
    sentenceOf(foreign) ?? "",
    /^The folder \/elsewhere\/\.build cannot be written by this user: /,
  );
  assert.is(sentenceOf(new BuildError("Do this.")), "Do this.");
});

test("a bug keeps its stack", () => {
  assert.is(sentenceOf(new TypeError("x is undefined")), undefined);
  assert.is(sentenceOf(undefined), undefined);
  try {
    readFileSync(join(os.tmpdir(), "tapline-no-such-file"));
  } catch (error) {
    assert.is(sentenceOf(error), undefined);
  }
});

test.run();
