/** The meaning of SAELens's settings, on a dictionary of two features and three values. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Arrays, type Folder, folder } from "../support/layout-folder.js";
import { across, biases, decoder, encoder, hook, plain, read, refusal, tall, two, wide } from "./by-hand.js";

const saeLens = (settings: object, more: Arrays = {}) =>
  folder(
    { "cfg.json": { metadata: { hook_name: hook, sae_lens_version: "6.1.0" }, ...settings } },
    {
      "sae_weights.safetensors": {
        W_enc: [tall, across(encoder)],
        W_dec: [wide, decoder],
        ...biases,
        ...more,
      },
    },
  );
const ofSaeLens = {
  ...{ ...plain, layout: "SAELens", activation: "relu", subtractBias: true },
  origin: { hook, layer: 3, point: "block_out", prependBos: true },
};

test("SAELens: defaults and explicit settings", async () => {
  assert.equal(await read(saeLens({})), ofSaeLens);
  const metadata = { hook_name: hook, model_name: "gpt2", prepend_bos: false };
  assert.equal((await read(saeLens({ metadata }))).origin, {
    hook,
    layer: 3,
    point: "block_out",
    model: "gpt2",
    prependBos: false,
  });
  for (const [slice, zeroPositions] of [
    [[1, null], 1],
    [[4, -5], 4],
    [[0, null], undefined],
    [[null], undefined],
    [[-2, null], undefined],
    [null, undefined],
  ]) {
    const { origin } = await read(saeLens({ metadata: { ...metadata, seqpos_slice: slice } }));
    assert.is((origin as { zeroPositions?: number }).zeroPositions, zeroPositions, JSON.stringify(slice));
  }
  // Before version 6 all settings were on one level, and the hook point had another name.
  const old = { metadata: undefined, hook_point: hook, model_name: "gpt2", prepend_bos: true };
  assert.equal((await read(saeLens(old))).origin, {
    ...{ hook, layer: 3, point: "block_out", model: "gpt2", prependBos: true },
  });
  assert.is((await read(saeLens({ apply_b_dec_to_input: false }))).subtractBias, false);
  assert.is((await read(saeLens({ d_in: 3, d_out: 3 }))).hidden, 3);
  for (const [said, rowScaling] of [
    ...[
      ["none", "none"],
      ["layer_norm", "layer_norm"],
      ["constant_norm_rescale", "constant_norm"],
    ],
    ...[
      [false, "none"],
      [null, "none"],
      [undefined, "none"],
    ],
  ]) {
    assert.equal(
      await read(saeLens({ normalize_activations: said })),
      { ...ofSaeLens, rowScaling },
      String(said),
    );
  }
  for (const said of [true, "expected_average_only_in"]) {
    const { notes, rowScaling } = await read(saeLens({ normalize_activations: said }));
    assert.equal([(notes as string[]).length, rowScaling], [1, "none"]);
    assert.match((notes as string[])[0]!, /^It was trained on activations scaled to an average norm\./);
  }
});

test("SAELens: activations by their names, of version 6 and of those before", async () => {
  const of = async (settings: object, more: Arrays = {}) => {
    const { activation, k, threshold, gain, magnitudeBias, encoderBias } = await read(
      saeLens(settings, more),
    );
    return [activation, k, threshold ?? gain, magnitudeBias, ...(gain ? [encoderBias] : [])];
  };
  assert.equal(await of({ architecture: "topk", k: 2 }), ["topk", 2, undefined, undefined]);
  assert.equal(await of({ activation_fn: "topk", activation_fn_kwargs: { k: 1 } }), [
    "topk",
    1,
    undefined,
    undefined,
  ]);
  assert.equal(await of({ activation_fn_str: "topk", k: 2, activation_fn_kwargs: null }), [
    "topk",
    2,
    undefined,
    undefined,
  ]);
  assert.equal(await of({ activation_fn: "relu", activation_fn_kwargs: { k: 1 } }), [
    "relu",
    0,
    undefined,
    undefined,
  ]);
  const threshold: Arrays = { threshold: [two, [0.25, 4]] };
  const jump = ["jumprelu", 0, [0.25, 4], undefined];
  assert.equal(await of({ architecture: "jumprelu" }, threshold), jump);
  assert.equal(await of({ architecture: "jumprelu", activation_fn: "topk" }, threshold), jump);
  assert.equal(await of({ architecture: "jumprelu" }, { log_threshold: [two, [0, Math.log(2)]] }), [
    ...["jumprelu", 0, [1, 2], undefined],
  ]);
  for (const architecture of ["batchtopk", "matryoshka_batchtopk", "matryoshka"]) {
    assert.equal(await of({ architecture }, threshold), jump);
    assert.equal(await of({ architecture }, { topk_threshold: [[], [1.5]] }), [
      "jumprelu",
      0,
      [1.5, 1.5],
      undefined,
    ]);
  }
  assert.equal(
    await of(
      { architecture: "gated" },
      { b_gate: [two, [1, 2]], r_mag: [two, [0, Math.log(4)]], b_mag: [two, [5, 6]] },
    ),
    ["gated", 0, [1, 4], [5, 6], [1, 2]],
  );
});

test("SAELens: decoder norms are folded in only where activations depend on them", async () => {
  const rescaled = { architecture: "topk", k: 1, rescale_acts_by_decoder_norm: true };
  const found = await read(saeLens(rescaled));
  // The decoder's rows are 5 and 2 long.
  assert.equal(found.encoder, [5, 10, 15, 8, 10, 12]);
  assert.equal(found.encoderBias, [2.5, -2]);
  assert.equal(found.decoder, [Math.fround(3 * (1 / 5)), 0, Math.fround(4 * (1 / 5)), 0, 0, 1]);
  assert.equal((await read(saeLens({ ...rescaled, architecture: "standard" }))).encoder, encoder);
  assert.is(
    await refusal(saeLens(rescaled, { W_dec: [wide, [1, 0, 0, 0, 0, 0]] })),
    "A decoder row is zero, so its feature cannot be rescaled by its norm.",
  );
  const factors: Arrays = { scaling_factor: [two, [2, 10]] };
  const version = (sae_lens_version?: string) => ({ metadata: { hook_name: hook, sae_lens_version } });
  for (const old of [version("5.9.0"), version(), { ...version(), sae_lens_version: "3.1" }]) {
    const { decoder: scaled, notes } = await read(saeLens(old, factors));
    assert.equal([scaled, notes], [[6, 0, 8, 0, 0, 20], []]);
  }
  const left = ["The file's scaling_factor is ignored, as in SAELens 6."];
  for (const now of [version("6.0.0"), version("6"), { ...version(), sae_lens_version: "7.2" }]) {
    const { decoder: same, notes } = await read(saeLens(now, factors));
    assert.equal([same, notes], [decoder, left]);
  }
  assert.equal((await read(saeLens({}, { scaling_factor: [two, [1, 1]] }))).notes, []);
});

test("SAELens: a TopK autoencoder that names another hook as its output is a transcoder", async () => {
  const hooks = { hook_name: "blocks.3.mlp.hook_in", hook_name_out: "blocks.3.hook_mlp_out" };
  const of = (more: object, metadata: object = hooks) =>
    saeLens({ architecture: "topk", k: 1, metadata, ...more });
  assert.equal(await read(of({})), {
    ...{ ...plain, layout: "SAELens", activation: "topk", k: 1, transcoder: true },
    origin: {
      ...{ layer: 3, point: "ffn_in", writes: "ffn_out", prependBos: true },
      ...{ hook: hooks.hook_name, hookOut: hooks.hook_name_out },
    },
  });
  // Without another output, or of another architecture, it reconstructs what it reads.
  for (const hook_name_out of [undefined, "", hooks.hook_name])
    assert.is((await read(of({}, { ...hooks, hook_name_out }))).transcoder, undefined, hook_name_out);
  assert.is((await read(of({ architecture: "standard" }))).transcoder, undefined);
});

test("SAELens: unsupported settings are refused in a sentence", async () => {
  const at = '"blocks.3.hook_resid_post"';
  const metadata = (hook_name: unknown) => ({ metadata: { hook_name } });
  const topk = (k: unknown) => saeLens({ architecture: "topk", k });
  const cases: [Folder, string][] = [
    [folder({ "cfg.json": [] }, { "sae_weights.safetensors": {} }), "cfg.json is not a JSON object."],
    [folder({ "cfg.json": null }, { "sae_weights.safetensors": {} }), "cfg.json is not a JSON object."],
    [saeLens({ metadata: 7 }), "metadata is not a JSON object."],
    [saeLens({ metadata: {} }), "cfg.json lacks hook_name, the hook point."],
    [saeLens(metadata(7)), 'hook_name in the configuration is "7", not a string.'],
    [
      saeLens({ architecture: "skip_transcoder" }),
      "cfg.json lacks hook_name_out, the hook point that the transcoder writes.",
    ],
    [
      saeLens({ reshape_activations: "other" }),
      `The dictionary reads ${at} reshaped as "other"; single heads are not supported.`,
    ],
    [
      saeLens(metadata("blocks.1.attn.hook_z")),
      'The dictionary reads "blocks.1.attn.hook_z" reshaped as "hook_z"; single heads are not supported.',
    ],
    [saeLens({ d_out: 4 }), "The dictionary reads 3 values and writes 4; only equal widths are supported."],
    [saeLens({ d_out: "4" }), 'd_out in the configuration is "\\"4\\"", not a number.'],
    [
      saeLens({ architecture: "other" }),
      'The architecture "other" is not supported; standard, topk, batchtopk, matryoshka_batchtopk, jumprelu and gated are.',
    ],
    [
      saeLens({ normalize_activations: "other" }),
      'normalize_activations is "other"; none, expected_average_only_in, constant_norm_rescale and layer_norm are supported.',
    ],
    [
      saeLens({ apply_b_dec_to_input: 1 }),
      'apply_b_dec_to_input in the configuration is "1", not true or false.',
    ],
    [saeLens({ activation_fn: "tanh" }), 'The activation "tanh" is not supported; relu and topk are.'],
    [saeLens({ activation_fn_kwargs: [] }), "activation_fn_kwargs is not a JSON object."],
    [topk(undefined), "The dictionary keeps its k most active features, but no file records k."],
    [topk(0), "k is 0; it must be from 1 to 2."],
    [topk(1.5), "k is 1.5; it must be from 1 to 2."],
    [topk(3), "k is 3; it must be from 1 to 2."],
    [saeLens({}, { W_enc: [[3], [1, 2, 3]] }), "W_enc is not a matrix: its shape is [3]."],
    [saeLens({}, { W_enc: [[3, 2, 1], encoder] }), "W_enc is not a matrix: its shape is [3, 2, 1]."],
    [saeLens({}, { W_enc: [[0, 2], []] }), "W_enc is not a matrix: its shape is [0, 2]."],
    [saeLens({}, { W_enc: [[3, 0], []] }), "W_enc is not a matrix: its shape is [3, 0]."],
    [saeLens({}, { W_dec: [tall, decoder] }), "W_dec has the shape [3, 2]; expected [2, 3]."],
    [
      saeLens(
        {},
        {
          b_enc: [
            [2, 1],
            [1, 2],
          ],
        },
      ),
      "b_enc has the shape [2, 1]; expected [2].",
    ],
    [
      saeLens({ architecture: "batchtopk" }, { topk_threshold: [two, [1, 2]] }),
      "topk_threshold has the shape [2]; expected a single number.",
    ],
    [
      saeLens({ architecture: "jumprelu" }),
      'Dictionaries of the layout SAELens have an array log_threshold; this file has "W_enc", "W_dec", "b_enc", "b_dec".',
    ],
  ];
  for (const [files, message] of cases) assert.is(await refusal(files), message);
});

test("numbers that are not finite, in any of a dictionary's parts", async () => {
  const gated: Arrays = { b_gate: [two, [1, 2]], r_mag: [two, [0, 0]], b_mag: [two, [5, 6]] };
  const spoilt = (name: string, more: Arrays = {}, settings: object = {}) => {
    const files = saeLens(settings, more);
    return refusal({
      ...files,
      tensors: async (weights: string) => {
        const source = await files.tensors(weights);
        const put = (numbers: Float32Array) => numbers.fill(Number.NaN, numbers.length - 1);
        return {
          ...source,
          read: async (each: string) => (each === name ? put(await source.read(each)) : source.read(each)),
        };
      },
    });
  };
  const says = (part: string) => `The dictionary's ${part} contains numbers that are not finite.`;
  const jump = [{ threshold: [two, [1, 1]] } as Arrays, { architecture: "jumprelu" }] as const;
  assert.is(await spoilt("W_enc"), says("encoder"));
  assert.is(await spoilt("b_enc"), says("encoderBias"));
  assert.is(await spoilt("W_dec"), says("decoder"));
  assert.is(await spoilt("b_dec"), says("decoderBias"));
  assert.is(await spoilt("threshold", ...jump), says("threshold"));
  assert.is(await spoilt("r_mag", gated, { architecture: "gated" }), says("gain"));
  assert.is(await spoilt("b_mag", gated, { architecture: "gated" }), says("magnitudeBias"));
});

test.run();
