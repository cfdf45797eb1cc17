/** Directions, probes and kept rows on the inference port, and who may open the model: on a stand-in for the engine. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { LiveLibrary } from "../../src/inference/live/library.js";
import { makeVector } from "../../src/inference/live/make-vector.js";
import { captureFeatures } from "../../src/inference/live/row-features.js";
import type { RowCapture } from "../../src/inference/live/row-store.js";
import type { ServiceParts } from "../../src/inference/service.js";
import { NativeError } from "../../src/native/index.js";
import type { CapturedRows } from "../../src/native/live.js";
import { takeStandIn } from "../support/stand-in-addon.js";
import { stand } from "./support/stand.js";

const addon = takeStandIn();
const model = { id: "m", fingerprint: "f".repeat(64), nEmbd: 2, nLayer: 4 };
const { signal } = new AbortController();
const withLibrary = (library: object): Partial<ServiceParts> => ({
  library: { model, vectors: {}, probes: {}, dictionaries: {}, ...library } as unknown as LiveLibrary,
});

/** States of texts that are two numbers: at layer n those times n. */
function texts() {
  const asked: object[] = [];
  const states = async ({
    signal: _,
    ...request
  }: {
    prompt: string;
    layers: number[];
    signal: AbortSignal;
  }) => {
    asked.push(request);
    const [x, y] = request.prompt.split(" ").map(Number) as [number, number];
    return request.layers.map((layer) => ({
      state: Float32Array.of(layer * x, layer * y),
      excluded: { bos: 0, outliers: 0 },
    }));
  };
  return { asked, engine: { info: { nEmbd: 2, captures: true }, states } };
}

test("a direction per layer is the difference of means, with its description", async () => {
  const { asked, engine } = texts();
  const kept: unknown[][] = [];
  const library = { model, vectors: { put: async (...given: unknown[]) => void kept.push(given) } };
  const make = (more: object) =>
    makeVector(
      engine as never,
      library as never,
      { name: "v", positive: ["1 0", "3 0"], negative: ["0 1", "0 5"], layers: [3, 1], ...more } as never,
      signal,
    );
  await make({});
  const [name, vectors, of, { note, reports }] = kept.pop() as [
    string,
    Map<number, Float32Array>,
    object,
    {
      note: string;
      reports: Map<number, { typical_row: number; projections?: object; separation: unknown }>;
    },
  ];
  assert.equal([name, of], ["v", model]);
  assert.equal(
    [...vectors],
    [
      [1, Float32Array.of(2, -3)],
      [3, Float32Array.of(6, -9)],
    ],
  );
  // Four rows of lengths 1, 3, 1 and 5.
  assert.equal(
    [...reports].map(([layer, { typical_row }]) => [layer, typical_row]),
    [
      [1, 2.5],
      [3, 7.5],
    ],
  );
  assert.is(note, "Difference of means of 2 positive and 2 negative texts, last token, block outputs.");
  assert.equal(
    asked,
    ["1 0", "3 0", "0 1", "0 5"].map((prompt) => ({ prompt, layers: [1, 3], rows: "last", maxTokens: 256 })),
  );
  asked.length = 0;
  await make({ method: "pca", position: "mean" });
  const [, , , said] = kept.pop() as [0, 0, 0, { note: string }];
  assert.is(
    said.note,
    "First principal component of the paired differences of 2 positive and 2 negative texts, mean over tokens without BOS and outliers, block outputs.",
  );
  assert.is((asked[0] as { rows: string }).rows, "mean");
  const refused = (more: object) =>
    make(more).then(
      () => "made",
      (error: Error) => `${error.name}: ${error.message}`,
    );
  assert.is(
    await refused({ method: "pca", positive: ["1 0"], negative: ["1 0", "2 0"] }),
    "UserError: pca needs pairs: the same number of positive and negative texts, got 1 and 2.",
  );
  assert.is(
    await refused({ method: "pca", positive: ["1 0"], negative: ["1 0"] }),
    "UserError: pca needs at least 2 pairs, got 1.",
  );
  assert.is(await refused({ positive: ["1 0"], negative: ["1 0", "2 0"] }), "made");
});

