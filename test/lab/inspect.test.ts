import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Compile } from "typebox/compile";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  checkSubmission,
  type InspectConfig,
  type InspectResult,
  Job,
  type MeasuredLayer,
} from "../../src/contracts/index.js";
import { story } from "../../src/findings/story.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { type Context, Model } from "../../src/native/index.js";
import { inspect } from "../../src/operations/inspect/run.js";
import { checkAttention } from "../../src/operations/inspect/run-attention.js";
import { decompose } from "../../src/operations/inspect/run-decompose.js";
import { writeInF32 } from "../support/f32-model.js";
import { demoInspect, type Harness, openHarness } from "./harness.js";
import { readNpz, readNpzWithNumpy } from "./npz-reader.js";

let harness: Harness;
let blocks: number;
let positions: number;

/** A value with the keys of every object in order, so that its JSON is the one that is hashed. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const fields = value as Record<string, unknown>;
  const inOrder: Record<string, unknown> = {};
  for (const key of Object.keys(fields).sort()) inOrder[key] = sorted(fields[key]);
  return inOrder;
}

let model: Model;
const folder = mkdtempSync(join(tmpdir(), "tapline-inspect-"));

test.before(async () => {
  model = await Model.open(demoModelPath);
  ({ nLayer: blocks, nCtxTrain: positions } = model.info);
  harness = await openHarness();
});
test.after(async () => {
  await harness.close();
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The operation itself, as a worker runs it. */
async function operate(body: object) {
  const config = checkSubmission({ operation: "inspect", model: "demo", ...body }) as InspectConfig;
  const place = mkdtempSync(join(folder, "job-"));
  const openOther = () => Promise.reject(new Error("One model is enough."));
  const input = { config, model, artifacts: new Artifacts(place), openOther, clock: new StageClock() };
  const result = await inspect({ ...input, progress: () => {} });
  return { result, place, arrays: readNpz(readFileSync(join(place, "activations.npz"))) };
}

async function run(body: object): Promise<{ job: Job; result: InspectResult }> {
  const { id } = await harness.submit(body);
  const job = await harness.finished(id);
  if (job.status !== "completed") throw new Error(job.error);
  return { job, result: job.result as InspectResult };
}

async function failure(body: object): Promise<string> {
  const { id } = await harness.submit(body);
  const job = await harness.finished(id);
  assert.is(job.status, "failed");
  assert.is(job.result, undefined);
  return job.error as string;
}

async function artifact(id: string, name = "activations.npz"): Promise<Buffer> {
  const { status, bytes } = await harness.request("GET", `/jobs/${id}/artifacts/${name}`);
  assert.is(status, 200);
  return bytes;
}

test("every layer is measured, selected or not, with equal results", async () => {
  const asked = { prompt: "The capital of France is", target_token: " Paris" };
  const { result: all } = await operate({ ...asked, layers: [...Array(blocks).keys()] });
  for (const layers of [[3], [0, blocks - 1]]) {
    for (const more of [{}, { measures: true }, { points: ["attn_out"] }]) {
      const { result, arrays } = await operate({ ...asked, layers, ...more });
      assert.equal(
        result.layers.map(({ layer }) => layer),
        layers,
      );
      assert.is(result.all_layers_from, 0);
      assert.equal(
        result.all_layers!.map(({ layer, norms }) => [layer, norms]),
        all.layers.map(({ layer, norms }) => [layer, norms]),
      );
      const named = ({ predictions, target }: MeasuredLayer) => [
        predictions!.map((list) => list.map(({ token_id }) => token_id)),
        target!.map(({ rank }) => rank),
      ];
      assert.equal(result.all_layers!.map(named), all.layers.map(named));
      // A reader of several places computes in another order: the last digits may differ.
      for (const [index, { predictions }] of result.all_layers!.entries()) {
        for (const [token, list] of predictions!.entries()) {
          for (const [rank, { probability }] of list.entries()) {
            const other = all.layers[index]!.predictions![token]![rank]!.probability;
            assert.ok(Math.abs(probability - other) < 1e-5, `${probability} and ${other}`);
          }
        }
      }
      // Arrays are those of the selected layers alone.
      const points = "points" in more ? 2 : 1;
      assert.is(arrays.size, layers.length * points);
    }
  }
});

