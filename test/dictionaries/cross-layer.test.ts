/** A cross-layer transcoder in circuit-tracer's layout: its files, their arrays by hand, and what is refused. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { dictionaryFiles, filesBeside } from "../../src/formats/dictionaries/choose.js";
import { rowStream } from "../../src/formats/dictionaries/row-stream.js";
import { type Arrays, folder } from "../support/layout-folder.js";
import { encoder, plain, read, refusal, three, two, wide } from "./by-hand.js";

const config = (more = "") =>
  [
    "model_kind: cross_layer_transcoder",
    'model_name: "toy"',
    `feature_input_hook: "hook_resid_mid"`,
    `feature_output_hook: "hook_mlp_out"${more}`,
  ].join("\n");
/** What two features of block 4 write into blocks 4 and 5, three values each. */
const decoder = [1, 0, 0, 0, 2, 0, 0, 0, 3, 4, 0, 0];
const encoders: Arrays = {
  W_enc_4: [wide, encoder],
  b_enc_4: [two, [0.5, -1]],
  b_dec_4: [three, [7, 8, 9]],
};
const decoders: Arrays = { W_dec_4: [[2, 2, 3], decoder] };
const of = (more: Arrays = {}, written: Arrays = decoders, described = config()) =>
  folder(
    { "config.yaml": described },
    { "W_enc_4.safetensors": { ...encoders, ...more }, "W_dec_4.safetensors": written },
  );

test("encoder, decoders by block, thresholds and points", async () => {
  const origin = {
    ...{ layer: 4, point: "mid", hook: "blocks.4.hook_resid_mid" },
    ...{ writes: "ffn_out", hookOut: "blocks.4.hook_mlp_out" },
    ...{ model: "toy", prependBos: true, zeroPositions: 1 },
  };
  const common = {
    ...{ ...plain, layout: "circuit-tracer's cross-layer transcoder", activation: "relu" },
    ...{ decoder, blocks: 2, transcoder: true, origin },
  };
  assert.equal(await read(of()), common);
  const threshold = { threshold_4: [two, [1, 2]] } as Arrays;
  assert.equal(await read(of(threshold)), { ...common, activation: "jumprelu", threshold: [1, 2] });
});

test("a decoder's numbers are checked while they are read", async () => {
  const odd = { W_dec_4: [[2, 2, 3], decoder.map((value, i) => (i === 9 ? Number.NaN : value))] } as Arrays;
  assert.is(await refusal(of({}, odd)), "The dictionary's decoder contains numbers that are not finite.");
});

test("pieces are whole rows in order, and as large as they may be", async () => {
  const asked: [number, number][] = [];
  const { pieces } = rowStream(
    5,
    3,
    async (from, end) => {
      asked.push([from, end]);
      return Float32Array.from({ length: 3 * (end - from) }, (_, i) => 3 * from + i);
    },
    7,
  );
  const found: number[] = [];
  for await (const piece of pieces()) found.push(...piece);
  assert.equal(asked, [
    [0, 2],
    [2, 4],
    [4, 5],
  ]);
  assert.equal(
    found,
    Array.from({ length: 15 }, (_, i) => i),
  );
});

test("a block's files are its settings, its decoders and its encoder", () => {
  const blocks = [0, 1, 2].flatMap((layer) => [`W_dec_${layer}.safetensors`, `W_enc_${layer}.safetensors`]);
  const names = ["README.md", "config.yaml", ...blocks];
  assert.equal(filesBeside(names, "W_enc_1.safetensors"), [
    ...["README.md", "W_dec_1.safetensors", "W_enc_1.safetensors", "config.yaml"],
  ]);
  assert.equal(dictionaryFiles(names, "W_enc_1.safetensors"), [
    ...["W_dec_1.safetensors", "config.yaml", "W_enc_1.safetensors"],
  ]);
  assert.throws(() => dictionaryFiles(names, ""), /^The folder has 3 dictionaries, such as /);
});

test("missing decoders, other shapes and other kinds are refused", async () => {
  assert.is(
    await refusal(
      folder(
        { "config.yaml": config() },
        { "W_enc_4.safetensors": encoders, "W_dec_3.safetensors": decoders },
      ),
    ),
    "There is no W_dec_4.safetensors beside W_enc_4.safetensors.",
  );
  assert.is(
    await refusal(of({}, { W_dec_4: [[2, 2, 4], []] })),
    "W_dec_4 has the shape [2, 2, 4]; expected [2, 2, 3].",
  );
  assert.is(
    await refusal(of({}, { W_dec_4: [[2, 0, 3], []] })),
    "W_dec_4 has the shape [2, 0, 3]; expected [2, blocks, 3].",
  );
  assert.match(
    await refusal(of({}, { W_dec_3: [[2, 3, 3], []] })),
    /have an array W_dec_4; this file has "W_dec_3"\.$/,
  );
  assert.is(
    await refusal(of({ threshold_4: [two, [1, -2]] })),
    "A threshold is negative, so that features would have negative activations.",
  );
  assert.is(
    await refusal(of({}, decoders, config().replace("cross_layer_transcoder", "transcoder_set"))),
    'model_kind is "transcoder_set", but the files are those of a cross_layer_transcoder.',
  );
  assert.is(
    await refusal(folder({ "config.yaml": config() }, { "layer_4.safetensors": encoders })),
    'model_kind is "cross_layer_transcoder", but the files are those of a transcoder_set.',
  );
});

test.run();