test("the seed of shuffled labels is the request's, 0 by default", async () => {
  const { engine } = texts();
  // Sides that overlap, so that labels in another order separate them otherwise.
  const side = (from: number) =>
    Array.from({ length: 10 }, (_, i) => `${from + ((i * 7) % 10)} ${(i * 3) % 4}`);
  const shuffled = async (more: object) => {
    let found: number | undefined;
    const put = async (_n: string, _v: object, _m: object, { reports }: { reports: Map<number, object> }) => {
      found = (reports.get(1) as { shuffled_separation: number }).shuffled_separation;
    };
    const body = { name: "v", positive: side(0), negative: side(3), layers: [1], ...more };
    await makeVector(engine as never, { model, vectors: { put } } as never, body as never, signal);
    return found;
  };
  const usual = await shuffled({});
  assert.type(usual, "number");
  assert.is(await shuffled({ seed: 0 }), usual);
  assert.is.not(await shuffled({ seed: 1 }), usual);
});

test("vectors and probes from texts are created; refused texts are the caller's fault", async () => {
  const made: unknown[][] = [];
  const put = async (...given: unknown[]) => {
    made.push(given);
    return { name: given[0] };
  };
  const { engine } = texts();
  let states: () => Promise<Float32Array[]> = engine.states as never;
  const { send } = await stand({}, withLibrary({ vectors: { put }, probes: { put } }), undefined, {
    states: (request: never) => (states as unknown as typeof engine.states)(request),
  });
  const vector = { name: "v", positive: ["1 0"], negative: ["0 1"], layers: [1] };
  const answer = await send("POST", "/lab/vectors", vector);
  assert.equal([answer.status, answer.body], [201, { name: "v" }]);
  const seen: object[] = [];
  addon.trainProbe = async (given: { features: Float32Array; labels: Uint8Array; train: Uint8Array }) => {
    seen.push(given);
    return {
      ...{ weight: [1, 2], mean: [3, 4], std: [5, 6], bias: 7, auc: 0.75, testSize: 2 },
      permutedAucs: Float64Array.from({ length: 20 }, (_, i) => (i < 10 ? 0.25 : 0.5)),
    };
  };
  const five = (x: number) => Array.from({ length: 5 }, (_, i) => `${x} ${i}`);
  const probe = { name: "p", positive: five(1), negative: [...five(2), "9 9"], layer: 3, seed: 4 };
  assert.is((await send("POST", "/lab/probes", probe)).status, 201);
  const { cancel: _, ...given } = seen[0] as { cancel: unknown };
  assert.equal(given, {
    features: Float32Array.from(
      [...five(1), ...five(2), "9 9"].flatMap((text) => text.split(" ").map((n) => 3 * Number(n))),
    ),
    labels: Uint8Array.of(1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0),
    // The fifth of each side is held out.
    train: Uint8Array.of(1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1),
    ...{ hidden: 2, seed: 4, permutations: 20, threads: 1 },
  });
  const numbers = {
    ...{ weight: Float32Array.of(1, 2), mean: Float32Array.of(3, 4), std: Float32Array.of(5, 6), bias: 7 },
  };
  const note =
    "Logistic regression on 5 positive and 6 negative texts, last token, block outputs; 2 texts held out.";
  const report = { separation: 0.75, shuffled_separation: 0.375 };
  assert.equal(made[1], ["p", 3, numbers, model, { note, report }]);
  await send("POST", "/lab/probes", { ...probe, seed: undefined, position: "mean" });
  assert.is((seen[1] as { seed: number }).seed, 0);

  for (const [code, status] of [
    ["TOKEN_LIMIT", 400],
    ["LAYER_OUT_OF_RANGE", 400],
    ["INVALID_ARGUMENT", 400],
    ["COMPUTE", 500],
  ] as const) {
    states = () => Promise.reject(new NativeError(code, "Why."));
    for (const [path, body] of [
      ["/lab/vectors", vector],
      ["/lab/probes", probe],
    ] as const) {
      const refused = await send("POST", path, body);
      assert.is(refused.status, status, code);
      if (status === 400) assert.is(refused.body.error, "Why.");
    }
  }
  const blind = await stand({ captures: false }, withLibrary({}));
  const refused = await blind.send("POST", "/lab/vectors", vector);
  assert.equal([refused.status, refused.body.error], [400, "No captures here."]);
  assert.is((await send("POST", "/lab/vectors", { ...vector, name: "-" })).status, 400);
});