test("a headline names the first layer of all, not of the selected ones", async () => {
  const asked = { prompt: "The capital of France is" };
  const { result: dense } = await operate({ ...asked, layers: [...Array(blocks).keys()] });
  const answer = dense.next_tokens[0]!.token_id;
  const first =
    dense.layers.findLastIndex(({ predictions }) => predictions!.at(-1)![0]!.token_id !== answer) + 1;
  assert.ok(first > 1, "the demo model decides in a later layer");
  const { result } = await operate({ ...asked, layers: [0, blocks - 1] });
  assert.is(story(result), story(dense));
  assert.match(story(result), new RegExp(`by layer ${first} `));
});

test("a token is tracked through every cell; the model's answer after the last token", async () => {
  const asked = { ...demoInspect, prompt: "The capital of France is", layers: [0, blocks - 1] };
  const { result: named } = await run({ ...asked, target_token: " Paris" });
  assert.is(named.target_token, " Paris");
  const [first, deepest] = named.layers.map(({ target }) => target ?? []);
  assert.is(first!.length, named.tokens.length);
  // The demo model knows the capital, and its last block's lens shows its answer.
  assert.is(named.next_tokens[0]!.token, " Paris");
  assert.is(named.target_token_id, named.next_tokens[0]!.token_id);
  assert.is(deepest!.at(-1)!.rank, 1);
  assert.ok(Math.abs(deepest!.at(-1)!.probability - named.next_tokens[0]!.probability) < 1e-5);
  assert.ok(first!.at(-1)!.rank > 3, "the first block does not say it yet");
  assert.not.match(named.note, /Did you mean/);
  const { result: close } = await run({ ...asked, prompt: "The capital of France", target_token: "is" });
  assert.match(close.note, /^The target token "is" .* Did you mean " is"\?/);
  const { result: own } = await run({ ...asked, follow_answer: true });
  assert.is(own.target_token, " Paris");
  assert.equal(
    own.layers.map(({ target }) => target),
    named.layers.map(({ target }) => target?.slice(-1)),
  );
  assert.match(
    await failure({ ...asked, target_token: " Paris and" }),
    'target_token must encode to exactly one token; " Paris and" yields 2: " Paris" " and".',
  );
  const both = await harness.request("POST", "/jobs", {
    ...asked,
    target_token: " Paris",
    follow_answer: true,
  });
  assert.equal(
    [both.status, both.body.error],
    [400, "follow_answer: cannot be combined with target_token: they track different tokens."],
  );
});

test("an inspect job's result has exactly the fields of the contract", async () => {
  const { job, result } = await run({ ...demoInspect, layers: [3, 0], seed: 7 });
  assert.ok(Compile(Job).Check(job), JSON.stringify(Compile(Job).Errors(job)).slice(0, 500));
  assert.equal(Object.keys(result).sort(), [
    "all_layers",
    "all_layers_from",
    "artifacts",
    "layers",
    "next_tokens",
    "note",
    "provenance",
    "token_ids",
    "tokens",
  ]);
  const count = result.token_ids.length;
  assert.is(result.tokens.length, count);
  assert.equal(
    result.layers.map(({ layer }) => layer),
    [3, 0],
    "layers come in the order asked for",
  );
  for (const { norms, predictions } of result.layers) {
    assert.is(norms.length, count);
    assert.is(predictions?.length, count);
    for (const top of predictions ?? []) {
      assert.is(top.length, 3);
      assert.ok(top[0]!.probability >= top[1]!.probability && top[1]!.probability >= top[2]!.probability);
    }
  }
  assert.is(result.next_tokens.length, 5);
  assert.equal(result.artifacts, ["activations.npz"]);

  const { provenance } = result;
  assert.is(
    provenance.config_sha256,
    createHash("sha256")
      .update(JSON.stringify(sorted(job.config)))
      .digest("hex"),
  );
  assert.is(provenance.seed, 7);
  assert.equal(provenance.layers, [3, 0]);
  assert.is(provenance.requested_model, "demo");
  assert.is(provenance.requested_revision, null);
  assert.is(provenance.resolved_model.path, demoModelPath);
  const { size, mtimeNs } = await stat(demoModelPath, { bigint: true });
  assert.equal(provenance.weights, [
    { name: "tapline-demo.gguf", bytes: Number(size), modified_ns: String(mtimeNs) },
  ]);
  for (const stage of ["process", "addon", "model", "compute", "artifact"]) {
    assert.type(provenance.seconds[stage], "number", stage);
  }
});

