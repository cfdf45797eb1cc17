/** A cross-layer transcoder of Gemma Scope 2: its arrays by hand, and what is refused. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { dictionaryFiles, filesBeside } from "../../src/formats/dictionaries/choose.js";
import { type Arrays, folder } from "../support/layout-folder.js";
import { across, encoder, plain, read, refusal, tall, three, two } from "./by-hand.js";

/** What two features of block 1 write into blocks 0 to 2 of three, three values each: nothing into block 0. */
const written = [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 3, 4, 0, 0];
const arrays: Arrays = {
  w_enc: [tall, across(encoder)],
  b_enc: [two, [0.5, -1]],
  b_dec: [three, [7, 8, 9]],
  threshold: [two, [1, 2]],
  w_dec: [[2, 3, 3], written],
};
const config = { architecture: "jump_relu", model_name: "google/gemma-3-270m-it" };
const of = (more: Arrays = {}, settings: object | null = config, layer = 1) =>
  folder(settings === null ? {} : { "config.json": settings }, {
    [`params_layer_${layer}.safetensors`]: { ...arrays, ...more },
  });

test("encoder, thresholds, decoders from the own block on, and points", async () => {
  const origin = {
    ...{ layer: 1, point: "ffn_in", hook: "model.layers.1.pre_feedforward_layernorm.output" },
    ...{ writes: "ffn_out", hookOut: "model.layers.1.post_feedforward_layernorm.output" },
    ...{ model: "google/gemma-3-270m-it", prependBos: true, zeroPositions: 4 },
  };
  const expected = {
    ...{ ...plain, layout: "Gemma Scope 2's cross-layer transcoder", activation: "jumprelu" },
    decoder: [1, 0, 0, 0, 2, 0, 0, 0, 3, 4, 0, 0],
    ...{ blocks: 2, threshold: [1, 2], transcoder: true, origin },
  };
  assert.equal(await read(of()), expected);
  // Block 0 has no lower ones.
  const first = await read(of({}, config, 0));
  assert.equal([first.blocks, first.decoder], [3, written]);
  const { model: _, ...unnamed } = origin;
  const without = { ...expected, origin: { ...unnamed, zeroPositions: 1 } };
  assert.equal(await read(of({}, null)), without);
});

test("the affine connection is applied to the input from the left", async () => {
  const affine: Arrays = {
    affine_skip_connection: [
      [3, 3],
      [1, 2, 3, 4, 5, 6, 7, 8, 9],
    ],
  };
  // Stored by input; a skip term's rows are outputs.
  assert.equal((await read(of(affine))).skip, [1, 4, 7, 2, 5, 8, 3, 6, 9]);
});

test("hooks may be recorded, per block or with a placeholder", async () => {
  const hooks = (into: unknown, out: unknown) => ({
    ...config,
    ...{ hf_hook_point_in: into, hf_hook_point_out: out },
  });
  const [into, out] = ["pre_feedforward_layernorm.output", "post_feedforward_layernorm.output"];
  const list = (name: string) => [0, 1, 2].map((layer) => `model.layers.${layer}.${name}`);
  for (const settings of [
    hooks(`model.layers.{layer}.${into}`, `model.layers.{}.${out}`),
    hooks(list(into), list(out)),
  ]) {
    const { origin } = (await read(of({}, settings))) as { origin: Record<string, unknown> };
    assert.equal([origin.layer, origin.point, origin.writes], [1, "ffn_in", "ffn_out"]);
  }
  assert.is(
    await refusal(of({}, hooks(`model.layers.2.${into}`, `model.layers.2.${out}`))),
    "According to config.json the transcoder reads block 2, but the file is that of block 1.",
  );
  assert.match(
    await refusal(of({}, hooks("model.layers.1.output", `model.layers.1.${out}`))),
    /^The transcoder reads /,
  );
});

test("other kinds of files of this name are refused", async () => {
  assert.is(
    await refusal(
      of({
        w_dec: [
          [2, 3],
          [1, 0, 0, 0, 2, 0],
        ],
      }),
    ),
    "w_dec has the shape [2, 3]; expected [2, blocks, 3] with more than 1 blocks.",
  );
  assert.is(
    await refusal(
      of({
        w_dec: [
          [2, 1, 3],
          [1, 0, 0, 0, 2, 0],
        ],
      }),
    ),
    "w_dec has the shape [2, 1, 3]; expected [2, blocks, 3] with more than 1 blocks.",
  );
  assert.is(
    await refusal(of({ w_dec: [[2, 3, 3], written.map((value, i) => (i === 10 ? 0.5 : value))] })),
    "Features of block 1 write into block 0 below it, which a cross-layer transcoder does not.",
  );
  assert.is(
    await refusal(of({}, { ...config, type: "crosscoder" })),
    'The files are those of a "crosscoder", which reads several blocks; it is not supported.',
  );
  assert.is(
    await refusal(of({}, { ...config, architecture: "topk" })),
    'The architecture "topk" is not supported in this layout; only jump_relu is.',
  );
});

test("a block's files are its settings and its weights", () => {
  const names = ["config.json", ...[0, 1, 2].map((layer) => `params_layer_${layer}.safetensors`)];
  assert.equal(filesBeside(names, "params_layer_1.safetensors"), [
    "config.json",
    "params_layer_1.safetensors",
  ]);
  const paths = names.map((name) => `clt/width_262k/${name}`);
  assert.equal(dictionaryFiles(paths, "clt/width_262k/params_layer_1.safetensors"), [
    ...["clt/width_262k/config.json", "clt/width_262k/params_layer_1.safetensors"],
  ]);
});

test.run();
