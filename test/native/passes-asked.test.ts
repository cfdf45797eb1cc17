/** What passes, lenses and rows in a token's place ask of the addon, and what becomes of its answers, on an addon that computes nothing. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { nativeRefusal as refused } from "../support/refusal.js";
import { StandInToken } from "../support/stand-in-addon.js";
import { answers, aroundModels, asked, last, opened } from "./stand-in-model.js";

aroundModels();

test("a pass returns every row or the last, with edits and shapes", async () => {
  const { context } = await opened();
  const states = Float32Array.of(1, 2, 3, 4, 5, 6);
  answers.advance = () => ({
    layers: [
      { layer: 2, point: "block_out", rows: 2, width: 3, norms: Float32Array.of(8, 9), states },
      { layer: 0, point: "mid", rows: 2, width: 3, norms: Float32Array.of(6, 7) },
    ],
    attention: [{ layer: 0, heads: Int32Array.of(1), weights: new Float32Array(4), apart: 0.5 }],
    routing: [
      { layer: 0, experts: 8, used: 3, chosen: new Int32Array(6), weights: new Float32Array(6).fill(2) },
    ],
    logits: Float32Array.of(1),
  });
  const tokens = Int32Array.of(5, 6);
  const request = {
    lensTopK: 2,
    lensTarget: 0,
    nextTopK: 0,
    logits: true,
    earlyExit: true,
    keepStates: true,
  };
  const { layers, attention, routing, ...rest } = await context.advance({
    ...{ tokens, layers: [2, 0], points: ["block_out", "mid"], routing: [0], ...request },
    ...{ attention: { layers: [0], heads: [1], prove: true }, scored: Int32Array.of(-1, 3) },
    edits: [{ layer: 2, scale: 0.5 }],
  });
  assert.equal(rest, { logits: Float32Array.of(1) });
  const [first, second] = layers;
  assert.equal([first!.layer, first!.point, first!.norms], [2, "block_out", Float32Array.of(8, 9)]);
  assert.equal([first!.states!.shape, first!.states!.get(1, 0), first!.states!.data], [[2, 3], 4, states]);
  assert.equal(second, { layer: 0, point: "mid", norms: Float32Array.of(6, 7) });
  assert.equal(
    [attention![0]!.weights.shape, attention![0]!.heads, attention![0]!.apart, attention![0]!.layer],
    [[1, 2, 2], Int32Array.of(1), 0.5, 0],
  );
  const [routed] = routing!;
  assert.equal(
    [routed!.chosen.shape, routed!.weights.shape, routed!.experts, routed!.weights.get(1, 2)],
    [[2, 3], [2, 3], 8, 2],
  );
  assert.not("used" in routed!);
  const edit = { layer: 2, point: "block_out", kind: "affine", unit: "vector", scale: 0.5, strength: 1 };
  assert.equal(last(), [
    "advance",
    {
      ...{ tokens, layers: [2, 0], points: ["block_out", "mid"], routing: [0], ...request, allRows: true },
      ...{ attention: { layers: [0], heads: [1], prove: true }, scored: Int32Array.of(-1, 3) },
      edits: [
        {
          ...edit,
          ...{ heads: undefined, vector: undefined, feature: undefined },
          ...{ min: Number.NEGATIVE_INFINITY, max: Number.POSITIVE_INFINITY },
          positions: { prompt: true, generated: true, ranges: Int32Array.of(-1, 2_147_483_647) },
        },
      ],
    },
  ]);
  answers.advance = () => ({ layers: [] });
  assert.equal(await context.advance({ tokens, layers: [], rows: "last" }), { layers: [] });
  assert.equal(last(), ["advance", { tokens, layers: [], allRows: false, edits: [] }]);
  await context.advance({ tokens, layers: [], rows: "all" });
  assert.is((last()[1] as { allRows: boolean }).allRows, true);
});

test("invalid requests of a pass are refused before they reach the addon", async () => {
  const { context } = await opened();
  const tokens = Int32Array.of(1);
  const good = { tokens, layers: [0] };
  for (const [more, sentence] of [
    [{ layers: 0 }, "Layers must be an array of block indices."],
    [{ layers: [null] }, "A layer must be an integer from -2147483647 to 2147483647, got null."],
    [
      { points: ["nowhere"] },
      'A point must be block_in, attention, head_out, attn_out, mid, ffn_in, router, ffn_out, block_out, got "nowhere".',
    ],
    [
      { points: [undefined] },
      "A point must be block_in, attention, head_out, attn_out, mid, ffn_in, router, ffn_out, block_out, got nothing.",
    ],
    [{ points: ["mid", "mid"] }, "The point mid is listed twice."],
    [
      { points: "mid" },
      "Points must be an array of block_in, attention, head_out, attn_out, mid, ffn_in, router, ffn_out, block_out.",
    ],
    [{ lensTopK: -1 }, "lensTopK must be an integer from 0 to 2147483647, got -1."],
    [{ lensTarget: -1 }, "lensTarget must be an integer from 0 to 2147483647, got -1."],
    [{ nextTopK: -1 }, "nextTopK must be an integer from 0 to 2147483647, got -1."],
    [{ scored: [1] }, "Token ids must be an Int32Array."],
    [{ tokens: [1] }, "Token ids must be an Int32Array."],
    [{ attention: { layers: [0.5] } }, "A layer must be an integer from -2147483647 to 2147483647, got 0.5."],
    [
      { attention: { layers: [0], heads: [-1] } },
      "One of the heads must be an integer from 0 to 2147483647, got -1.",
    ],
    [{ attention: { layers: [0], heads: 1 } }, "Heads must be an array of indices."],
    [{ routing: 1 }, "Layers must be an array of block indices."],
    [
      { edits: [{ layer: 0, vector: new Float32Array(2) }] },
      "An edit's vector has 2 values; the hidden size is 3.",
    ],
  ] as const) {
    assert.is(
      await refused(() => context.advance({ ...good, ...more } as never)),
      `INVALID_ARGUMENT: ${sentence}`,
      JSON.stringify(more),
    );
  }
  assert.equal(asked, []);
});

test("texts' states: a matrix a layer, as wide as the model", async () => {
  const { context } = await opened();
  answers.features = () => [
    { layer: 4, states: new Float32Array(6) },
    { layer: 1, states: Float32Array.of(1, 2, 3) },
  ];
  const sequences = [Int32Array.of(1), Int32Array.of(2, 3)];
  const starts = Int32Array.of(0, 1);
  const onProgress = () => {};
  const found = await context.features({
    sequences,
    layers: [4, 1],
    point: "mid",
    rows: "mean",
    starts,
    onProgress,
  });
  assert.equal(
    [...found].map(([layer, { shape }]) => [layer, shape]),
    [
      [4, [2, 3]],
      [1, [1, 3]],
    ],
  );
  assert.is(found.get(1)?.get(0, 2), 3);
  assert.equal(last(), [
    "features",
    { sequences, layers: [4, 1], point: "mid", rows: "mean", starts, onProgress },
  ]);
  answers.features = () => [
    { layer: 2, states: Float32Array.of(1, 2, 3), target: Float32Array.of(4, 5, 6, 7, 8, 9) },
  ];
  const both = await context.features({ sequences, layers: [2], point: "ffn_in", target: "ffn_out" });
  assert.equal(
    [[...both.get(2)!.data], [...both.get(2)!.target!.data], both.get(2)!.target!.shape],
    [
      [1, 2, 3],
      [4, 5, 6, 7, 8, 9],
      [2, 3],
    ],
  );
  assert.equal(last(), ["features", { sequences, layers: [2], point: "ffn_in", target: "ffn_out" }]);
  for (const more of [
    ...[{ point: "x" }, { starts: [0] }, { sequences: [[1]] }, { layers: ["0"] }],
    { target: "x" },
  ]) {
    assert.match(
      await refused(() => context.features({ sequences, layers: [0], ...more } as never)),
      /^INVALID_ARGUMENT: /,
      JSON.stringify(more),
    );
  }
  assert.equal(asked, []);
});

test("rows for a token, lenses and logits are passed on with their arguments", async () => {
  const { context } = await opened();
  const [before, after] = [Int32Array.of(1), Int32Array.of(2)];
  const fillings = [{ token: 3 }];
  await context.explain({
    before,
    after,
    fillings,
    maxTokens: 1,
    samples: 1,
    temperature: 0.5,
    logits: true,
  });
  assert.equal(last(), [
    "explain",
    { before, after, fillings, maxTokens: 1, samples: 1, temperature: 0.5, logits: true },
  ]);
  await context.embeddingInput();
  assert.equal(last(), ["embeddingInput", {}]);
  const rows = Float32Array.of(1, 2, 3);
  answers.lensLogits = () => rows;
  assert.is(await context.lensLogits(rows), rows);
  assert.equal(last(), ["lensLogits", { rows }]);
  await context.logitDirection(rows, 0);
  assert.equal(last(), ["logitDirection", { state: rows, token: 0 }]);
  const places = [{ states: rows }];
  const targets = Int32Array.of(-1);
  await context.readLens({ places, top: 1, output: rows, targets, entropy: true });
  assert.equal(last(), ["readLens", { places, top: 1, output: rows, targets, entropy: true }]);
  await context.reset();
  assert.equal(last(), ["reset"]);
  const from = (name: string, least: number, got: unknown) =>
    `INVALID_ARGUMENT: ${name} must be an integer from ${least} to 2147483647, got ${got}.`;
  const ids = "INVALID_ARGUMENT: Token ids must be an Int32Array.";
  const explain = (more: object) =>
    context.explain({ before, after, fillings, maxTokens: 1, ...more } as never);
  const read = (more: object) => context.readLens({ places, top: 1, ...more } as never);
  for (const [run, sentence] of [
    [() => explain({ maxTokens: 0 }), from("maxTokens", 1, 0)],
    [() => explain({ maxTokens: undefined }), from("maxTokens", 1, null)],
    [() => explain({ samples: 0 }), from("samples", 1, 0)],
    [() => explain({ before: [1] }), ids],
    [() => explain({ after: [1] }), ids],
    [() => context.logitDirection(rows, -1), from("token", 0, -1)],
    [() => context.logitDirection(rows, undefined as never), from("token", 0, null)],
    [() => read({ top: 0 }), from("top", 1, 0)],
    [() => read({ top: undefined }), from("top", 1, null)],
    [() => read({ targets: [1] }), ids],
  ] as const) {
    assert.is(await refused(run), sentence);
  }
  assert.equal(asked, []);
});

test("a context runs one operation at a time, each with its own signal", async () => {
  const { context } = await opened();
  let finish = (_: unknown) => {};
  answers.reset = () =>
    new Promise((resolve) => {
      finish = resolve;
    });
  const stop = new AbortController();
  let token: StandInToken | undefined;
  answers.advance = ({ cancel }: { cancel: StandInToken }) => {
    token = cancel;
    stop.abort();
    assert.ok(cancel.cancelled);
    throw Object.assign(new Error("Cancelled."), { code: "CANCELLED" });
  };
  const first = context.reset();
  const second = refused(() =>
    context.advance({ tokens: Int32Array.of(1), layers: [], signal: stop.signal }),
  );
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(
    asked.map(([name]) => name),
    ["reset"],
  );
  finish(undefined);
  await first;
  assert.is(await second, "CANCELLED: Cancelled.");
  assert.instance(token, StandInToken);
  assert.not("signal" in (asked[1]![1] as object));
  asked.length = 0;
  assert.is(
    await refused(() => context.advance({ tokens: Int32Array.of(1), layers: [], signal: stop.signal })),
    "CANCELLED: The operation was cancelled.",
  );
  assert.equal(asked, []);
  // Errors from outside the addon pass unchanged.
  answers.advance = () => {
    throw Object.assign(new TypeError("A fault."), { code: "OTHER" });
  };
  const fault = await context
    .advance({ tokens: Int32Array.of(1), layers: [] })
    .catch((error: unknown) => error);
  assert.equal([fault instanceof TypeError, (fault as Error).message], [true, "A fault."]);
});

test.run();