test("activations.npz holds each layer's block outputs, matching their norms", async () => {
  const { job, result } = await run({ ...demoInspect, layers: [5, 1] });
  const bytes = await artifact(job.id);
  const arrays = readNpz(bytes);
  assert.equal([...arrays.keys()], ["layer_5", "layer_1"]);
  const hidden = result.provenance.n_embd;
  for (const { layer, norms } of result.layers) {
    const { shape, data } = arrays.get(`layer_${layer}`)!;
    assert.equal(shape, [1, norms.length, hidden]);
    norms.forEach((norm, token) => {
      const row = data.subarray(token * hidden, (token + 1) * hidden);
      const own = Math.sqrt(row.reduce((sum, value) => sum + value * value, 0));
      assert.ok(Math.abs(own - norm) <= 1e-4 * norm, `layer ${layer}, token ${token}: ${own} and ${norm}`);
    });
  }
  const numpy = readNpzWithNumpy(join(harness.lab.folder, job.id, "activations.npz"));
  if (numpy !== null) {
    for (const [name, { shape, data }] of arrays) {
      assert.equal(numpy[name]?.shape, shape);
      assert.is(numpy[name]?.dtype, "float32");
      assert.ok(
        Math.abs((numpy[name]?.sum ?? Number.NaN) - data.reduce((sum, value) => sum + value, 0)) < 1e-2,
      );
    }
  }
});

test("a prompt longer than one batch is captured as in one pass", async () => {
  const prompt = "The capital of France is Paris. ".repeat(60);
  const { job, result } = await run({
    ...demoInspect,
    prompt,
    max_input_tokens: 1024,
    layers: [0, blocks - 1],
  });
  const tokens = Int32Array.from(result.token_ids);
  assert.ok(tokens.length > 256, `${tokens.length} tokens`);
  const { data } = readNpz(await artifact(job.id)).get(`layer_${blocks - 1}`)!;
  const model = await Model.open(demoModelPath);
  const context = await model.createContext({ nCtx: tokens.length, nBatch: tokens.length });
  const whole = await context.advance({ tokens, layers: [blocks - 1], nextTopK: 5 });
  const expected = whole.layers[0]!.states!.data;
  let difference = 0;
  let length = 0;
  expected.forEach((value, index) => {
    difference += (value - data[index]!) ** 2;
    length += value ** 2;
  });
  assert.ok(Math.sqrt(difference / length) < 1e-3, `relative L2 ${Math.sqrt(difference / length)}`);
  assert.is(result.next_tokens[0]!.token_id, whole.next!.tokenIds[0]);
  // A norm and three predictions for every token of every chunk; the norms match the stored rows.
  const hidden = result.provenance.n_embd;
  for (const { norms, predictions } of result.layers) {
    assert.equal([norms.length, predictions!.length], [tokens.length, tokens.length]);
  }
  result.layers[1]!.norms.forEach((norm, token) => {
    const own = Math.hypot(...data.subarray(token * hidden, (token + 1) * hidden));
    assert.ok(Math.abs(own - norm) <= 1e-4 * norm, `token ${token}: ${own} and ${norm}`);
  });
  await context.close();
  await model.close();
});

