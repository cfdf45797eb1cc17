/** The meaning of the other layouts' settings, on dictionaries of two features and three values, computed by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { dictionaryFiles, filesBeside } from "../../src/formats/dictionaries/choose.js";
import { placeOfHook, transpose } from "../../src/formats/dictionaries/dictionary.js";
import { type Arrays, folder } from "../support/layout-folder.js";
import { saying } from "../support/saying.js";
import {
  across,
  biases,
  decoder,
  encoder,
  hook,
  plain,
  read,
  refusal,
  tall,
  three,
  two,
  wide,
} from "./by-hand.js";

test("places: points of a block by TransformerLens's names, transformers' modules", () => {
  for (const [place, layer, point] of [
    [hook, 3, "block_out"],
    ["blocks.999.hook_resid_post", 999, "block_out"],
    ["blocks.1.hook_resid_pre", 0, "block_out"],
    ["blocks.12.hook_resid_pre", 11, "block_out"],
    ["blocks.0.hook_resid_pre", 0, "block_in"],
    ["blocks.2.hook_resid_mid", 2, "mid"],
    ["blocks.1.hook_attn_out", 1, "attn_out"],
    ["blocks.1.hook_mlp_out", 1, "ffn_out"],
    ["blocks.1.mlp.hook_in", 1, "ffn_in"],
    ["blocks.1.ln2.hook_out", 1, "ffn_in"],
    ["layers.5", 5, "block_out"],
    ["model.layers.5", 5, "block_out"],
    ["model.language_model.layers.0.output", 0, "block_out"],
    ["model.layers.7.post_feedforward_layernorm.output", 7, "ffn_out"],
    ["transformer.h.7", 7, "block_out"],
    ["gpt_neox.layers.2", 2, "block_out"],
    ["h.0", 0, "block_out"],
  ] as const) {
    assert.equal(placeOfHook(place), { layer, point }, place);
  }
  for (const place of [
    "blocks.1.hook_normalized",
    "blocks.1.attn.hook_z",
    "blocks.1000.hook_resid_post",
    "layers.1.mlp",
    "model.layers.1.self_attn.o_proj.input",
  ]) {
    assert.throws(
      () => placeOfHook(place),
      saying(
        `The dictionary reads "${place}"; supported are block outputs (blocks.N.hook_resid_post, layers.N) and blocks.N.hook_resid_pre, hook_resid_mid, hook_attn_out, hook_mlp_out and mlp.hook_in.`,
      ),
    );
  }
});

test("matrices larger than a tile are turned round whole", () => {
  const [rows, columns] = [130, 71];
  const turned = transpose(
    Float32Array.from({ length: rows * columns }, (_, i) => i),
    rows,
    columns,
  );
  for (let i = 0; i < turned.length; i++) {
    if (turned[i] !== (i % rows) * columns + Math.floor(i / rows))
      assert.unreachable(`at ${i}: ${turned[i]}`);
  }
});

test("Gemma Scope, the first and the second", async () => {
  const jump = { activation: "jumprelu", threshold: [1, 2], origin: { prependBos: true } };
  const threshold: Arrays = { threshold: [two, [1, 2]] };
  const first = { W_enc: [tall, across(encoder)], W_dec: [wide, decoder], ...biases, ...threshold } as Arrays;
  assert.equal(await read(folder({}, { "params.npz": first })), { ...plain, layout: "Gemma Scope", ...jump });
  const second = {
    w_enc: [tall, across(encoder)],
    w_dec: [wide, decoder],
    ...biases,
    ...threshold,
  } as Arrays;
  const of = (config?: object, more: Arrays = {}) =>
    folder({ ...(config && { "config.json": config }) }, { "params.safetensors": { ...second, ...more } });
  assert.equal(await read(of()), { ...plain, layout: "Gemma Scope 2", ...jump });
  const config = {
    architecture: "jump_relu",
    hf_hook_point_in: "model.layers.4.output",
    model_name: "gemma",
  };
  const { origin } = await read(of({ ...config, hf_hook_point_out: "model.layers.4.output" }));
  assert.equal(origin, {
    ...{ hook: "model.layers.4.output", layer: 4, point: "block_out", model: "gemma", prependBos: true },
  });
  assert.equal((await read(of(config))).origin, origin);
  assert.is(
    await refusal(of({ architecture: "relu" })),
    'The architecture "relu" is not supported in this layout; only jump_relu is.',
  );
  assert.match(
    await refusal(of({ ...config, hf_hook_point_out: "model.layers.4.mlp" })),
    /^The transcoder reads "model\.layers\.4\.output"; supported are MLP inputs: /,
  );
  assert.is(
    await refusal(of(undefined, { affine_skip_connection: [[3, 3], []] })),
    "The file has an affine_skip_connection, but config.json does not say what it reads and writes.",
  );
});

test("Llama Scope: average lengths and the decoder's go into its weights", async () => {
  const norms = { in: Math.sqrt(3) / 2, out: Math.sqrt(3) / 4 };
  const said = { hook_point_in: hook, jump_relu_threshold: 0, dataset_average_activation_norm: norms };
  const of = (more: object) =>
    folder(
      { "hyperparams.json": { ...said, ...more } },
      {
        "checkpoints/final.safetensors": {
          ...{ "encoder.weight": [wide, encoder], "encoder.bias": [two, [0.5, -1]] },
          ...{ "decoder.weight": [tall, across(decoder)], "decoder.bias": [three, [7, 8, 9]] },
        },
      },
    );
  // x is scaled by 2, y by 4: the encoder's bias halves, the decoder's rows are 5 / 2 and 1 long, its bias a quarter.
  const found = await read(of({}));
  const close = (part: string, wanted: number[]) =>
    assert.ok(
      wanted.every((value, i) => Math.abs((found[part] as number[])[i]! - value) < 1e-5),
      `${part}: ${found[part]}`,
    );
  close("encoderBias", [0.625, -0.5]);
  close("encoder", [2.5, 5, 7.5, 4, 5, 6]);
  close("decoder", [0.6, 0, 0.8, 0, 0, 1]);
  close("decoderBias", [1.75, 2, 2.25]);
  assert.equal(
    [found.activation, found.threshold, found.origin, found.notes],
    ["jumprelu", [0, 0], { hook, layer: 3, point: "block_out" }, []],
  );
  assert.equal((await read(of({ act_fn: "topk", hook_point_out: hook, jump_relu_threshold: 2 }))).notes, [
    "Trained with top-k; read with the threshold its publisher uses.",
  ]);
  const lengthless = "dataset_average_activation_norm in hyperparams.json must have positive `in` and `out`.";
  for (const [more, message] of [
    [{ hook_point_in: undefined }, "hyperparams.json lacks hook_point_in."],
    [
      { hook_point_out: "blocks.3.hook_mlp_out" },
      `The transcoder reads "${hook}"; supported are MLP inputs: blocks.N.mlp.hook_in, ln2.hook_out, ln2.hook_normalized and hook_mlp_in, and layers.N.pre_feedforward_layernorm.`,
    ],
    [{ act_fn: "relu" }, 'act_fn is "relu"; this layout supports jumprelu, and topk converted to it.'],
    [{ jump_relu_threshold: -1 }, "jump_relu_threshold is -1; it must be a number of at least 0."],
    [
      { jump_relu_threshold: undefined },
      "jump_relu_threshold is missing; it must be a number of at least 0.",
    ],
    [{ dataset_average_activation_norm: undefined }, "dataset_average_activation_norm is not a JSON object."],
    ...[{ in: 0, out: 1 }, { in: 1, out: 0 }, { in: 1 }, { out: 1 }].map(
      (each) => [{ dataset_average_activation_norm: each }, lengthless] as const,
    ),
  ] as const) {
    assert.is(await refusal(of(more)), message);
  }
});

test("sparsify: the k largest, 32 by default", async () => {
  const of = (settings: object, more: Arrays = {}) =>
    folder(
      { "cfg.json": settings },
      {
        "sae.safetensors": {
          ...{ "encoder.weight": [wide, encoder], "encoder.bias": [two, [0.5, -1]], W_dec: [wide, decoder] },
          ...{ b_dec: [three, [7, 8, 9]], ...more },
        },
      },
    );
  assert.equal(await read(of({ k: 2, activation: "topk", transcode: false })), {
    ...{ ...plain, layout: "sparsify", activation: "topk", k: 2, subtractBias: true, origin: {} },
  });
  assert.is(await refusal(of({})), "k is 32; it must be from 1 to 2.");
  assert.is(
    await refusal(of({ k: 1, activation: "groupmax" })),
    'The activation "groupmax" is not supported in this layout; only topk is.',
  );
  const skip = [1, 2, 3, 4, 5, 6, 7, 8, 9];
  const transcoder = { ...{ ...plain, layout: "sparsify", activation: "topk", k: 1 }, transcoder: true };
  const origin = { point: "ffn_in", writes: "ffn_out" };
  assert.equal(await read(of({ k: 1, transcode: true })), { ...transcoder, origin });
  assert.equal(await read(of({ k: 1, transcode: true }, { W_skip: [[3, 3], skip] })), {
    ...{ ...transcoder, origin, skip },
  });
  assert.is(
    await refusal(of({ k: 1 }, { W_skip: [[3, 3], skip] })),
    "The dictionary has a skip connection, but cfg.json does not say that it transcodes.",
  );
});

test("the Lab's own layout: mean and scale of its rows are folded into its weights", async () => {
  const arrays: Arrays = {
    ...{ "encoder.weight": [wide, encoder], "encoder.bias": [two, [0.5, -1]] },
    ...{
      "decoder.weight": [tall, across(decoder)],
      "decoder.bias": [three, [7, 8, 9]],
      threshold: [two, [3, 4]],
    },
  };
  const scaling = (scale: number): Arrays => ({ mean: [three, [1, 0, 10]], scale: [[1], [scale]] });
  const of = (
    metadata: Record<string, string>,
    more: Record<string, Arrays> = { "sae-normalization-5.npz": scaling(2) },
  ) => folder({}, { "sae-layer-5.safetensors": arrays, ...more }, metadata);
  // Rows of the encoder halve; its bias loses their products with the mean; the decoder's double.
  assert.equal(await read(of({})), {
    ...{ ...plain, layout: "tapline's Lab", activation: "relu", origin: { point: "block_out" } },
    ...{ encoder: [0.5, 1, 1.5, 2, 2.5, 3], encoderBias: [0.5 - 15.5, -1 - 32] },
    ...{ decoder: [6, 0, 8, 0, 0, 4], decoderBias: [15, 16, 28] },
  });
  const said = await read(of({ layer: "5", point: "mid", model: "demo", architecture: "topk", k: "2" }));
  assert.equal(
    [said.activation, said.k, said.origin],
    ["topk", 2, { layer: 5, point: "mid", model: "demo" }],
  );
  assert.equal((await read(of({ layer: "x" }))).origin, { point: "block_out" });
  assert.equal((await read(of({ first_position: "2" }))).origin, { point: "block_out", zeroPositions: 2 });
  for (const first_position of ["0", "x", "1.5"])
    assert.equal((await read(of({ first_position }))).origin, { point: "block_out" }, first_position);
  for (const architecture of ["batchtopk", "jumprelu"]) {
    const { activation, threshold, k } = await read(of({ architecture }));
    assert.equal([activation, threshold, k], ["jumprelu", [3, 4], 0]);
  }
  // A transcoder writes rows of another mean and scale; its skip term takes the first out and gives the second.
  const target: Arrays = { target_mean: [three, [100, 0, -1]], target_scale: [[1], [4]] };
  const transcoder = (metadata: Record<string, string>, more: Arrays = {}) =>
    folder(
      {},
      {
        "sae-layer-5.safetensors": { ...arrays, ...more },
        "sae-normalization-5.npz": { ...scaling(2), ...target },
      },
      metadata,
    );
  const written = { point: "ffn_in", target: "ffn_out", layer: "5" };
  const common = {
    ...{ ...plain, layout: "tapline's Lab", activation: "relu", transcoder: true },
    origin: { layer: 5, point: "ffn_in", writes: "ffn_out" },
    ...{ encoder: [0.5, 1, 1.5, 2, 2.5, 3], encoderBias: [0.5 - 15.5, -1 - 32] },
    decoder: [12, 0, 16, 0, 0, 8],
  };
  assert.equal(await read(transcoder(written)), { ...common, decoderBias: [128, 32, 35] });
  const skip = [...[1, 2, 3], ...[4, 5, 6], ...[7, 8, 9]];
  // Times 4 / 2, and its product with the mean, 2 (31, 64, 97), leaves the bias.
  assert.equal(await read(transcoder(written, { "skip.weight": [[3, 3], skip] })), {
    ...{ ...common, skip: skip.map((value) => 2 * value) },
    decoderBias: [128 - 62, 32 - 128, 35 - 194],
  });
  for (const [files, message] of [
    [
      transcoder({ layer: "5" }, { "skip.weight": [[3, 3], skip] }),
      "The file has a skip term, but does not record what it predicts.",
    ],
    [
      of(written),
      'Dictionaries of the layout the Lab\'s normalisation have an array target_mean; this file has "mean", "scale".',
    ],
    [
      of({}, {}),
      "The Lab's autoencoder uses scaled activations: its sae-normalization-<layer>.npz must be in the same folder.",
    ],
    [of({}, { "sae-normalization-5.npz": scaling(0) }), "The scale of the Lab's normalisation is 0."],
    [of({ architecture: "topk" }), "k is NaN; it must be from 1 to 2."],
    [
      of({ architecture: "gated" }),
      `The architecture "gated" of the Lab's file is not supported; relu, topk, batchtopk and jumprelu are.`,
    ],
  ] as const) {
    assert.is(await refusal(files), message);
  }
});

test("dictionary_learning: classes and hook points match its own loader", async () => {
  const linear: Arrays = {
    ...{ "encoder.weight": [wide, encoder], "encoder.bias": [two, [0.5, -1]] },
    "decoder.weight": [tall, across(decoder)],
  };
  const square: Arrays = { W_enc: [tall, across(encoder)], W_dec: [wide, decoder], ...biases };
  const bias = (name: string): Arrays => ({ [name]: [three, [7, 8, 9]] });
  const of = (trainer: object, arrays: Arrays) => folder({ "config.json": { trainer } }, { "ae.pt": arrays });
  const layout = { layout: "dictionary_learning", origin: {} };
  const { encoder: longer } = await read(of({}, { ...linear, ...bias("bias") }));
  assert.equal(longer, [5, 10, 15, 8, 10, 12], "the first class makes decoder rows unit ones");
  assert.equal(await read(of({ dict_class: "AutoEncoderNew" }, { ...linear, ...bias("decoder.bias") })), {
    ...{ ...plain, ...layout, activation: "relu" },
  });
  const topk = { ...linear, ...bias("b_dec") };
  const kept = { ...plain, ...layout, activation: "topk", subtractBias: true };
  assert.equal(await read(of({ dict_class: "AutoEncoderTopK", k: 2 }, topk)), { ...kept, k: 2 });
  assert.equal(await read(of({ dict_class: "AutoEncoderTopK" }, { ...topk, k: [[], [1]] })), {
    ...kept,
    k: 1,
  });
  assert.match(await refusal(of({ dict_class: "AutoEncoderTopK" }, topk)), /no file records k\.$/);
  const jump = { ...plain, ...layout, activation: "jumprelu", subtractBias: true };
  for (const [dict_class, arrays] of [
    ["BatchTopKSAE", topk],
    ["MatryoshkaBatchTopKSAE", square],
  ] as const) {
    const threshold = (value: number): Arrays => ({ ...arrays, threshold: [[], [value]] });
    for (const value of [0, 1.5]) {
      assert.equal(await read(of({ dict_class }, threshold(value))), { ...jump, threshold: [value, value] });
    }
    assert.is(
      await refusal(of({ dict_class }, threshold(-1))),
      "The threshold is -1: training never set it, so no feature can be read.",
    );
  }
  const own: Arrays = { ...square, threshold: [two, [1, 2]] };
  for (const apply of [undefined, false, true]) {
    const trainer = { dict_class: "JumpReluAutoEncoder", apply_b_dec_to_input: apply };
    assert.equal(await read(of(trainer, own)), { ...jump, threshold: [1, 2], subtractBias: apply === true });
  }
  const gated: Arrays = {
    ...linear,
    gate_bias: [two, [0.5, -1]],
    ...bias("decoder_bias"),
    r_mag: [two, [0, 0]],
    mag_bias: [two, [5, 6]],
  };
  assert.equal(await read(of({ dict_class: "GatedAutoEncoder" }, gated)), {
    ...{ ...plain, ...layout, activation: "gated", subtractBias: true, gain: [1, 1], magnitudeBias: [5, 6] },
  });
  assert.is(
    await refusal(of({ dict_class: "Other" }, {})),
    'The class "Other" of dictionary_learning is not supported.',
  );
  assert.is(
    await refusal(folder({ "config.json": {} }, { "ae.pt": {} })),
    "trainer in config.json is not a JSON object.",
  );
  for (const [said, origin] of [
    [
      { layer: 4, lm_name: "pythia" },
      { layer: 4, model: "pythia" },
    ],
    [
      { layer: 4, submodule_name: "resid_post_layer_4" },
      { layer: 4, point: "block_out" },
    ],
    [
      { layer: 9, submodule_name: "gpt_neox.layers.4" },
      { hook: "gpt_neox.layers.4", layer: 4, point: "block_out" },
    ],
  ]) {
    const trainer = { dict_class: "AutoEncoderNew", ...said };
    assert.equal((await read(of(trainer, { ...linear, ...bias("decoder.bias") }))).origin, origin);
  }
  assert.match(
    await refusal(of({ submodule_name: "mlp_layer_3" }, { ...linear, ...bias("bias") })),
    /The dictionary reads "mlp_layer_3"; supported are block outputs/,
  );
});

test("checkpoints alone: Qwen-Scope's and Goodfire's", async () => {
  const qwen: Arrays = { W_enc: [wide, encoder], W_dec: [tall, across(decoder)], ...biases };
  assert.equal(await read(folder({}, { "layer3.sae.pt": qwen }), 2), {
    ...{ ...plain, layout: "Qwen-Scope", activation: "topk_raw", k: 2, origin: {} },
  });
  assert.match(await refusal(folder({}, { "layer3.sae.pt": qwen })), /no file records k\.$/);
  const goodfire: Arrays = {
    ...{ "encoder_linear.weight": [wide, encoder], "encoder_linear.bias": [two, [0.5, -1]] },
    ...{ "decoder_linear.weight": [tall, across(decoder)], "decoder_linear.bias": [three, [7, 8, 9]] },
  };
  assert.equal(await read(folder({}, { "x.pth": goodfire })), {
    ...{ ...plain, layout: "Goodfire", activation: "relu", origin: {} },
  });
});

test("the files of one dictionary among those of a repository", () => {
  const paths = [
    ...["README.md", "a/cfg.json", "a/sae_weights.safetensors", "a/sparsity.safetensors"],
    ...["b/hyperparams.json", "b/checkpoints/final.safetensors", "c/x.pt", "c/y.pt", "c/config.json"],
    ...["d/sae-layer-2.safetensors", "d/sae-normalization-2.npz", "params.npz", "a/deep/er/params.npz"],
  ];
  const of = (at: string) => dictionaryFiles(paths, at);
  assert.equal(of("a"), ["a/cfg.json", "a/sae_weights.safetensors"]);
  assert.equal(of("b"), ["b/hyperparams.json", "b/checkpoints/final.safetensors"]);
  assert.equal(of("b/checkpoints/final.safetensors"), [
    "b/hyperparams.json",
    "b/checkpoints/final.safetensors",
  ]);
  assert.equal(of("c/y.pt"), ["c/config.json", "c/y.pt"]);
  assert.equal(of("d"), ["d/sae-normalization-2.npz", "d/sae-layer-2.safetensors"]);
  assert.equal(of("d/sae-layer-2.safetensors"), ["d/sae-normalization-2.npz", "d/sae-layer-2.safetensors"]);
  assert.equal(of(""), ["params.npz"]);
  assert.equal(of("params.npz"), ["params.npz"]);
  const says = (at: string, message: string, among = paths) =>
    assert.throws(() => dictionaryFiles(among, at), saying(message));
  says("c", "The folder has 2 dictionaries, such as x.pt, y.pt; specify one.");
  says("a/deep", "No dictionary at a/deep; the repository has 1: a/deep/er.");
  says("e", "No dictionary at e; the repository has 6: the root, a, b, c, d and 1 more.");
  const five = paths.filter((path) => path !== "params.npz");
  says("e", "No dictionary at e; the repository has 5: a, b, c, d, a/deep/er.", five);
  says("", "The repository has no dictionary in a supported layout.", ["README.md"]);
  const many = Array.from({ length: 6 }, (_, i) => `${i}.pt`);
  says("", "The folder has 6 dictionaries, such as 0.pt, 1.pt, 2.pt, 3.pt, 4.pt; specify one.", many);
  assert.equal(filesBeside(["z.pt", "config.json", "b.pt", "sae-normalization-1.npz", "notes"], "z.pt"), [
    ...["config.json", "notes", "sae-normalization-1.npz", "z.pt"],
  ]);
});

test("a folder in an unknown layout lists the supported ones", async () => {
  const said = await refusal(folder({ "other.json": {} }, {}));
  assert.match(
    said,
    /^No supported layout matches the files "other\.json"; supported are SAELens \(cfg\.json, sae_weights/,
  );
  assert.match(
    await refusal(folder({}, {})),
    /^No supported layout matches the files \(none\); supported are/,
  );
  // Weights without settings are refused.
  for (const name of ["sae_weights.safetensors", "sae.safetensors", "final.safetensors"]) {
    assert.match(
      await refusal(folder({}, { [name]: {} })),
      new RegExp(`^No supported layout matches the files "${name}"; supported are`),
    );
  }
});

test.run();