const rows = (id: string, layers: CapturedRows["layers"], count = 3): CapturedRows => ({
  ...{ id, promptTokens: 2, rows: Int32Array.from({ length: count }, (_, i) => 5 + i), layers },
  tokens: Int32Array.from({ length: count }, (_, i) => 70 + i),
});

test("captured rows are listed oldest first, read as files and deleted singly", async () => {
  const { send, service } = await stand({}, withLibrary({}));
  const values = Float32Array.of(1, 2, 3, 4, 5, 6);
  service.rows.add(
    rows("a", [
      { layer: 3, values },
      { layer: 1, values },
    ]),
    "m",
  );
  service.rows.add(rows("b", [{ layer: 0, values }]), "m");
  const { body } = await send("GET", "/lab/captures");
  const [first, second] = body.captures;
  assert.equal(
    { ...first, created: 0 },
    { id: "a", bytes: 2 * 24 + 3 * 8, created: 0, rows: 3, layers: [3, 1] },
  );
  assert.equal([second.id, second.layers, body.captures.length], ["b", [0], 2]);
  for (const [query, signature] of [
    ["", "{"],
    ["?format=safetensors", "{"],
    ["?format=npz", "PK"],
  ] as const) {
    const file = await send("GET", `/lab/captures/a${query}`);
    assert.equal([file.status, file.headers["content-type"]], [200, "application/octet-stream"]);
    const from = signature === "PK" ? 0 : 8;
    assert.is(file.bytes.toString("latin1", from, from + signature.length), signature);
  }
  const refused = async (method: string, path: string) => {
    const answer = await send(method, path);
    return [answer.status, answer.body.error];
  };
  assert.equal(await refused("GET", "/lab/captures/a?format=csv"), [
    400,
    "format: must be safetensors or npz.",
  ]);
  const none = (id: string) => [404, `No capture ${id}; old captures are evicted.`];
  const long = "x".repeat(90);
  assert.equal(await refused("GET", `/lab/captures/${long}`), none(long.slice(0, 80)));
  assert.equal(await refused("GET", "/lab/captures/c/features?dictionary=d"), none("c"));
  assert.equal(await refused("DELETE", "/lab/captures/c"), none("c"));
  const forgotten = await send("DELETE", "/lab/captures/a");
  assert.equal([forgotten.status, forgotten.body], [200, { deleted: true }]);
  assert.equal(await refused("DELETE", "/lab/captures/a"), none("a"));
  assert.is(service.rows.count, 1);
});

const stored = { point: "block_out", layer: 3 };
const dictionaries = (more: object = {}) => ({
  fitting: async (...given: unknown[]) => ({
    stored: { ...stored, ...more },
    places: { path: "d", hidden: 2, given },
  }),
});

