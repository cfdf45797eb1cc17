/** Faults that are planted to see tests fail: each one's place has to be there, once. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { planted } from "./planted.js";

test("the text that a planted fault replaces occurs once in its file", () => {
  const lost = planted.filter(({ file, from }) => {
    const text = readFileSync(fileURLToPath(new URL(`../../${file}`, import.meta.url)), "utf8");
    return text.split(from).length !== 2;
  });
  assert.equal(
    lost.map(({ file, from }) => `${file}: ${from}`),
    [],
  );
});

test.run();
