import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as assert from "uvu/assert";
import { checkPackage } from "../../../src/studies/text/check-package.js";
import { parseStrictJson } from "../../../src/studies/text/strict-json.js";

/** Statements of a page about the output and files of its blocks. @throws the ones that are wrong */
type Claims = (shown: string, clone: string) => void;

/** The job that a block saved in a folder. */
// biome-ignore lint/suspicious/noExplicitAny: a JSON document
const jobIn = (clone: string, folder: string): any =>
  JSON.parse(readFileSync(join(clone, folder, "job.json"), "utf8"));

const mean = (numbers: number[]) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

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
  "docs/README.md": (shown, clone) => {
    assert.ok(existsSync(join(clone, "france.html")));
    assert.match(shown, "“·Paris” is on top by layer 6");
    assert.match(shown, "the answer depends on “·France”");
    assert.match(shown, "I don't know.");
    assert.match(shown, "None of 100 probes trained on shuffled labels reaches the AUROC of layer");
    assert.match(shown, "(1, 6, 128)");
  },
  "docs/coming-from.md": (shown) => {
    assert.match(shown, "(8, 1, 6, 128)\n' Paris'");
    const [, kl] = /KL to the unmodified run: ([\d.]+)/.exec(shown) ?? [];
    assert.ok(Number(kl) > 1, `KL after an ablation: ${kl}`);
    assert.match(shown, "\n' Tokyo'\n");
    assert.match(shown, "[' Tokyo', ' Tokyo']");
    assert.match(shown, /' unknown[^\n]*\n' Paris/);
  },
  "docs/first-experiment.md": (shown, clone) => {
    const job = (name: string) => jobIn(clone, name);
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
  "docs/dictionaries.md": (shown, clone) => {
    const [neutral, steered] = jobIn(clone, "steered").result.trials;
    assert.match(neutral.output, "enjoyed it and everybody was happy.");
    assert.ok(steered.probability > 0.2, `“ regret” with the feature: ${steered.probability}`);
    assert.ok(
      steered.probability > 1000 * neutral.probability,
      `“ regret” without it: ${neutral.probability}`,
    );
    assert.match(steered.output, /^ (regret|hated) it and everybody was sad/);
    assert.ok(steered.control.probability < 0.02, `“ regret”, random vector: ${steered.control.probability}`);
    assert.match(steered.control.output, /everybody was happy/);
    const [edited, own] = shown.trimEnd().split("\n").slice(-2);
    assert.match(edited as string, /^ (regret|hated) it and everybody was sad/);
    assert.match(own as string, "enjoyed it and everybody was happy.");
  },
  "docs/experiments/inspect.md": reports(1),
  "docs/experiments/compare.md": (shown, clone) => {
    reports(1)(shown, clone);
    const trials = jobIn(clone, "steer").result.trials;
    const strongest = trials.filter(({ strength }: { strength: number }) => strength === 2);
    assert.is(strongest.length, 12);
    const steered = mean(strongest.map(({ probability }: { probability: number }) => probability));
    assert.ok(Math.abs(steered - 0.74) < 0.05, `“rises to 0.74”: ${steered}`);
    const random = mean(
      strongest.map((trial: { control: { probability: number } }) => trial.control.probability),
    );
    assert.ok(random < 0.02, `“random vectors reach 0.008”: ${random}`);
    assert.match(shown, /target “·Tokyo”, baseline (0|0\.000\d*)$/m);
    assert.match(shown, /^ *1 +0\.9\d+ .* Tokyo/m);
  },
  "docs/experiments/probe.md": reports(1),
  "docs/experiments/sae.md": reports(1),
  "docs/experiments/features.md": reports(2),
  "docs/experiments/patch.md": (shown, clone) => {
    reports(2)(shown, clone);
    const sites = (folder: string): Site[] => jobIn(clone, folder).result.sites;
    const recovery = (layer: number, position: number) =>
      sites("handover").find((site) => site.layer === layer && site.position === position)?.recovery ?? 0;
    for (const layer of [0, 1, 2, 3]) assert.ok(recovery(layer, 4) > 0.5, `the subject in block ${layer}`);
    for (const layer of [5, 6, 7]) assert.ok(recovery(layer, 5) > 0.5, `the last token in block ${layer}`);
    const heads = sites("giver").sort((a, b) => (b.recovery ?? 0) - (a.recovery ?? 0));
    const [strongest] = heads as [Site];
    assert.equal([strongest.layer, strongest.head, strongest.position], [6, 2, 14]);
    assert.ok(Math.abs((strongest.recovery ?? 0) - 0.46) < 0.05, `“moves 0.46”: ${strongest.recovery}`);
  },
  "docs/experiments/lenses.md": (shown, clone) => {
    reports(1)(shown, clone);
    const { layers } = jobIn(clone, "osaka").result;
    const top = ({ predictions }: { predictions: { token: string }[][] }) => predictions.at(-1)?.[0]?.token;
    assert.equal(
      [top(layers[6]), top(layers[6].translated), top(layers[7])],
      [" unknown", " Japanese", " Japanese"],
    );
  },
  "docs/experiments/attention.md": (shown) => {
    assert.match(shown, /^ *baseline +0\.99\d +apple/m);
    const [, ablated] = /^ *1 +(0\.\d+) .* bread/m.exec(shown) ?? [];
    assert.ok(Number(ablated) < 0.2, `“ apple” without its induction heads: ${ablated}`);
  },
  "docs/live.md": (shown) => assert.match(shown, /"text":" unknown/),
  "docs/profiles.md": (shown) => assert.match(shown, /"text":" unknown/),
  "docs/reproduce.md": (shown, clone) => {
    assert.match(shown, "All 10 values are in range.");
    assert.ok(existsSync(join(clone, "tapline-reproduce-logit-lens-rise/index.html")));
  },
};

/** A site of a patch sweep, as far as pages speak of it. */
interface Site {
  layer: number;
  position: number;
  head?: number;
  recovery: number | null;
}
