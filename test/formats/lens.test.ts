/** Which lens a folder holds, and what is none: files in memory, two blocks of two values. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { FormatError } from "../../src/formats/format-error.js";
import { lensFiles, readLens } from "../../src/formats/lens.js";
import { type Arrays, folder } from "../support/layout-folder.js";
import { refusalBy } from "../support/refusal.js";
import { saying } from "../support/saying.js";

const matrix = (from: number, width = 2): Arrays[string] => [
  [width, width],
  Array.from({ length: width * width }, (_, i) => from + i),
];
const jacobian: Arrays = { "J.10": matrix(1), "J.2": matrix(5) };
const tuned: Arrays = {
  "2.weight": matrix(20),
  "2.bias": [[2], [8, 9]],
  "1.weight": matrix(10),
  "0.weight": matrix(0),
};

const lens = (weights: Arrays, config?: unknown, metadata: Record<string, string> = {}) =>
  readLens(folder(config === undefined ? {} : { "config.json": config }, { w: weights }, metadata), "w");

const refusal = refusalBy(FormatError);

test("the files of one lens among those of a repository", () => {
  const paths = [
    "README.md",
    "a/x_jacobian_lens.pt",
    "b/params.pt",
    "b/config.json",
    "c/jacobian_lens_1.pt",
    "c/params.pt",
  ];
  assert.equal(lensFiles(paths, "a"), ["a/x_jacobian_lens.pt"]);
  assert.equal(lensFiles(paths, "b"), ["b/config.json", "b/params.pt"]);
  assert.equal(lensFiles(paths, "c/params.pt"), ["c/config.json", "c/params.pt"]);
  assert.equal(lensFiles(paths, "README.md"), ["README.md"], "a file that is named");
  assert.equal(lensFiles(["params.pt", "x.pt"], ""), ["config.json", "params.pt"]);
  const says = (among: string[], at: string, message: string) =>
    assert.throws(() => lensFiles(among, at), saying(message));
  says(paths, "c", "There are 2 lenses at c; specify one: c/jacobian_lens_1.pt, c/params.pt.");
  says(
    paths,
    "",
    "There are 4 lenses at the root; specify one: a/x_jacobian_lens.pt, b/params.pt, c/jacobian_lens_1.pt, c/params.pt.",
  );
  says(
    paths,
    "d",
    "No lens at d; expected *_jacobian_lens.pt, params.pt with config.json, or a .safetensors file written by tapline.",
  );
  says([], "", "No lens at the root; expected");
  const many = Array.from({ length: 6 }, (_, i) => `${i}/params.pt`);
  says(
    many,
    "",
    "There are 6 lenses at the root; specify one: 0/params.pt, 1/params.pt, 2/params.pt, 3/params.pt, 4/params.pt.",
  );
});

test("a Jacobian lens: its blocks ascending, of block outputs of one stream", async () => {
  const { read, ...found } = await lens({ ...jacobian, d_model: [[], [2]], n_prompts: [[], [96]] });
  assert.equal(found, {
    ...{
      layout: "Jacobian lens",
      kind: "jacobian",
      hidden: 2,
      residual: false,
      layers: [2, 10],
      texts: 96,
      notes: [],
    },
  });
  assert.equal(await read(10), { matrix: Float32Array.of(1, 2, 3, 4) });
  assert.is((await lens(jacobian)).texts, undefined);
  for (const point of ["resid_post", "block_out", "layer_out", "hook_out", "layerout"]) {
    assert.is((await lens(jacobian, undefined, { "provenance.capture_point": point })).hidden, 2);
  }
  const of = (more: Arrays, metadata = {}) =>
    refusal(() => lens({ ...jacobian, ...more }, undefined, metadata));
  assert.is(
    await of({}, { "provenance.capture_point": "mlp_out" }),
    'The lens reads "mlp_out"; only block outputs are supported.',
  );
  const streams = "The lens reads one of several residual streams; only models with one are supported.";
  assert.is(await of({ "provenance.stream_index": [[], [1]] }), streams);
  assert.is(await of({}, { "provenance.stream_reduce": "mean" }), streams);
  assert.is(await of({ d_model: [[], [3]] }), "In the file d_model is 3, but its matrices are 2 wide.");
  assert.is(await of({ "J.3": [[2, 3], []] }), '"J.3" has the shape [2, 3]; expected [2, 2].');
  assert.is(await of({ "J.3": [[3, 2], []] }), '"J.3" has the shape [3, 2]; expected [2, 2].');
  const blocks = Object.fromEntries(Array.from({ length: 1025 }, (_, i) => [`J.${i}`, matrix(0)]));
  assert.is(await of(blocks), "The file has 1025 blocks; at most 1024 are supported.");
});

test("a tuned lens: translator N belongs to block N - 1, and translator 0 to none", async () => {
  const config = {
    d_model: 2,
    num_hidden_layers: 3,
    lens_type: "linear_tuned_lens",
    base_model_name_or_path: "gpt2",
  };
  const { read, ...found } = await lens(tuned, config);
  assert.equal(found, {
    ...{
      layout: "tuned lens",
      kind: "tuned",
      hidden: 2,
      residual: true,
      layers: [0, 1],
      modelLayers: 3,
      model: "gpt2",
    },
    notes: ["Its translator of the embedding was skipped, as it does not read a block output."],
  });
  assert.equal(await read(1), { matrix: Float32Array.of(20, 21, 22, 23), bias: Float32Array.of(8, 9) });
  assert.equal(await read(0), { matrix: Float32Array.of(10, 11, 12, 13) });
  const { "0.weight": _, ...without } = tuned;
  assert.equal((await lens(without, {})).notes, []);
  for (const [weights, said, message] of [
    [tuned, undefined, "A tuned lens needs a config.json next to its params.pt; there is none."],
    [tuned, [], "config.json is not a JSON object."],
    [tuned, { lens_type: "other" }, 'The lens is a "other"; only linear_tuned_lens is supported.'],
    [tuned, { d_model: 3 }, "In config.json d_model is 3, but the matrices are 2 wide."],
    [tuned, { num_hidden_layers: 2 }, "config.json lists 2 blocks, but the file has a translator 2."],
    [{ "0.weight": matrix(0) } as Arrays, {}, "The lens translates only the embedding, not block outputs."],
  ] as const) {
    assert.is(await refusal(() => lens(weights, said)), message);
  }
});

test("a lens made by tapline describes itself", async () => {
  const said = {
    ...{ kind: "regression", residual: true, model_layers: 8, trained_on: "demo", texts: 5 },
    notes: [7, "x".repeat(501), ...Array.from({ length: 20 }, () => "more")],
  };
  const own = (
    about: unknown,
    weights: Arrays = { layer_4: matrix(1), bias_4: [[2], [3, 4]], layer_1: matrix(9) },
  ) => lens(weights, undefined, { tapline: "lens", ...(about !== undefined && { lens: about as string }) });
  const { read, notes, ...found } = await own(JSON.stringify(said));
  assert.equal(found, {
    ...{
      layout: "tapline",
      kind: "regression",
      hidden: 2,
      residual: true,
      layers: [1, 4],
      modelLayers: 8,
      model: "demo",
      texts: 5,
    },
  });
  assert.equal(notes, ["7", "x".repeat(500), ...Array.from({ length: 18 }, () => "more")]);
  assert.equal(await read(4), { matrix: Float32Array.of(1, 2, 3, 4), bias: Float32Array.of(3, 4) });
  assert.equal(await read(1), { matrix: Float32Array.of(9, 10, 11, 12) });
  for (const kind of ["jacobian", "tuned"]) {
    const { residual, notes } = await own(JSON.stringify({ kind }));
    assert.equal([residual, notes], [false, []]);
  }
  const unsaid = "The file is marked as a tapline lens, but its description is invalid.";
  assert.is(await refusal(() => own(undefined)), unsaid);
  assert.is(await refusal(() => own("{")), unsaid);
  assert.is(await refusal(() => own("[]")), "the file's metadata is not a JSON object.");
  assert.is(await refusal(() => own('{"kind":"other"}')), 'The lens has the unknown kind "other".');
  assert.is(
    await refusal(() => own('{"kind":"tuned"}', {})),
    "The lens does not translate any block output.",
  );
  assert.is(
    await refusal(() => lens({ w: matrix(1) })),
    'The file is not a supported lens: it has "w"; Jacobian lenses have J by block, tuned lenses N.weight and N.bias.',
  );
  assert.match(await refusal(() => lens({})), /it has no arrays;/);
});

test.run();
