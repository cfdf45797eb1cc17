import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { Dictionaries } from "../../src/library/index.js";
import { resolveHubPlace } from "../../src/models/hub/index.js";
import { mainCommit, TestHub } from "../models/support/hub.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { refusal as refused } from "../support/refusal.js";

const variables = ["HF_ENDPOINT", "HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "HF_HUB_OFFLINE"];
const saved = Object.fromEntries(variables.map((name) => [name, process.env[name]]));
const settings = Buffer.from(
  JSON.stringify({
    ...{ architecture: "standard", d_in: 3, d_sae: 2, dtype: "float32", normalize_activations: "none" },
    ...{ metadata: { model_name: "tiny", hook_name: "blocks.3.hook_resid_post" } },
  }),
);
const ramp = (length: number, from: number) => Float32Array.from({ length }, (_, i) => from + i / 8);
const weights = encodeSafetensors({
  W_enc: { shape: [3, 2], data: ramp(6, 0) },
  W_dec: { shape: [2, 3], data: ramp(6, 1) },
  b_enc: { shape: [2], data: ramp(2, -1) },
  b_dec: { shape: [3], data: ramp(3, 2) },
});
const params = zipOf({
  W_enc: npyFile(ramp(6, 0), [3, 2]),
  W_dec: npyFile(ramp(6, 1), [2, 3]),
  b_enc: npyFile(ramp(2, -1), [2]),
  b_dec: npyFile(ramp(3, 2), [3]),
  threshold: npyFile(ramp(2, 0), [2]),
});

let hub: TestHub;
let home: string;
let dictionaries: Dictionaries;
test.before.each(async () => {
  hub = await TestHub.open();
  home = mkdtempSync(join(tmpdir(), "tapline-hub-dictionaries-"));
  for (const name of variables) delete process.env[name];
  process.env.HF_ENDPOINT = hub.url;
  process.env.HF_HOME = home;
  dictionaries = new Dictionaries(home);
  hub.repositories["tiny/saes"] = {
    files: {
      "README.md": Buffer.from("dictionaries"),
      "layer_3/cfg.json": settings,
      "layer_3/sae_weights.safetensors": weights,
      "layer_3/sparsity.safetensors": Buffer.from("not asked for"),
      "layer_4/width_2/average_l0_1/params.npz": params,
      "layer_4/width_2/average_l0_9/params.npz": params,
      "layer_5/a.sae.pt": Buffer.from("one"),
      "layer_5/b.sae.pt": Buffer.from("another"),
    },
  };
});
test.after.each(async () => {
  await hub.close();
  rmSync(home, { recursive: true, force: true });
  for (const name of variables) {
    if (saved[name] === undefined) delete process.env[name];
    else process.env[name] = saved[name];
  }
});

const add = (place: string, claims = {}) =>
  dictionaries.add("one", place, claims, (asked, choose) => resolveHubPlace(asked, choose));

const refusal = (place: string, claims = {}) => refused(() => add(place, claims));

const asked = () => [
  ...new Set(hub.requests.flatMap(({ path }) => /\/resolve\/[^/]+\/(.+)$/.exec(path)?.[1] ?? [])),
];

test("a hub folder gives the same dictionary, downloading only its files", async () => {
  const stored = await add("tiny/saes/layer_3");
  assert.equal([stored.layer, stored.features, stored.n_embd, stored.trained_on], [3, 2, 3, "tiny"]);
  assert.is(stored.source, `tiny/saes/layer_3/sae_weights.safetensors@${mainCommit}`);
  assert.equal(asked().sort(), ["layer_3/cfg.json", "layer_3/sae_weights.safetensors"]);
  const here = join(home, "here");
  mkdirSync(here);
  writeFileSync(join(here, "cfg.json"), settings);
  writeFileSync(join(here, "sae_weights.safetensors"), weights);
  const local = await add(here);
  assert.equal([local.sha256, local.source], [stored.sha256, null]);
});

test("a cross-layer transcoder's block is downloaded with its decoders, and no other block's", async () => {
  const config = ["model_kind: cross_layer_transcoder", "feature_input_hook: hook_resid_mid"];
  const encoder = (layer: number) =>
    encodeSafetensors({
      [`W_enc_${layer}`]: { shape: [2, 3], data: ramp(6, 0) },
      [`b_enc_${layer}`]: { shape: [2], data: ramp(2, -1) },
      [`b_dec_${layer}`]: { shape: [3], data: ramp(3, 2) },
    });
  const decoder = (layer: number) =>
    encodeSafetensors({ [`W_dec_${layer}`]: { shape: [2, 3 - layer, 3], data: ramp(18 - 6 * layer, 1) } });
  hub.repositories["tiny/clt"] = {
    files: {
      "config.yaml": Buffer.from([...config, "feature_output_hook: hook_mlp_out"].join("\n")),
      ...Object.fromEntries([0, 1, 2].map((layer) => [`W_enc_${layer}.safetensors`, encoder(layer)])),
      ...Object.fromEntries([0, 1, 2].map((layer) => [`W_dec_${layer}.safetensors`, decoder(layer)])),
    },
  };
  const stored = await add("tiny/clt/W_enc_1.safetensors");
  assert.equal([stored.layer, stored.writes_blocks, stored.features], [1, 2, 2]);
  assert.equal(asked().sort(), ["W_dec_1.safetensors", "W_enc_1.safetensors", "config.yaml"]);
  assert.match(await refusal("tiny/clt"), /^The folder has 3 dictionaries, such as /);
});

test("cached files need no hub", async () => {
  await add("tiny/saes/layer_3");
  const before = hub.requests.length;
  process.env.HF_HUB_OFFLINE = "1";
  const again = await add("tiny/saes/layer_3/");
  assert.is(again.source, `tiny/saes/layer_3/sae_weights.safetensors@${mainCommit}`);
  assert.is(
    await refusal("tiny/saes/layer_4/width_2/average_l0_1"),
    "HF_HUB_OFFLINE is set, but layer_4/width_2/average_l0_1 of tiny/saes at main is not in the cache.",
  );
  assert.is(hub.requests.length, before);
});

test("a file of weights is named by its path in the repository", async () => {
  const stored = await add("tiny/saes/layer_4/width_2/average_l0_9/params.npz", { layer: 4 });
  assert.equal([stored.layout, stored.activation, stored.layer], ["Gemma Scope", "jumprelu", 4]);
  assert.equal(asked(), ["layer_4/width_2/average_l0_9/params.npz"]);
});

test("Gemma Scope repositories are recognised by name as MLP, transcoders or unsupported", async () => {
  const file = "layer_3/width_16k/average_l0_1/params.npz";
  const name = "google/gemma-scope-2b-pt-mlp";
  hub.repositories[name] = { files: { [file]: params } };
  const stored = await add(`${name}/${file}`, { layer: 3 });
  assert.equal([stored.layer, stored.point], [3, "ffn_out"]);
  assert.is(
    await refusal(`${name}/${file}`, { layer: 3, point: "block_out" }),
    "According to its publisher it reads ffn_out, not block_out.",
  );
  const transcoders = "google/gemma-scope-2b-pt-transcoders";
  hub.repositories[transcoders] = { files: { [file]: params } };
  const transcoder = await add(`${transcoders}/${file}`);
  assert.equal(
    [transcoder.layer, transcoder.point, transcoder.row_scaling, transcoder.writes, transcoder.hook],
    [3, "mid", "constant_norm", "ffn_out", "blocks.3.ln2.hook_normalized"],
  );
  // Without a layer in its path, the hooks name no block.
  hub.repositories["google/gemma-scope-9b-pt-transcoders"] = { files: { "some/params.npz": params } };
  const unnumbered = await add("google/gemma-scope-9b-pt-transcoders/some", { layer: 4 });
  assert.equal(
    [unnumbered.layer, unnumbered.hook, unnumbered.hook_out],
    [4, "ln2.hook_normalized", "hook_mlp_out"],
  );
  const before = asked().length;
  assert.is(
    await refusal("google/gemma-scope-2b-pt-att/layer_3/width_16k/average_l0_1"),
    "google/gemma-scope-2b-pt-att has dictionaries of att, judging by its name; those of block outputs (-res), MLP outputs (-mlp) and transcoders are supported.",
  );
  assert.is(asked().length, before);
});

test("zero or several dictionaries are refused with a list of the contents", async () => {
  assert.is(
    await refusal("tiny/saes/layer_4"),
    "No dictionary at layer_4; the repository has 2: layer_4/width_2/average_l0_1, layer_4/width_2/average_l0_9.",
  );
  assert.is(
    await refusal("tiny/saes"),
    "No dictionary at the repository's root; the repository has 4: layer_3, layer_4/width_2/average_l0_1, " +
      "layer_4/width_2/average_l0_9, layer_5.",
  );
  assert.is(
    await refusal("tiny/saes/layer_5"),
    "The folder has 2 dictionaries, such as a.sae.pt, b.sae.pt; specify one.",
  );
  assert.is(await refusal("tiny/saes/../layer_3"), "No file or folder tiny/saes/../layer_3.");
  assert.match(await refusal("tiny/none/layer_3"), /tiny\/none/);
  assert.equal(asked(), []);
});

test("a folder with the weights of several layers is not guessed at", async () => {
  const here = join(home, "several");
  mkdirSync(here);
  for (const layer of [3, 5]) writeFileSync(join(here, `sae-layer-${layer}.safetensors`), "x");
  assert.is(
    await refusal(here),
    "The folder has 2 dictionaries, such as sae-layer-3.safetensors, sae-layer-5.safetensors; specify one.",
  );
});

test.run();
