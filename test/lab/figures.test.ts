/** A dictionary's figures for rows of two values. */
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { excludedIn, fidelityOf, type Reading, textFit } from "../../src/lab/rows/dictionary-reading.js";
import type { OpenDictionary } from "../../src/library/index.js";
import type { Context, Model } from "../../src/native/index.js";
import { labelsOf } from "../../src/operations/features/run-labels.js";
import { featurePages, pageSources } from "../../src/operations/features/run-pages.js";
import { refusal } from "../support/refusal.js";
import { wordModel } from "./word-model.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-figures-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** Rows of two values, each token's active features, and log-probabilities of the next tokens. */
function reading(
  states: number[],
  reconstruction: number[],
  active: [feature: number, value: number][][],
  scores: [clean: number[], reconstructed: number[], ablated: number[]],
  counted: number[] = active.map((_, token) => Number(token > 0 || active.length === 1)),
): Reading {
  const pointers = [0];
  for (const token of active) pointers.push(pointers.at(-1)! + token.length);
  const [clean, reconstructed, ablated] = scores.map((each) => Float64Array.from(each)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  return {
    tokens: Int32Array.from({ length: active.length }, (_, i) => i),
    states: Float32Array.from(states),
    targets: Float32Array.from(states),
    reconstruction: Float32Array.from(reconstruction),
    sparse: {
      pointers: Int32Array.from(pointers),
      indices: Int32Array.from(active.flat(), ([feature]) => feature),
      values: Float32Array.from(active.flat(), ([, value]) => value),
    } as unknown as Reading["sparse"],
    counted: Uint8Array.from(counted),
    scores: { clean, reconstructed, ablated },
  };
}

const fitOf = (model: Model, readings: readonly Reading[]) =>
  fidelityOf(readings.map((one) => textFit(model, one)));

async function pagesOf(
  wanted: readonly number[],
  dictionary: OpenDictionary,
  readings: readonly Reading[],
  more: Parameters<typeof pageSources>[2],
) {
  return featurePages(await pageSources(wanted, dictionary, more), readings);
}

test("a dictionary's fidelity counts all tokens but BOS", () => {
  const model = wordModel();
  const readings = [
    reading(
      [100, 0, 1, 0, 3, 4],
      [0, 0, 1, 1, 3, 4],
      [
        [[0, 9]],
        [
          [1, 1],
          [2, 1],
        ],
        [[1, 2]],
      ],
      [
        [-1, -1, 0],
        [-2, -1, 0],
        [-4, -2, 0],
      ],
    ),
    reading(
      [100, 0, 0, 0],
      [0, 0, 1, 0],
      [
        [],
        [
          [0, 1],
          [1, 1],
          [2, 1],
        ],
      ],
      [
        [-1, 0],
        [-2, 0],
        [-3, 0],
      ],
    ),
  ];
  const { cosine, explained_variance, ...found } = fitOf(model, readings);
  // Scored are three tokens: of 3, 5 and 9 nats. Active are 2, 1 and 3 features.
  assert.equal(found, {
    ...{
      tokens: 3,
      excluded: { bos: 2, outliers: 0 },
      l0: 2,
      cross_entropy: { clean: 1, reconstructed: 5 / 3, ablated: 3 },
      loss_recovered: (3 - 5 / 3) / 2,
    },
  });
  // Rows (1, 0), (3, 4), (0, 0) of mean (4/3, 4/3): 26 - 2 * 16 / 3; errors 1, 0 and 1.
  assert.ok(Math.abs(explained_variance! - (1 - 2 / (26 - 32 / 3))) < 1e-12, `${explained_variance}`);
  assert.ok(Math.abs(cosine - (Math.SQRT1_2 + 1 + 0) / 3) < 1e-12, `${cosine}`);
  // A text of a single token is all there is, whatever it is; one that is alike has no variance, and nothing is lost.
  const single = reading([1, 1], [1, 1], [[]], [[0], [0], [0]]);
  assert.equal(excludedIn([textFit(model, single)]), { bos: 0, outliers: 0 });
  assert.equal(fitOf(model, [single]), {
    ...{
      tokens: 1,
      excluded: { bos: 0, outliers: 0 },
      l0: 0,
      explained_variance: null,
      cosine: 1,
      cross_entropy: null,
      loss_recovered: null,
    },
  });
  // All zeros: no variance of which to explain a share.
  const nothing = fitOf(model, [reading([0, 0], [1, 1], [[]], [[0], [0], [0]])]);
  assert.equal([nothing.explained_variance, nothing.cosine], [null, 0]);
  const idle = reading(
    [1, 2, 3, 4],
    [0, 0, 0, 0],
    [[], []],
    [
      [-1, 0],
      [-1, 0],
      [-1, 0],
    ],
  );
  assert.is(fitOf(wordModel({ addBos: false }), [idle]).loss_recovered, null);
});

test("a feature's page has its places, quartiles, context, tokens, neighbours", async () => {
  const decoder = join(folder, "decoder");
  // Rows along angles; the third has no length, the fourth is the first one turned round, longer.
  const rows = [1, 0, 0.6, 0.8, 0, 0, -2, 0, 0.8, 0.6, 5, 0, 0, 1, 0, -1, 1, 0.1, 0, 2, 0.3, 0.4, -1, -1];
  writeFileSync(decoder, new Uint8Array(Float32Array.from(rows).buffer));
  const dictionary = {
    stored: { name: "d", features: 12, n_embd: 2 },
    places: { path: decoder, decoder: 0 },
  } as unknown as OpenDictionary;
  // Of 30 tokens the feature 0 fires in those from 1 on: as strong as their number, token 0 the strongest of all.
  const active = Array.from({ length: 30 }, (_, token): [number, number][] =>
    token % 3 === 2 ? [[5, 1]] : [[0, token === 0 ? 99 : token]],
  );
  const readings = [
    reading([], [], active, [[], [], []]),
    reading(
      [],
      [],
      [
        [[0, 1]],
        [
          [0, 28],
          [1, 2],
        ],
      ],
      [[], [], []],
    ),
  ];
  const logits = Float32Array.from({ length: 25 }, (_, id) =>
    id === 3 ? 10 : id === 20 ? -15 : (id % 5) - 2,
  );
  const context = { lens: { supported: true }, lensLogits: async () => logits } as unknown as Context;
  const model = {
    ...wordModel(),
    pieces: async (ids: Int32Array) => Array.from(ids, (id) => `t${id}`),
  } as unknown as Model;
  const labels = new Map([
    [0, "first"],
    [4, "fifth"],
  ]);
  const [page, silent] = await pagesOf([0, 11], dictionary, readings, { model, context, labels });

  const places = Array.from({ length: 29 }, (_, i) => i + 1).filter((token) => token % 3 !== 2);
  assert.equal([page!.feature, page!.label, page!.active_tokens], [0, "first", places.length + 1]);
  assert.is(places.length + 1, 20);
  // Twenty bins of 28 / 20: values 1, 3, 4, 6, … 28 and 28.
  const values = [...places, 28];
  assert.equal(
    page!.histogram.map(({ tokens }) => tokens),
    Array.from(
      { length: 20 },
      (_, bin) => values.filter((v) => Math.min(19, Math.floor((v / 28) * 20)) === bin).length,
    ),
  );
  assert.ok(page!.histogram.every(({ least }, bin) => Math.abs(least - 1.4 * bin) < 1e-9));
  const groups = page!.groups.map(({ name, examples }) => [
    name,
    examples.map(({ text, token }) => [text, token]),
  ]);
  assert.equal(groups, [
    [
      "top",
      [
        [0, 28],
        [1, 1],
        [0, 27],
        [0, 25],
        [0, 24],
      ],
    ],
    [
      "50-75 %",
      [
        [0, 22],
        [0, 21],
        [0, 18],
      ],
    ],
    [
      "25-50 %",
      [
        [0, 15],
        [0, 13],
        [0, 10],
      ],
    ],
    [
      "0-25 %",
      [
        [0, 7],
        [0, 6],
        [0, 3],
      ],
    ],
  ]);
  const [strongest, second] = page!.groups[0]!.examples;
  // Ten tokens before it and five after, as far as the text goes.
  assert.equal(
    [strongest!.from, strongest!.activations, strongest!.activation],
    [18, [18, 19, 0, 21, 22, 0, 24, 25, 0, 27, 28, 0], 28],
  );
  assert.equal([second!.from, second!.activations], [0, [1, 28]]);
  const middle = page!.groups[2]!.examples[1]!;
  assert.equal([middle.token, middle.from, middle.activations.length], [13, 3, 16]);

  const mean = logits.reduce((sum, logit) => sum + logit, 0) / 25;
  assert.equal(
    page!.raised!.map(({ token_id }) => token_id),
    [3, 4, 9, 14, 19, 24, 8, 13, 18, 23],
  );
  assert.equal(
    page!.lowered!.map(({ token_id }) => token_id),
    [20, 15, 10, 5, 0, 21, 16, 11, 6, 1],
  );
  assert.equal([page!.raised![0]!.token, page!.raised![0]!.effect], ["t3", 10 - mean]);
  // Cosines with (1, 0): 1 of row 5, 0.995 of 8, 0.8 of 4, 0.6 of 1 and 10, then those across in their order.
  assert.equal(
    page!.neighbours.map(({ feature, label }) => [feature, label]),
    [
      ...[
        [5, undefined],
        [8, undefined],
        [4, "fifth"],
        [1, undefined],
        [10, undefined],
        [2, undefined],
      ],
      ...[
        [6, undefined],
        [7, undefined],
      ],
    ],
  );
  assert.ok(Math.abs(page!.neighbours[1]!.cosine - 1 / Math.sqrt(1.01)) < 1e-6);
  assert.equal([page!.neighbours[0]!.cosine, page!.neighbours[5]!.cosine], [1, 0]);
  assert.equal(
    [silent!.label, silent!.active_tokens, silent!.histogram, silent!.groups],
    [undefined, 0, [], []],
  );

  const [once] = await pagesOf([1], dictionary, readings, { model, context, labels });
  assert.equal(
    [once!.active_tokens, once!.groups.map(({ name, examples }) => [name, examples.length])],
    [1, [["top", 1]]],
  );

  const without = { lens: { supported: false } } as unknown as Context;
  const [plain] = await pagesOf([5], dictionary, readings, { model, context: without, labels });
  assert.equal([plain!.raised, plain!.lowered, plain!.active_tokens], [null, null, 10]);
  assert.is(
    await refusal(() => pagesOf([12], dictionary, readings, { model, context, labels })),
    "The dictionary d has 12 features, 0 to 11; got 12.",
  );
});

test("neighbours are found in a decoder that is read in pieces", async () => {
  // 256 rows of 65,536 values at a time: the 257th and 258th come with the second piece.
  const [hidden, rows] = [65_536, 258];
  const path = join(folder, "large-decoder");
  const file = openSync(path, "w");
  ftruncateSync(file, rows * hidden * 4);
  const put = (row: number, ...values: number[]) =>
    writeSync(file, new Uint8Array(Float32Array.from(values).buffer), 0, 4 * values.length, row * hidden * 4);
  put(0, 1, 0);
  put(200, 3, 4);
  put(256, 2, 0);
  put(257, -1, 0);
  closeSync(file);
  const dictionary = {
    stored: { name: "large", features: rows, n_embd: hidden },
    places: { path, decoder: 0 },
  } as unknown as OpenDictionary;
  const context = { lens: { supported: false } } as unknown as Context;
  const [page] = await pagesOf([0], dictionary, [], { model: wordModel(), context, labels: new Map() });
  assert.equal(
    page!.neighbours.slice(0, 3).map(({ feature, cosine }) => [feature, Math.round(1000 * cosine)]),
    [
      [256, 1000],
      [200, 600],
      [1, 0],
    ],
  );
  rmSync(path);
});

test("labels come from a file or host, for the features shown", async () => {
  const path = join(folder, "labels.jsonl");
  writeFileSync(path, '{"index":"3","description":"three"}\n{"index":4,"description":"four"}\n');
  assert.equal(
    [...(await labelsOf(path, [3]))],
    [
      [3, "three"],
      [4, "four"],
    ],
  );
  writeFileSync(path, "none\n{");
  assert.is(await refusal(() => labelsOf(path, [])), `${path}: Line 1 of the labels is not JSON.`);
  assert.is(await refusal(() => labelsOf(folder, [])), `Cannot read ${folder} (EISDIR).`);
  const { fetch } = globalThis;
  const asked: string[] = [];
  const answers: Record<string, () => Response> = {
    1: () => new Response('{"index":1,"explanations":[{"description":"one"}]}'),
    2: () => new Response("gone", { status: 404 }),
    3: () => new Response("busy", { status: 503 }),
    4: () => new Response("{\n{"),
    5: () => {
      throw Object.assign(new TypeError("fetch failed"), { cause: new Error("nobody there.") });
    },
    6: () => new Response(new Uint8Array(16 * 1024 ** 2 + 1)),
    7: () => new Response('{"index":8,"description":"another one\'s"}'),
  };
  globalThis.fetch = (async (address: string, { redirect }: RequestInit) => {
    asked.push(address, String(redirect));
    return answers[address.slice(-1)]!();
  }) as typeof fetch;
  try {
    const host = "http://host/api/";
    assert.equal([...(await labelsOf(host, [1, 2, 7]))], [[1, "one"]]);
    assert.equal(asked.slice(0, 4), ["http://host/api/1", "error", "http://host/api/2", "error"]);
    for (const [feature, message] of [
      [3, "http://host/api/3 returned HTTP 503."],
      [4, "Cannot read labels from http://host/api/4: Line 1 of the labels is not JSON."],
      [5, "Cannot read labels from http://host/api/5: Error: nobody there."],
      [6, "http://host/api/6 returned 16777217 bytes; the limit is 16777216."],
    ] as const) {
      assert.is(await refusal(() => labelsOf(host, [feature])), message);
    }
  } finally {
    globalThis.fetch = fetch;
  }
});

test.run();