test("features are encoded from the captured rows, at their positions", async () => {
  const encoded: { rows: Float32Array; dictionary: { given: unknown[] } }[] = [];
  addon.encodeRows = async (given: (typeof encoded)[0]) => {
    encoded.push(given);
    // Two features of the first row, none of the second.
    return {
      pointers: Float64Array.of(0, 3, 3),
      indices: Int32Array.of(4, 5, 6),
      values: Float32Array.of(1, 3, 2),
    };
  };
  const { send, service } = await stand({}, withLibrary({ dictionaries: dictionaries() }));
  const values = Float32Array.of(1, 2, Number.NaN, Number.NaN, 5, 6);
  const wrong = Float32Array.of(9, 9, 9, 9, 9, 9);
  service.rows.add(
    rows("a", [
      { layer: 1, values: wrong },
      { layer: 3, values },
    ]),
    "m",
  );
  const { status, body } = await send("GET", "/lab/captures/a/features?dictionary=d&top=2");
  const feature = (index: number, activation: number) => ({ feature: index, activation });
  assert.is(status, 200, JSON.stringify(body));
  assert.equal(body, {
    ...{ dictionary: "d", layer: 3, prompt_tokens: 2 },
    rows: [
      { index: 5, token_id: 70, active: 3, features: [feature(5, 3), feature(6, 2)] },
      { index: 6, token_id: 71, active: null, features: [] },
      { index: 7, token_id: 72, active: 0, features: [] },
    ],
  });
  assert.equal([encoded[0]!.rows, encoded[0]!.dictionary.given], [Float32Array.of(1, 2, 5, 6), ["d", model]]);
  const told = await send("GET", "/lab/captures/a/features?dictionary=d");
  assert.is(told.body.rows[0].features.length, 3, "ten unless told otherwise");
  for (const top of ["1", "100"]) {
    assert.is((await send("GET", `/lab/captures/a/features?dictionary=d&top=${top}`)).status, 200, top);
  }
  for (const top of ["0", "101", "1e1", "", "-1", "2&top=3"]) {
    const refused = await send("GET", `/lab/captures/a/features?dictionary=d&top=${top}`);
    assert.equal([refused.status, refused.body.error], [400, "top: must be a number from 1 to 100."], top);
  }
  const unnamed = await send("GET", "/lab/captures/a/features");
  assert.equal(
    [unnamed.status, unnamed.body.error],
    [400, "dictionary: the name of a saved dictionary is required."],
  );
  const capture = service.rows.get("a") as RowCapture;
  const read = (more: object) =>
    captureFeatures(capture, { model, dictionaries: dictionaries(more) } as never, "d", 1, signal).then(
      () => "read",
      (error: Error) => `${error.name}: ${error.message}`,
    );
  assert.is(await read({ layer: 0 }), "UserError: The dictionary d reads block 0; the capture has 1, 3.");
  assert.is(
    await read({ point: "mid" }),
    "UserError: The dictionary d reads mid; the capture has block_out.",
  );
});

test("internals: local programs, captures possible, conditions without a draft", async () => {
  const path = "/v1/completions";
  const ablate = { kind: "ablate", layer: 1 };
  const asks = (tapline: object) => ({ prompt: "a", tapline });
  const open = await stand({}, withLibrary({}));
  const { body: page } = await open.post(path, asks({ interventions: [ablate] }), { Origin: "null" });
  assert.equal([page.error.param, open.asked], [null, []]);
  const cookie = await open.post(path, asks({ interventions: [ablate] }), { Cookie: "a=b" });
  assert.equal(
    [cookie.status, cookie.body.error.message, cookie.body.error.param],
    [
      403,
      "tapline: Requests from web pages are rejected: do not send Origin, Sec-Fetch-Site or Cookie headers.",
      "tapline",
    ],
  );
  assert.equal((await open.engine(path, asks({ interventions: [ablate] }))).live?.edits?.length, 1);
  assert.not("tapline" in open.asked[0]!.body);
  assert.is((await open.engine(path, { prompt: "a" })).live, undefined);
  const blind = await stand({ captures: false }, withLibrary({}));
  assert.equal((await blind.refusal(path, asks({ watch: { layers: [0], norms: true } }))).slice(1), [
    "tapline: No captures here.",
    "tapline",
  ]);
  const drafts = await stand({}, { ...withLibrary({}), drafts: true });
  const conditions = ["tapline: conditions are not supported with a draft model (--draft).", "tapline"];
  const when = { probe: "p", above: 0.5 };
  for (const tapline of [{ stop_when: when }, { interventions: [ablate, { ...ablate, when }] }]) {
    assert.equal((await drafts.refusal(path, asks(tapline))).slice(1), conditions);
  }
  assert.ok((await drafts.engine(path, asks({ interventions: [ablate] }))).live);
});