test("the last block's lens is the model's own prediction", async () => {
  const { result } = await run({ ...demoInspect, layers: [blocks - 1] });
  const top = result.layers[0]!.predictions!.at(-1)!;
  top.forEach((candidate, index) => {
    assert.is(candidate.token_id, result.next_tokens[index]!.token_id);
    assert.ok(Math.abs(candidate.probability - result.next_tokens[index]!.probability) < 1e-4);
  });
});

test("points inside blocks have norms and arrays, and a lens where they are a stream", async () => {
  const asked = {
    ...demoInspect,
    prompt: "The capital of France is",
    target_token: " Paris",
    layers: [5, 1],
  };
  const { job, result } = await run({ ...asked, points: ["attn_out", "mid", "ffn_out", "block_in"] });
  assert.ok(Compile(Job).Check(job), JSON.stringify(Compile(Job).Errors(job)).slice(0, 500));
  const arrays = readNpz(await artifact(job.id));
  const hidden = result.provenance.n_embd;
  const found = result.points ?? [];
  assert.equal(
    found.map(({ layer, point }) => `${layer} ${point}`),
    [5, 1].flatMap((layer) => ["attn_out", "mid", "ffn_out", "block_in"].map((point) => `${layer} ${point}`)),
  );
  assert.is(arrays.size, 10);
  for (const { layer, point, norms, predictions, target } of found) {
    const { shape, data } = arrays.get(`layer_${layer}_${point}`)!;
    assert.equal(shape, [1, result.tokens.length, hidden]);
    norms.forEach((norm, token) => {
      const own = Math.hypot(...data.subarray(token * hidden, (token + 1) * hidden));
      assert.ok(Math.abs(own - norm) <= 1e-4 * norm, `${layer} ${point} ${token}: ${own} and ${norm}`);
    });
    const stream = point === "mid" || point === "block_in";
    assert.equal(
      [predictions?.length, target?.length],
      stream ? [norms.length, norms.length] : [undefined, undefined],
    );
  }
  // The three parts are the block, and asking for them changes nothing else.
  const row = (name: string) => arrays.get(name)!.data;
  row("layer_5").forEach((value, i) => {
    const parts = row("layer_5_block_in")[i]! + row("layer_5_attn_out")[i]! + row("layer_5_ffn_out")[i]!;
    assert.ok(Math.abs(parts - value) <= 1e-5 * Math.max(1, Math.abs(value)));
  });
  const { result: plain } = await operate(asked);
  assert.equal(plain.layers, result.layers);
  assert.equal(plain.next_tokens, result.next_tokens);
});

