import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as assert from "uvu/assert";
import { checkPackage } from "../../../src/studies/text/check-package.js";
import { parseStrictJson } from "../../../src/studies/text/strict-json.js";

/** Statements of a page about the output and files of its blocks. @throws the ones that are wrong */
type Claims = (shown: string, clone: string) => void;

const reports =
  (count: number): Claims =>
  (_shown, clone) => {
    const written = readdirSync(clone).filter((name) => name.endsWith(".html"));
    assert.is(written.length, count, written.join(" "));
  };

export const claims: Readonly<Record<string, Claims>> = {
  "README.md": (shown) => {
    assert.match(shown, "The capital of Japan is Tokyo.");
    assert.match(shown, "(1, 6, 128)");
  },
  "docs/first-experiment.md": (shown, clone) => {
    const job = (name: string) => JSON.parse(readFileSync(join(clone, name, "job.json"), "utf8"));
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
    for (const name of ["lens.html", "patch.html", "language.html"]) assert.ok(existsSync(join(clone, name)));
    const study = checkPackage(parseStrictJson(readFileSync(join(clone, "study.json"))));
    assert.is(study.title, "Where the capital of France comes up");
  },
  "docs/troubleshooting.md": (shown) => {
    assert.match(shown, "No model found at ./there-is-none.gguf.");
    assert.match(shown, "layers: 99 does not exist; the model has 8 blocks, 0 to 7.");
  },
  "docs/command-line.md": (_shown, clone) => {
    for (const name of [
      "peru.html",
      "egypt.html",
      "again/activations.npz",
      "demo/report.json",
      "tapline.bash",
    ]) {
      assert.ok(existsSync(join(clone, name)), name);
    }
  },
  "docs/experiments/inspect.md": reports(1),
  "docs/experiments/compare.md": reports(1),
  "docs/experiments/probe.md": reports(1),
  "docs/experiments/sae.md": reports(1),
  "docs/experiments/features.md": reports(2),
  "docs/experiments/patch.md": reports(2),
  "docs/experiments/lenses.md": reports(1),
};
