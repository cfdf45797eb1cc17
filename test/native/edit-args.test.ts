/** Edits and live plans as the addon reads them: every form by hand, and each refusal. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Edit, endOfText, nativeEdits, nativePositions } from "../../src/native/edit.js";
import { NativeError } from "../../src/native/index.js";
import { type LivePlan, nativeLivePlan } from "../../src/native/live.js";
import { SerialQueue } from "../../src/native/serial.js";

const refusal = (run: () => unknown, code = "INVALID_ARGUMENT"): string => {
  try {
    run();
  } catch (error) {
    assert.instance(error, NativeError, String(error));
    assert.is((error as NativeError).code, code);
    return (error as Error).message;
  }
  return "taken";
};

const all = { prompt: true, generated: true };
const last = { ...all, ranges: Int32Array.of(-1, 2_147_483_647) };
const usual = {
  ...{ point: "block_out", heads: undefined, kind: "affine", unit: "vector", scale: 1, strength: 1 },
  ...{ vector: undefined, feature: undefined, positions: last },
  ...{ min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY },
};
const vector = Float32Array.of(1, 2);
const feature = { dictionary: {} as never, index: 3 };

test("edit defaults: the last row of the block output, strength 1, no bounds", () => {
  assert.equal(nativeEdits(undefined, 2), []);
  assert.equal(nativeEdits([{ layer: 3 }], 2), [{ ...usual, layer: 3 }]);
  const written: Edit[] = [
    { layer: -1, scale: 0, strength: -2.5, vector, unit: "row_norm" },
    { layer: 0, kind: "clamp", min: -1, max: -1, vector, unit: "unit", positions: "all" },
    { layer: 0, kind: "project_out", vector, positions: "generated" },
    { layer: 0, kind: "hold", vector, feature, max: 4, positions: "prompt" },
    { layer: 1, point: "head_out", heads: [0, 2], vector: Float32Array.of(1, 2, 3) },
    {
      layer: 1,
      point: "mid",
      vector,
      positions: [
        [0, -1],
        [-3, 7],
        [-2_147_483_647, 2_147_483_647],
      ],
    },
  ];
  assert.equal(nativeEdits(written, 2), [
    { ...usual, layer: -1, scale: 0, strength: -2.5, vector, unit: "row_norm" },
    { ...usual, layer: 0, kind: "clamp", min: -1, max: -1, vector, unit: "unit", positions: all },
    { ...usual, layer: 0, kind: "project_out", vector, positions: { prompt: false, generated: true } },
    {
      ...{ ...usual, layer: 0, kind: "hold", vector, feature, max: 4 },
      positions: { prompt: true, generated: false },
    },
    { ...usual, layer: 1, point: "head_out", heads: [0, 2], vector: Float32Array.of(1, 2, 3) },
    {
      ...{ ...usual, layer: 1, point: "mid", vector },
      positions: { ...all, ranges: Int32Array.of(0, -1, -3, 7, -2_147_483_647, 2_147_483_647) },
    },
  ]);
  assert.equal([endOfText, nativeEdits([{ layer: 2_147_483_647 }], 2).length], [2_147_483_647, 1]);
});

test("an invalid edit is refused with its fault", () => {
  const says = (edit: unknown, live = false) => refusal(() => nativeEdits([edit as Edit], 2, live));
  assert.is(
    refusal(() => nativeEdits({} as never, 2)),
    "Edits must be an array.",
  );
  for (const [edit, sentence] of [
    [null, "An edit must be an object."],
    ["x", "An edit must be an object."],
    [{ layer: 0, sort: 1 }, 'An edit has no field "sort".'],
    [{}, "An edit's layer must be an index, got undefined."],
    [{ layer: 2 ** 31 }, "An edit's layer must be an index, got 2147483648."],
    [{ layer: {} }, "An edit's layer must be an index, got object."],
    [
      { layer: 0, point: "x" },
      'A point must be block_in, attention, head_out, attn_out, mid, ffn_in, router, ffn_out, block_out, got "x".',
    ],
    [
      { layer: 0, point: "head_out", heads: [0, -1] },
      "An edit's head must be an integer from 0 to 2147483647, got -1.",
    ],
    [{ layer: 0, point: "head_out", heads: 1 }, "An edit's heads must be a list of indices."],
    [{ layer: 0, point: "head_out", heads: [] }, "An edit's heads must be a list of indices."],
    [{ layer: 0, heads: [0] }, "Heads are only possible at head_out."],
    [{ layer: 0, kind: "x" }, 'An edit\'s kind must be affine, project_out, clamp, hold, got "x".'],
    [{ layer: 0, unit: "x" }, 'An edit\'s unit must be unit, vector, row_norm, got "x".'],
    [{ layer: 0, kind: "clamp" }, "An edit of the kind clamp needs a vector."],
    [{ layer: 0, vector: [1, 2] }, "An edit's vector must be a Float32Array."],
    [{ layer: 0, vector: new Float32Array(3) }, "An edit's vector has 3 values; the hidden size is 2."],
    [{ layer: 0, vector: new Float32Array(1) }, "An edit's vector has 1 values; the hidden size is 2."],
    [{ layer: 0, kind: "hold", vector }, "A hold needs a feature."],
    [{ layer: 0, kind: "clamp", vector, feature }, "An edit of the kind clamp has no feature."],
    [{ layer: 0, feature }, "An edit of the kind affine has no feature."],
    [{ layer: 0, min: 2, max: 1 }, "An edit's min must not exceed its max, got 2 and 1."],
    [{ layer: 0, min: "0" }, 'An edit\'s min must not exceed its max, got "0" and Infinity.'],
    [{ layer: 0, max: Number.NaN }, "An edit's min must not exceed its max, got -Infinity and NaN."],
    [{ layer: 0, scale: 3.5e38 }, "An edit's scale must be a finite number, got 3.5e+38."],
    [{ layer: 0, strength: "1" }, 'An edit\'s strength must be a finite number, got "1".'],
    [
      { layer: 0, positions: "thinking" },
      "An edit's positions must be last, all, prompt, generated or ranges.",
    ],
    [
      { layer: 0, positions: "toString" },
      "An edit's positions must be last, all, prompt, generated or ranges.",
    ],
    [{ layer: 0, positions: [[0, 1], [2]] }, "A range of positions must be a first and a last token index."],
    [{ layer: 0, positions: [[0, 1, 2]] }, "A range of positions must be a first and a last token index."],
    [{ layer: 0, positions: [0, 1] }, "A range of positions must be a first and a last token index."],
    [{ layer: 0, positions: [[0, 2 ** 31]] }, "A range of positions must be a first and a last token index."],
  ] as [unknown, string][]) {
    assert.is(says(edit), sentence, JSON.stringify(edit));
  }
  assert.is(says({ layer: 0, scale: 3.4e38, min: 1, max: 1 }), "taken");
  assert.is(says({ layer: 0, point: "mid" }, true), "taken");
  assert.is(says({ layer: 0, positions: "answer" }, true), "taken");
  const thinking = { prompt: false, generated: true, part: "thinking" };
  assert.equal(nativePositions("thinking", true), thinking);
  assert.equal(nativePositions("answer", true), { ...thinking, part: "answer" });
  assert.equal(nativePositions("all", true), all);
});

const model = { nLayer: 4, nEmbd: 2 };

test("a minimal live plan always acts, has no label and stops nothing", () => {
  assert.equal(nativeLivePlan({}, model), {
    ...{ edits: [], gates: [], labels: [], probes: [], conditions: [], pair: false, stop: -1 },
  });
  const edits = [{ layer: 0 }, { layer: 3, positions: "answer" as const }];
  const weight = Float64Array.of(1, 2);
  const conditions = [
    { probe: 0, bound: 0.5, above: true, tokens: 2 },
    { probe: 1, bound: 0.25, above: false, tokens: 1 },
  ];
  const probes = [
    { name: "a", layer: 3, weight, bias: -1 },
    { name: "b", layer: 0, weight, bias: 0 },
  ];
  const keep = () => {};
  const watch = {
    ...{ layers: [3, 0, 3], positions: "thinking" as const, norms: true, lensTop: 4, probes: true },
    projections: [{ name: "p", layer: 3, vector }],
    states: { id: "c", bytes: 5, keep },
  };
  const plan = {
    edits,
    gates: [-1, 1],
    labels: ["{}", "{1}"],
    probes,
    conditions,
    stop: 1,
    pair: true,
    watch,
  };
  assert.equal(nativeLivePlan(plan, model), {
    edits: [
      { ...usual, layer: 0 },
      { ...usual, layer: 3, positions: { prompt: false, generated: true, part: "answer" } },
    ],
    ...{ gates: [-1, 1], labels: ["{}", "{1}"], probes, conditions, stop: 1, pair: true },
    watch: {
      ...{ layers: [3, 0], norms: true, lensTop: 4, probes: true },
      ...{ positions: { prompt: false, generated: true, part: "thinking" }, states: { id: "c", bytes: 5 } },
      projections: [{ name: "p", layer: 3, vector }],
    },
  });
  const bare = nativeLivePlan({ edits, watch: { layers: [], positions: "all" } }, model);
  assert.equal(
    [(bare as LivePlan).gates, (bare as LivePlan).labels, (bare as LivePlan).watch],
    [[-1, -1], ["{}", "{}"], { layers: [], positions: all, projections: [] } as never],
  );
});

test("a plan that names a missing block or position is refused", () => {
  const says = (plan: unknown, code?: string) => refusal(() => nativeLivePlan(plan as LivePlan, model), code);
  const outside = (layer: unknown) => `Layer ${layer} does not exist: the model has layers 0 to 3.`;
  const edits = [{ layer: 0 }];
  const weight = new Float64Array(2);
  const probe = { name: "a", layer: 0, weight, bias: 0 };
  const condition = { probe: 0, bound: 0, above: true, tokens: 1 };
  const watch = { layers: [], positions: "all" };
  for (const layer of [-1, 4, 0.5]) {
    for (const plan of [
      { edits: [{ layer }] },
      { probes: [{ ...probe, layer }] },
      { watch: { ...watch, layers: [layer] } },
      { watch: { ...watch, projections: [{ name: "p", layer, vector }] } },
    ]) {
      assert.is(says(plan, "LAYER_OUT_OF_RANGE"), outside(layer));
    }
  }
  const needs = "A plan of 1 edits needs the same number of gates and labels.";
  for (const [plan, sentence] of [
    [{ edits, gates: [] }, needs],
    [{ edits, labels: ["{}", "{}"] }, needs],
    [{ edits, gates: [0] }, "A plan names entry 0 of a list of 0."],
    [
      { edits, gates: [-2], conditions: [condition], probes: [probe] },
      "A plan names entry -2 of a list of 1.",
    ],
    [{ edits, gates: [1], conditions: [condition], probes: [probe] }, "A plan names entry 1 of a list of 1."],
    [{ conditions: [condition] }, "A plan names entry 0 of a list of 0."],
    [{ conditions: [{ ...condition, probe: -1 }], probes: [probe] }, "A plan names entry -1 of a list of 1."],
    [{ stop: 0 }, "A plan names entry 0 of a list of 0."],
    [{ stop: 0.5, conditions: [condition], probes: [probe] }, "A plan names entry 0.5 of a list of 1."],
    [
      { probes: [{ ...probe, weight: new Float64Array(3) }] },
      "A vector of a plan has 3 values; the hidden size is 2.",
    ],
    [
      { watch: { ...watch, projections: [{ name: "p", layer: 0, vector: new Float32Array(1) }] } },
      "A vector of a plan has 1 values; the hidden size is 2.",
    ],
    [{ edits: [{ layer: 0, point: "mid", heads: [0] }] }, "Heads are only possible at head_out."],
    [
      { watch: { ...watch, positions: "x" } },
      "An edit's positions must be last, all, prompt, generated or ranges.",
    ],
  ] as [unknown, string][]) {
    assert.is(says(plan), sentence, JSON.stringify(plan));
  }
});

test("a queue runs jobs in order, after failures too, and is released once", async () => {
  const queue = new SerialQueue("thing");
  const done: string[] = [];
  let finish = () => {};
  const first = queue.run(async () => {
    await new Promise<void>((resolve) => {
      finish = resolve;
    });
    done.push("first");
    throw new Error("It broke.");
  });
  const second = queue.run(async () => void done.push("second"));
  assert.not(queue.closed);
  const closing = queue.close(async () => void done.push("released"));
  assert.ok(queue.closed);
  assert.is(
    queue.close(async () => void done.push("again")),
    closing,
  );
  const late = await queue
    .run(async () => {})
    .catch((error: NativeError) => `${error.code}: ${error.message}`);
  assert.is(late, "CLOSED: The thing is closed.");
  assert.equal(done, []);
  finish();
  assert.is(await first.catch((error: Error) => error.message), "It broke.");
  await Promise.all([second, closing]);
  assert.equal(done, ["first", "second", "released"]);
});

test.run();