test("the heads that the model card names are found by their attention", async () => {
  // Words that come again, as the card's own figures were taken: models/demo/circuits.py.
  const words = "river stone bread chair apple window garden table paper music";
  const asked = { prompt: `${words} ${words}`, layers: [0], attention: { layers: [7, 6, 4, 1] } };
  const { id } = await harness.submit({ ...demoInspect, ...asked, points: ["mid"], decompose: true });
  const job = await harness.finished(id);
  assert.ok(Compile(Job).Check(job), JSON.stringify(Compile(Job).Errors(job)).slice(0, 500));
  const result = job.result as InspectResult;
  const heads = result.attention ?? [];
  assert.equal(
    heads.map(({ layer, head }) => `${layer}.${head}`),
    [7, 6, 4, 1].flatMap((layer) => [0, 1, 2, 3].map((head) => `${layer}.${head}`)),
  );
  const at = (name: string) => heads.find(({ layer, head }) => `${layer}.${head}` === name)!;
  // The card: induction 6.3 (0.97), 7.3 (0.93), 6.0 (0.86); previous token 4.3 (0.89), 1.0 (0.79), 4.1 (0.76).
  for (const name of ["6.3", "7.3", "6.0"])
    assert.ok(at(name).induction! > 0.6, `${name}: ${at(name).induction}`);
  for (const name of ["4.3", "1.0", "4.1"])
    assert.ok(at(name).previous! > 0.5, `${name}: ${at(name).previous}`);
  const others = heads.filter(({ layer, head }) => !["6.3", "7.3", "6.0"].includes(`${layer}.${head}`));
  for (const head of others)
    assert.ok(head.induction! < 0.5, `${head.layer}.${head.head}: ${head.induction}`);
  const arrays = readNpz(await artifact(id, "attention.npz"));
  const n = result.tokens.length;
  const names = [7, 6, 4, 1].map((layer) => `layer_${layer}`);
  assert.equal([...arrays.keys()], [...names, ...names.map((name) => `${name}_head_out`)]);
  assert.equal(arrays.get("layer_6")!.shape, [4, n, n]);
  assert.equal(arrays.get("layer_6_head_out")!.shape, [n, 4, 32]);
  // The figures are those of the arrays.
  const { data } = arrays.get("layer_4")!;
  let previous = 0;
  for (let token = 1; token < n; token++) previous += data[(3 * n + token) * n + token - 1]! / (n - 1);
  assert.ok(Math.abs(previous - at("4.3").previous!) < 1e-6);
  const { result: some, place } = await operate({ ...asked, attention: { layers: [6], heads: [3, 1] } });
  assert.equal(some.attention, [at("6.3"), at("6.1")]);
  // The file holds the selected heads in that order, and no others.
  const all = arrays.get("layer_6_head_out")!.data;
  const chosen = readNpz(readFileSync(join(place, "attention.npz"))).get("layer_6_head_out")!;
  assert.equal(chosen.shape, [n, 2, 32]);
  for (let token = 0; token < n; token++) {
    for (const [place, head] of [3, 1].entries()) {
      const of = (data: ArrayLike<number>, start: number) =>
        Array.from({ length: 32 }, (_, i) => data[start + i]);
      assert.equal(of(chosen.data, (2 * token + place) * 32), of(all, (4 * token + head) * 32));
    }
  }
  const refusal = (attention: object, more: object = {}) =>
    operate({ ...asked, ...more, attention }).then(
      () => assert.unreachable("it was refused"),
      (error: Error) => error.message,
    ) as Promise<string>;
  assert.is(
    await refusal({ layers: [6], heads: [4, 1] }),
    "attention.heads: 4 does not exist; block 6 has 4 heads, 0 to 3.",
  );
  assert.match(await refusal({ layers: [8] }), "layers: 8 does not exist");
});

test("attention is refused before computing if too large or if a block has none", () => {
  const attention = { supported: true, reason: "", layers: [0, 1, 3], heads: [32, 32, 32] };
  const context = { points: { attention } } as unknown as Context;
  const said = (layers: number[], heads: number[] | undefined, tokens: number) => {
    try {
      checkAttention(context, layers, heads, tokens);
      return "accepted";
    } catch (error) {
      return (error as Error).message;
    }
  };
  // 64 heads of 1024 x 1024 numbers in four bytes are 256 MiB.
  assert.is(said([0, 1], undefined, 1024), "accepted");
  assert.is(
    said([0, 1, 3], undefined, 1024),
    "attention: 96 heads of 3 layers over 1024 tokens take 384 MiB; the limit is 256 MiB. Choose fewer layers or heads.",
  );
  assert.is(said([0, 1, 3], [5, 31], 1024), "accepted");
  assert.is(
    said([0, 2], undefined, 8),
    "attention: block 2 mixes tokens without attention weights; the model has them in blocks 0, 1, 3.",
  );
});

