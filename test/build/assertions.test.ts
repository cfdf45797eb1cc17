/** Assertions that look as if they compared something and do not. */
import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkoutFiles, root } from "../mutation/copy.js";
import { masked } from "../mutation/mutants.js";

/**
 * Lines with a call of `assert.throws` whose second argument is a text: uvu takes that for the assertion's own message, and
 * whatever is thrown will do.
 */
function emptyThrows(source: string): number[] {
  const program = masked(source);
  const found: number[] = [];
  for (const { index } of program.matchAll(/\bassert\s*\.\s*throws\s*\(/g)) {
    const second = argument(program, program.indexOf("(", index) + 1, 1);
    if (second !== undefined && /["'`]/.test(source[second] as string)) {
      found.push(source.slice(0, index).split("\n").length);
    }
  }
  return found;
}

/** Where an argument of a call begins. @param from behind the call's bracket @param number from 0 */
function argument(program: string, from: number, number: number): number | undefined {
  let [open, commas] = [0, 0];
  for (let at = from; at < program.length && open >= 0; at++) {
    const character = program[at] as string;
    if (commas === number && open === 0 && /[^\s,)]/.test(character)) return at;
    if ("([{".includes(character)) open++;
    else if (")]}".includes(character)) open--;
    else if (character === "," && open === 0) commas++;
  }
  return undefined;
}

test("a sentence passed to assert.throws as text is found in every notation", () => {
  const lines = [
    'assert.throws(() => f(1, "a, b"), "said");',
    "assert.throws(() => f(), `said ${this}`);",
    "assert.throws(\n  () => g([1, 2], { a: 1 }),\n  'said',\n);",
    'assert.throws(f, /said, "or"/);',
    'assert.throws(f, saying("said"));',
    'assert.throws(f, (error: Error) => error.message === "said");',
    "assert.throws(f);",
    'assert.throws(() => f("said"));',
    '// assert.throws(f, "said")',
    'assert.not.throws(f, "it goes well");',
  ];
  assert.equal(
    lines.map((line) => emptyThrows(line).length),
    [1, 1, 1, 0, 0, 0, 0, 0, 0, 0],
  );
  assert.equal(emptyThrows(lines.join("\n")), [1, 2, 3]);
});

test("no test compares a thrown sentence with nothing", () => {
  const files = checkoutFiles().filter((file) => /^(test|bench|scripts|clients)\/.*\.ts$/.test(file));
  assert.ok(files.length > 200, `${files.length} files`);
  const calls = files.flatMap((file) =>
    emptyThrows(readFileSync(`${root}${file}`, "utf8")).map((line) => `${file}:${line}`),
  );
  assert.equal(calls, [], 'give assert.throws saying("…") or a pattern: a text is its own message');
});

test.run();