test("captured rows are named, bounded, and belong to this model", async () => {
  const { engine, service } = await stand({}, withLibrary({}));
  const watch = { layers: [1], states: true };
  const { live } = await engine("/v1/completions", { prompt: "a", tapline: { watch } });
  const { id, bytes, keep } = live!.watch!.states!;
  assert.match(id, /^cap-[0-9a-f]{16}$/);
  assert.is(bytes, 67_108_864);
  keep(rows(`${id}-0`, []));
  assert.equal([service.rows.count, service.rows.get(`${id}-0`)?.model], [1, "m"]);
  const plain = await engine("/v1/completions", {
    prompt: "a",
    tapline: { watch: { layers: [1], norms: true } },
  });
  assert.is(plain.live!.watch!.states, undefined);
  const off = await engine("/v1/completions", {
    ...{ prompt: "a", tapline: { watch: { layers: [1], norms: true, states: false } } },
  });
  assert.is(off.live!.watch!.states, undefined);
});

test("scores of watched probes are counted, for whole and streamed answers", async () => {
  const folded = async () => ({ layer: 1, weight: new Float64Array(2), bias: 0 });
  const choice = {
    index: 0,
    text: "a",
    finish_reason: null,
    tapline: { tokens: [{ probes: { calm: 0.25 } }] },
  };
  const answer = JSON.stringify({ choices: [choice] });
  const { post, service } = await stand({}, withLibrary({ probes: { folded } }), ({ body }) =>
    body.stream === true
      ? {
          body: "",
          parts: (async function* () {
            yield { data: `data: ${answer}\n\n`, tokens: [1] };
            yield { data: `data: ${answer}\n\n`, tokens: [1] };
          })() as never,
        }
      : { body: answer },
  );
  const counted = () => [...service.stats.probes.entries()].map(([name, { count }]) => [name, count]);
  const watch = (more: object) => ({ prompt: "a", tapline: { watch: more } });
  await post("/v1/completions", watch({ layers: [1], norms: true }));
  assert.equal(counted(), []);
  await post("/v1/completions", watch({ probes: ["calm"] }));
  assert.equal(counted(), [["calm", 1]]);
  await post("/v1/completions", { ...watch({ probes: ["calm"] }), stream: true });
  assert.equal(counted(), [["calm", 3]]);
});

test("uploads to this port accept any name of the served model", async () => {
  const put: unknown[] = [];
  const vectors = { put: async (...given: unknown[]) => put.push(given[2]) && null };
  const { send } = await stand({}, { ...withLibrary({ vectors }), aliases: ["m", "other"] });
  const { encodeSafetensors } = await import("../../src/formats/safetensors.js");
  const file = encodeSafetensors({ layer_1: { shape: [2], data: Float32Array.of(1, 2) } }, {});
  for (const query of ["", "?model=m", "?model=other"]) {
    assert.is((await send("PUT", `/lab/vectors/v${query}`, file)).status, 204, query);
  }
  assert.equal(put, [model, model, model]);
  const long = "n".repeat(250);
  const { status, body } = await send("PUT", `/lab/vectors/v?model=${long}`, file);
  assert.equal([status, body.error], [400, `model: m is served here, not ${long.slice(0, 200)}.`]);
});

test.run();
