/** The first experiment and the page for trouble, typed as they stand. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkPackage } from "../../src/studies/text/check-package.js";
import { parseStrictJson } from "../../src/studies/text/strict-json.js";
import { runPage } from "./run-page.js";

const folder = () => mkdtempSync(join(tmpdir(), "tapline-docs-"));

test("a first experiment: every command works, and what the text says of it is so", async () => {
  const own = folder();
  try {
    const { code, shown, blocks, odd } = await runPage("docs/first-experiment.md", own);
    assert.is(code, 0, shown);
    assert.equal(odd, []);
    assert.is(blocks, 8);
    const job = (name: string) => JSON.parse(readFileSync(join(own, "work", name, "job.json"), "utf8"));
    const last = (layer: { predictions: { token: string }[][] }) => layer.predictions.at(-1)?.[0]?.token;
    const tokens = job("lens").result.layers.map(last);
    assert.equal(tokens.slice(0, 6), Array(6).fill(" is"));
    assert.equal(tokens.slice(6), [" Paris", " Paris"]);
    const [neutral, , , , patched] = job("patch").result.trials;
    assert.is(neutral.probability, neutral.baseline_probability);
    assert.is(neutral.output, neutral.baseline);
    assert.ok(patched.probability < 0.01);
    assert.match(patched.output, "Tokyo");
    const early = job("patch-1").result.trials.map(({ delta }: { delta: number }) => Math.abs(delta));
    assert.is(early.length, 18);
    assert.ok(Math.max(...early) < 0.03, `“by no more than 3 points”: ${Math.max(...early)}`);
    assert.match(shown, /^7 +Portuguese /m, "the Python program's line");
    for (const name of ["lens.html", "patch.html", "language.html"])
      assert.ok(existsSync(join(own, "work", name)));
    const study = checkPackage(parseStrictJson(readFileSync(join(own, "work/study.json"))));
    assert.is(study.title, "Where the capital of France comes up");
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
});

test("trouble: what works works, what fails fails with the sentence", async () => {
  const own = folder();
  try {
    const { code, shown, odd } = await runPage("docs/troubleshooting.md", own);
    assert.is(code, 0, shown);
    assert.equal(odd, []);
    assert.match(shown, "There is no model at ./there-is-none.gguf.");
    assert.match(shown, "layers: 99 does not exist; the model has 8 blocks, 0 to 7.");
  } finally {
    rmSync(own, { recursive: true, force: true });
  }
});

test.run();