test("a logit is the sum of contributions of the embedding and every block", async () => {
  const asked = { prompt: "The capital of France is", decompose: true };
  const { result } = await operate(asked);
  const { target_token, logit, sum, embedding, constant, blocks } = result.decomposition!;
  assert.is(target_token, " Paris", "without a target it is the model's answer");
  assert.equal(
    blocks.map(({ layer }) => layer),
    Array.from({ length: blocks.length }, (_, layer) => layer),
  );
  assert.is(blocks.length, 8);
  const own = blocks.reduce((all, { attention, mlp }) => all + attention + mlp, embedding + constant);
  assert.ok(Math.abs(own - sum) < 1e-9);
  // The remainder comes from the model's own head, which multiplies in F16.
  assert.ok(Math.abs(sum - logit) < 1e-3 * Math.abs(logit), `${sum} and ${logit}`);
  // The answer is made late: the card's hand-over of the subject lies between blocks 3 and 5.
  const late = blocks.slice(4).reduce((all, { attention, mlp }) => all + attention + mlp, 0);
  assert.ok(late > 0.5 * sum, `${late} of ${sum}`);
  const { result: named } = await operate({ ...asked, target_token: " Tokyo" });
  assert.is(named.decomposition!.target_token, " Tokyo");
  assert.ok(named.decomposition!.logit < logit);
});

test("in 32-bit floats the contributions sum to the logit to 1e-4", async () => {
  const path = join(folder, "demo-f32.gguf");
  writeInF32(demoModelPath, path);
  const exact = await Model.open(path);
  try {
    const sums: number[][] = [];
    for (const form of [exact, model]) {
      const context = await form.createContext({ nCtx: 64, threads: 1 });
      for (const prompt of ["The capital of France is", "John and Mary went out. John gave a book to", "x"]) {
        const { logit, sum } = await decompose(form, context, await form.tokenize(prompt), null);
        if (form === exact) assert.ok(Math.abs(sum - logit) <= 1e-4, `${prompt}: ${sum} and ${logit}`);
        sums.push([logit, sum]);
      }
    }
    // The same weights: what F16 leaves open is the products' rounding alone.
    for (const [index, [, sum]] of sums.slice(0, 3).entries()) {
      assert.ok(Math.abs((sum as number) - (sums[index + 3]?.[1] as number)) < 0.05, `${sums}`);
    }
  } finally {
    await exact.close();
  }
});

test("the same configuration gives the same numbers and the same file", async () => {
  const first = await run({ ...demoInspect, layers: [2, 4] });
  const second = await run({ ...demoInspect, layers: [2, 4] });
  const { provenance: _a, ...a } = first.result;
  const { provenance: _b, ...b } = second.result;
  assert.equal(a, b);
  assert.ok((await artifact(first.job.id)).equals(await artifact(second.job.id)));
});

test("errors that only the model can detect fail the job and name the numbers", async () => {
  assert.is(
    await failure({ ...demoInspect, layers: [blocks, 2, 200] }),
    `layers: ${blocks}, 200 do not exist; the model has ${blocks} blocks, 0 to ${blocks - 1}.`,
  );
  assert.match(
    await failure({ ...demoInspect, max_input_tokens: 3 }),
    /^prompt has \d+ tokens; max_input_tokens allows 3\.$/,
  );
  assert.match(
    await failure({ ...demoInspect, prompt: "Paris ".repeat(600), max_input_tokens: 1024 }),
    new RegExp(`^prompt has \\d+ tokens; the model was trained on at most ${positions} positions\\.$`),
  );
});

test("a prompt of exactly max_input_tokens is accepted", async () => {
  const { result } = await run(demoInspect);
  const count = result.token_ids.length;
  assert.is((await run({ ...demoInspect, max_input_tokens: count })).result.token_ids.length, count);
  assert.match(await failure({ ...demoInspect, max_input_tokens: count - 1 }), `has ${count} tokens`);
});

test.run();
