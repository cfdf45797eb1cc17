/** Words and characters: sizes, and texts from elsewhere as one line. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { lineOf } from "../../src/text/hidden.js";
import { shellWord } from "../../src/text/shell.js";
import { bytesText } from "../../src/text/words.js";

test("sizes and lines in text form", () => {
  assert.equal([0, 1, 999, 1000, 1049, 99_949, 100_000, 999_499, 1e6, 1.5e9, 1e12, 1e15].map(bytesText), [
    "0 bytes",
    "1 bytes",
    "999 bytes",
    "1.0 kB",
    "1.0 kB",
    "99.9 kB",
    "100 kB",
    "999 kB",
    "1.0 MB",
    "1.5 GB",
    "1.0 TB",
    "1000 TB",
  ]);
  assert.is(lineOf("a\r\n\u202e\0b\tc\u0378d"), "a b c d");
});

test("words are quoted as the shell reads them", () => {
  assert.equal(["a/b-c.d", "a b", "it's", "$x", ""].map(shellWord), [
    "a/b-c.d",
    "'a b'",
    "'it'\\''s'",
    "'$x'",
    "''",
  ]);
});

test.run();
