/** Dictionaries and lenses that this machine keeps: added, listed, shown and forgotten. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { picture } from "../../src/cli/commands/lens.js";
import type { StoredDictionary, StoredLens } from "../../src/contracts/library.js";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { command } from "./in-process.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-kept-"));
const before = process.env.TAPLINE_HOME;
process.env.TAPLINE_HOME = join(folder, "home");
test.after(() => {
  if (before === undefined) delete process.env.TAPLINE_HOME;
  else process.env.TAPLINE_HOME = before;
  rmSync(folder, { recursive: true, force: true });
});

async function said(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await command(words);
  assert.equal([code, stderr], [0, ""], words.join(" "));
  return stdout;
}

const numbers = (...shape: [number, number?]) => ({
  shape: shape as number[],
  data: new Float32Array(shape[0] * (shape[1] ?? 1)).fill(0.1),
});

test("a dictionary is added with given settings, listed, shown and deleted", async () => {
  const tensors = { W_enc: numbers(4, 3), W_dec: numbers(3, 4), b_enc: numbers(3), b_dec: numbers(4) };
  writeFileSync(join(folder, "sae_weights.safetensors"), encodeSafetensors(tensors));
  writeFileSync(
    join(folder, "cfg.json"),
    JSON.stringify({
      architecture: "topk",
      k: 2,
      metadata: { hook_name: "blocks.5.hook_mlp_out", model_name: "small" },
    }),
  );
  assert.is(
    await said("dictionary", "list"),
    "No dictionaries saved yet. Save one with tapline dictionary add.\n",
  );
  const shown = await said("dictionary", "add", "three", folder);
  const stored = JSON.parse(await said("dictionary", "show", "three", "--json")) as StoredDictionary;
  const [head, what, reads] = shown.split("\n");
  assert.is(head, `three  ${stored.sha256.slice(0, 16)}`);
  assert.is(what, `3 features of 4 values, ${stored.activation} (k = 2), from ${stored.layout}`);
  assert.is(reads, "reads ffn_out of block 5 (blocks.5.hook_mlp_out) of small");
  assert.is(await said("dictionary", "show", "three"), shown);
  assert.is(
    await said("dictionary", "list"),
    `three                    ffn_out of block 5, 3 features, width 4, ${stored.activation} (${stored.layout})\n`,
  );
  assert.equal(JSON.parse(await said("dictionary", "list", "--json")), { dictionaries: [stored] });
  await said("dictionary", "add", "other", folder);
  assert.is(await said("dictionary", "rm", "three"), "Deleted three.\n");
  assert.equal(JSON.parse(await said("dictionary", "rm", "other", "--json")), { deleted: true });
  for (const [words, code, sentence] of [
    [["rm", "three"], 2, "There is no dictionary named three."],
    [
      ["add", "a b", folder],
      2,
      'A name must consist of up to 64 letters, digits, dots or dashes, got "a b".',
    ],
    [
      ["add", "a".repeat(65), folder],
      2,
      "A name must consist of up to 64 letters, digits, dots or dashes, got",
    ],
    [["add", "x", folder, "--layer", "256"], 2, "It must be a whole number between 0 and 255."],
    [["add", "x", folder, "--k", "0"], 2, "It must be a whole number between 1 and 67108863."],
    [["show", "three"], 1, "three"],
  ] as const) {
    const ran = await command(["dictionary", ...words]);
    assert.is(ran.code, code, ran.stderr);
    assert.match(ran.stderr, sentence);
  }
});

const lens: StoredLens = {
  ...{ name: "l", sha256: "0123456789abcdef".repeat(4), layout: "jlens", kind: "jacobian", n_embd: 128 },
  ...{ model_layers: 8, layers: [0, 1, 2], residual: false, trained_on: "demo", texts: 40 },
  ...{ notes: ["A note."], source: "owner/name/x@main", bytes: 1, created: 1 },
  fit: [{ layer: 2, divergence: 0.12345, plain_divergence: 2 }],
};

test("a lens: what it computes, which blocks it translates, and how well", () => {
  assert.is(
    picture(lens),
    `l  0123456789abcdef
jacobian lens, J h, of 128 values, from jlens
reads the output of block 0-2 of demo, fitted on 40 texts
KL to the model's output on held-out tokens:
       block        lens  logit lens
           2       0.123       2.000
from owner/name/x@main
A note.`,
  );
  const bare = {
    ...lens,
    kind: "tuned",
    trained_on: null,
    texts: null,
    fit: null,
    source: null,
    notes: [],
  } as StoredLens;
  const [, formula, blocks, ...rest] = picture({ ...bare, residual: true, layers: [1, 3, 4] }).split("\n");
  assert.is(formula, "tuned lens, h + W h + b, of 128 values, from jlens");
  assert.equal([blocks, rest], ["reads the output of block 1, 3, 4", []]);
  assert.match(picture(bare), "tuned lens, W h + b,");
  assert.match(picture({ ...bare, layers: [4, 5] }), /block 4, 5$/);
  assert.match(picture({ ...bare, layers: [4] }), /block 4$/);
});

test("the embedded model's lens is added by its name", async () => {
  const shown = await said("lens", "add", "demo", "demo");
  assert.match(shown, /^jacobian lens, J h, of 128 values/m);
  assert.match(await said("lens", "list"), /^demo {21}jacobian, blocks 0-6, width 128 \(/);
  assert.is(await said("lens", "show", "demo"), shown);
  assert.is(await said("lens", "rm", "demo"), "Deleted demo.\n");
  assert.is(await said("lens", "list"), "No lenses saved yet. Save one with tapline lens add.\n");
  const without = await command(["lens", "fit", "x"]);
  assert.equal([without.code, without.stdout], [2, ""]);
});

test.run();
