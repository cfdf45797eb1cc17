import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { demoModelPath } from "../../src/models/resolve.js";
import type { Edit } from "../../src/native/edit.js";
import { Engine } from "../../src/native/engine.js";
import type { LivePlan } from "../../src/native/live.js";
import { writeInF32 } from "../support/f32-model.js";
import { TestRandom } from "../support/random.js";

const test = suite("edits in the graph");
const folder = mkdtempSync(join(tmpdir(), "tapline-graph-"));
const path = join(folder, "f32.gguf");
let graph: Engine;
let callback: Engine;

/** Numbers are rounded to F32 in another order; the model is in F32, so that nothing makes that larger. */
const rounding = 2e-6;

test.before(async () => {
  writeInF32(demoModelPath, path);
  const open = (edits: "graph" | "callback") =>
    Engine.open({
      ...{ path, id: "demo", threads: 1, parallel: 4, batch: 32, ctxSize: 128, cacheRamMiB: 0, edits },
      ...{ cacheTypeK: "f32", cacheTypeV: "f32", flashAttention: "off", twin: true, embeddings: true },
    });
  [graph, callback] = [await open("graph"), await open("callback")];
});
test.after(async () => {
  await graph.close();
  await callback.close();
  rmSync(folder, { recursive: true });
});

const random = new TestRandom(4);
const [vector, other] = [random.normals(128), random.normals(128)];
const last = 7;
const steer = (strength: number, more: Partial<Edit> = {}): Edit => {
  return { layer: 4, vector, strength, unit: "row_norm", positions: "all", ...more };
};
const clamp = (more: Partial<Edit>): Edit => {
  return { layer: 2, kind: "clamp", vector, positions: "all", ...more } as Edit;
};

const plans: Record<string, Edit[]> = {
  "steer by a share of the activation": [steer(0.7)],
  "steer by the vector": [steer(0.7, { unit: "vector" })],
  "steer by a length": [steer(3, { unit: "unit" })],
  "the prompt": [steer(0.7, { positions: "prompt" })],
  "generated tokens": [steer(0.7, { positions: "generated" })],
  "the last token": [steer(0.7, { positions: "last" })],
  "tokens by index": [steer(0.9, { positions: [[0, 3]] })],
  "tokens from the prompt's end": [steer(0.9, { positions: [[-3, -2]] })],
  "the first block": [steer(0.5, { layer: 0 })],
  "the last block": [steer(0.9, { layer: last })],
  "the last block, by a length": [steer(9, { layer: last, unit: "unit" })],
  "a block's input": [steer(0.5, { layer: 3, point: "block_in" })],
  scale: [{ layer: 3, scale: 0.5, positions: "all" }],
  ablate: [{ layer: 5, scale: 0, positions: "generated" }],
  patch: [{ layer: 5, scale: 0, vector: other, strength: 6, positions: "last" }],
  "scale and steer": [
    { layer: 5, scale: 0.3, vector: other, strength: 0.5, unit: "row_norm", positions: "all" },
  ],
  "project out": [{ layer: 2, kind: "project_out", vector: other, strength: 0.8, positions: "all" }],
  "clamp by lengths": [clamp({ min: 5, max: 6, unit: "unit" })],
  "clamp by shares": [clamp({ min: 0.1, max: 0.2, unit: "row_norm" })],
  "clamp from below": [clamp({ min: 2, unit: "vector" })],
  "clamp from above": [clamp({ max: -2, unit: "unit", strength: 0.5 })],
  "several layers": [steer(0.4), steer(0.3, { layer: 6 }), clamp({ max: 1, unit: "unit" })],
  "several at one layer": [
    steer(0.4),
    { layer: 4, scale: 0.9, positions: "generated" },
    { layer: 4, kind: "project_out", vector: other, positions: "all" },
    steer(0.2, { vector: other, positions: "last" }),
  ],
};

interface Read {
  norms: Record<string, number>;
  projections?: Record<string, number>;
  probes?: Record<string, number>;
}
interface Choice {
  logprobs: { content: { id: number; logprob: number }[] };
  tapline: {
    computed: string;
    interventions?: { rows: number; mean_row_length: number; mean_change_length: number }[];
    prompt?: Read[];
    tokens?: Read[];
  };
}

async function ask(engine: Engine, prompt: string, plan: LivePlan, more: object = {}): Promise<Choice[]> {
  const body = { prompt, max_tokens: 6, ignore_eos: true, temperature: 0, logprobs: 1, cache_prompt: false };
  const reply = await engine.request("completion", { ...body, ...more }, undefined, plan);
  assert.is(reply.status, 200, reply.body);
  return (JSON.parse(reply.body) as { choices: Choice[] }).choices;
}

/** All numbers of answers, each with the size that its rounding is relative to. */
function numbersOf(choices: Choice[]): [name: string, value: number | null, size: number][] {
  return choices.flatMap(({ logprobs, tapline: { interventions, prompt, tokens } }) => [
    // Logits of up to 30 are subtracted from one another.
    ...logprobs.content.map(({ logprob }) => ["logprob", logprob, 30] as [string, number, number]),
    ...(interventions ?? []).flatMap((each) => [
      ["rows", each.rows, 1] as [string, number, number],
      ["row length", each.mean_row_length, each.mean_row_length] as [string, number, number],
      // An activation plus a change is rounded to the activation's precision.
      ["change", each.mean_change_length, each.mean_row_length] as [string, number, number],
    ]),
    ...[...(prompt ?? []), ...(tokens ?? [])].flatMap(({ norms, projections, probes }) => [
      ...Object.values(norms).map((norm) => ["norm", norm, norm] as [string, number | null, number]),
      ...Object.values(projections ?? {}).map(
        (value) => ["projection", value, 40] as [string, number | null, number],
      ),
      ...Object.values(probes ?? {}).map((value) => ["probe", value, 10] as [string, number | null, number]),
    ]),
  ]);
}

function compare(found: Choice[], wanted: Choice[]): void {
  assert.equal(
    found.map(({ logprobs }) => logprobs.content.map(({ id }) => id)),
    wanted.map(({ logprobs }) => logprobs.content.map(({ id }) => id)),
  );
  const [numbers, expected] = [numbersOf(found), numbersOf(wanted)];
  assert.is(numbers.length, expected.length);
  for (const [i, [name, value, size]] of expected.entries()) {
    const there = numbers[i]![1];
    const close = value === null ? there === null : Math.abs(there! - value) <= rounding * Math.abs(size);
    assert.ok(close, `${name} ${i}: ${there} instead of ${value}`);
  }
}

const probe = { name: "odd", layer: 3, weight: Float64Array.from(other, (value) => value / 50), bias: 0.1 };
const watch: LivePlan["watch"] = {
  ...{ layers: [1, 4, last], positions: "all", norms: true, probes: true },
  projections: [
    { name: "along", layer: 4, vector },
    { name: "in", layer: 3, point: "block_in", vector: other },
    { name: "at the end", layer: last, vector },
  ],
};
const start = "The review says that the film was good. ".repeat(6);

for (const [name, edits] of Object.entries(plans)) {
  test(`equal the callback's: ${name}`, async () => {
    // The second prompt is computed in three batches.
    for (const prompt of ["The capital of France is", `${start}The capital of France is`]) {
      const plan: LivePlan = { edits, probes: [probe], watch: watch! };
      const [found, wanted] = [await ask(graph, prompt, plan), await ask(callback, prompt, plan)];
      assert.equal([found[0]!.tapline.computed, wanted[0]!.tapline.computed], ["graph", "callback"]);
      assert.ok(wanted[0]!.tapline.interventions!.some(({ mean_change_length: change }) => change > 0.01));
      compare(found, wanted);
    }
  });
}

test("equal the callback's for several choices and next to the unedited ones", async () => {
  const plan: LivePlan = {
    edits: plans["several at one layer"]!,
    pair: true,
    watch: { ...watch!, probes: false },
  };
  const more = { n: 2, temperature: 1, seed: 3, max_tokens: 4 };
  const edited = (choices: Choice[]) => choices.filter(({ tapline }) => tapline.interventions);
  const prompt = `${start}The capital of France is`;
  const [found, wanted] = [await ask(graph, prompt, plan, more), await ask(callback, prompt, plan, more)];
  assert.is(found.length, 4);
  assert.is(edited(found).length, 2);
  compare(edited(found).slice(0, 1), edited(wanted).slice(0, 1));
});

test("an edit that acts from a later token on changes the graph of the same batch", async () => {
  const prompt = "The capital of Italy is";
  const later: [string, LivePlan][] = [
    ["by its position", { edits: [{ layer: 2, scale: 0.5, positions: [[9, 10]] }] }],
    [
      "by a condition, while other layers are read",
      {
        edits: [clamp({ layer: 1, min: 8, max: 9, unit: "unit" })],
        gates: [0],
        probes: [probe],
        // A score is above 0, so this is met by the third generated token.
        conditions: [{ probe: 0, bound: 0, above: true, tokens: 3 }],
        watch: watch!,
      },
    ],
  ];
  for (const [name, plan] of later) {
    for (const engine of [graph, callback]) {
      // A plain request: no layer is armed after it.
      await engine.request("completion", { prompt, max_tokens: 2 });
    }
    const [found, wanted] = [await ask(graph, prompt, plan), await ask(callback, prompt, plan)];
    const [effect] = wanted[0]!.tapline.interventions!;
    assert.ok(effect!.rows >= 2 && effect!.rows <= 4 && effect!.mean_change_length > 0.1, name);
    assert.is(found[0]!.tapline.computed, "graph", name);
    compare(found, wanted);
  }
});

test("equal the callback's for embeddings", async () => {
  const plan: LivePlan = { edits: [steer(0.7), clamp({ min: 2, unit: "vector" })] };
  const embed = async (engine: Engine) => {
    const body = { input: ["The capital of France is", `${start}Paris`], model: "demo" };
    const reply = await engine.request("embeddings", body, undefined, plan);
    assert.is(reply.status, 200, reply.body);
    return (JSON.parse(reply.body) as { data: { embedding: number[] }[] }).data.flatMap(
      (each) => each.embedding,
    );
  };
  const [found, wanted] = [await embed(graph), await embed(callback)];
  assert.is(found.length, 2 * 128);
  for (const [i, value] of wanted.entries()) assert.ok(Math.abs(found[i]! - value) < 1e-5, `${i}`);
});

test("equal the callback's with a draft model", async () => {
  const answers: Choice[][] = [];
  for (const edits of ["graph", "callback"] as const) {
    const engine = await Engine.open({
      ...{
        path,
        draft: path,
        id: "demo",
        threads: 1,
        parallel: 2,
        batch: 32,
        ctxSize: 128,
        cacheRamMiB: 0,
        edits,
      },
      ...{ cacheTypeK: "f32", cacheTypeV: "f32", flashAttention: "off" },
    });
    try {
      const plan: LivePlan = {
        edits: [steer(0.1), steer(0.1, { layer: last })],
        watch: { ...watch!, probes: false },
      };
      const reply = await engine.request(
        "completion",
        {
          prompt: "The capital of France is",
          max_tokens: 12,
          ignore_eos: true,
          temperature: 0,
          return_tokens: true,
        },
        undefined,
        plan,
      );
      assert.is(reply.status, 200, reply.body);
      const { choices } = JSON.parse(reply.body) as { choices: (Choice & { text: string })[] };
      answers.push(choices.map((choice) => ({ ...choice, logprobs: { content: [] } })));
      assert.is(choices[0]!.tapline.computed, edits);
    } finally {
      await engine.close();
    }
  }
  compare(answers[0]!, answers[1]!);
  assert.is((answers[0]![0] as { text?: string }).text, (answers[1]![0] as { text?: string }).text);
});

test("equal the callback's when an answer fills its slot, which ends it: no context shift", async () => {
  const plan: LivePlan = { edits: [steer(0.3), clamp({ max: 1, unit: "unit" })], watch };
  const full = async (engine: Engine) => {
    const choices = await ask(engine, start, { ...plan, probes: [probe] }, { max_tokens: 500 });
    const { finish_reason: reason } = choices[0] as unknown as { finish_reason: string };
    assert.is(reason, "length");
    const { prompt, tokens } = choices[0]!.tapline;
    // A shift would drop the first tokens and continue to 500. A slot has 256.
    assert.is(prompt!.length + tokens!.length, 256);
    return choices;
  };
  const [found, wanted] = [await full(graph), await full(callback)];
  assert.equal([found[0]!.tapline.computed, wanted[0]!.tapline.computed], ["graph", "callback"]);
  compare(found, wanted);
  // The slot's next, plain request is compared with the twin by the last test.
  await ask(graph, start, {}, { cache_prompt: true });
});

test("equal the callback's after a shift of the cache, and plain answers keep their bits", async () => {
  const common = "The review says that the film was good, and that the actors were better. ".repeat(2);
  const [before, after] = [`I read this. Yesterday I was away. ${common}`, `I read this. ${common}`];
  const edited: LivePlan = {
    edits: [steer(0.7, { positions: "generated" })],
    watch: { ...watch!, positions: "generated" },
    probes: [probe],
  };
  const found: Choice[][] = [];
  for (const edits of ["graph", "callback"] as const) {
    const engine = await Engine.open({
      ...{ path, id: "demo", threads: 1, parallel: 2, batch: 32, ctxSize: 256, cacheRamMiB: 0, edits },
      ...{ cacheTypeK: "f32", cacheTypeV: "f32", flashAttention: "off" },
    });
    try {
      /** A slot's answers to three requests, of which the second and third have most of their prompt in the cache. */
      const answers = async (slot: number, plan: LivePlan | undefined) => {
        const send = async (prompt: string, plan?: LivePlan) => {
          const body = { prompt, id_slot: slot, n_cache_reuse: 8, max_tokens: 6, ignore_eos: true };
          const reply = await engine.request(
            "completion",
            { ...body, temperature: 0, logprobs: 1 },
            undefined,
            plan,
          );
          assert.is(reply.status, 200, reply.body);
          return JSON.parse(reply.body) as {
            choices: Choice[];
            usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
          };
        };
        await send(before);
        const moved = await send(after, plan);
        const { prompt_tokens: all, prompt_tokens_details: details } = moved.usage;
        assert.ok(
          details.cached_tokens > 0.8 * all && details.cached_tokens < all,
          `${details.cached_tokens}`,
        );
        return { moved: moved.choices, next: (await send(after)).choices.map(({ logprobs }) => logprobs) };
      };
      const [steered, plain] = [await answers(0, edited), await answers(1, undefined)];
      found.push(steered.moved);
      assert.is(steered.moved[0]!.tapline.computed, edits);
      assert.not.equal(steered.moved[0]!.logprobs, plain.moved[0]!.logprobs);
      assert.equal(steered.next, plain.next);
    } finally {
      await engine.close();
    }
  }
  compare(found[0]!, found[1]!);
});

test("requests of both kinds share batches, each as alone", async () => {
  const inside: LivePlan = {
    edits: [steer(0.5, { point: "mid" }), steer(0.3)],
    watch: { layers: [4, 5], positions: "all", norms: true },
  };
  const inGraph: LivePlan = {
    edits: [steer(0.6), clamp({ layer: 4, max: 1, unit: "unit" })],
    watch,
    probes: [probe],
  };
  const prompts = ["The capital of France is", start];
  const cases = prompts.flatMap((prompt) => [
    { prompt, plan: inside, where: "callback" },
    { prompt, plan: inGraph, where: "graph" },
  ]);
  for (let round = 0; round < 3; round++) {
    const found = await Promise.all(
      cases.map(({ prompt, plan }) => ask(graph, prompt, plan, { max_tokens: 16 })),
    );
    for (const [i, { prompt, plan, where }] of cases.entries()) {
      assert.is(found[i]![0]!.tapline.computed, where);
      compare(found[i]!, await ask(callback, prompt, plan, { max_tokens: 16 }));
    }
  }
});

test("the callback reads block outputs that the graph only measures", async () => {
  // The outputs of blocks 2 and 4 are watched; that of block 6 is checked, because of the edit.
  const watched: LivePlan = { watch: { layers: [2, 4], positions: "all", norms: true } };
  const edited: LivePlan = { edits: [steer(0.2, { layer: 1 })] };
  const lens: LivePlan = { watch: { layers: [2, 4, 6], positions: "all", norms: true, lensTop: 1 } };
  const cases = [watched, edited, lens].map((plan) => ({ prompt: start, plan }));
  for (let round = 0; round < 3; round++) {
    const found = await Promise.all(
      cases.map(({ prompt, plan }) => ask(graph, prompt, plan, { max_tokens: 16 })),
    );
    assert.equal(
      found.map(([choice]) => choice!.tapline.computed),
      ["graph", "graph", "callback"],
    );
    for (const [i, { prompt, plan }] of cases.entries()) {
      compare(found[i]!, await ask(callback, prompt, plan, { max_tokens: 16 }));
    }
  }
});

test("points in the last block are proven next to an edit of its output", async () => {
  const edited: LivePlan = { edits: [steer(0.5, { layer: last })] };
  const inside: LivePlan = {
    edits: [{ layer: last, point: "head_out", scale: 0.5, positions: "all" }],
    watch: { layers: [last], point: "attn_out", positions: "all", norms: true },
  };
  // Where the prompt's tokens are without those of the other request, the block computes no row.
  const prompt = `${start}The capital of France is`;
  const more = { max_tokens: 2 };
  const wanted = await ask(callback, prompt, inside, more);
  let together = false;
  for (let attempt = 0; attempt < 20 && !together; attempt++) {
    let running = true;
    const long = ask(graph, "Tom", edited, { max_tokens: 200 }).finally(() => {
      running = false;
    });
    const found = await ask(graph, prompt, inside, more);
    together = running;
    const [other] = await long;
    assert.equal([found[0]!.tapline.computed, other!.tapline.computed], ["callback", "graph"]);
    compare(found, wanted);
  }
  assert.ok(together, "the requests never shared a batch");
});

test("requests that the graph cannot compute use the callback and report it", async () => {
  const edits = [steer(0.5)];
  const read: [string, LivePlan][] = [
    ["a lens", { edits, watch: { layers: [2], positions: "all", lensTop: 1 } }],
    [
      "a point inside a block",
      { edits, watch: { layers: [2], positions: "all", norms: true, point: "mid" } },
    ],
    // 40 nodes each, in a graph of at most 1,024; ggml aborts the process beyond that.
    [
      "more edits than the graph has room for",
      { edits: Array.from({ length: 16 }, () => clamp({ max: 1, unit: "unit" })) },
    ],
    ["an edit inside a block", { edits: [steer(0.5, { point: "attn_out" })] }],
  ];
  for (const [name, plan] of read) {
    const [choice] = await ask(graph, "The capital of France is", plan);
    assert.is(choice!.tapline.computed, "callback", name);
  }
});

test("changes that overflow end the request, and the slot answers as before", async () => {
  const body = { prompt: "The capital of France is", max_tokens: 4, temperature: 0, logprobs: 1, id_slot: 0 };
  const plain = async () => {
    const { body: text } = await graph.request("completion", body);
    return JSON.stringify((JSON.parse(text) as { choices: Choice[] }).choices[0]!.logprobs);
  };
  const before = await plain();
  for (const edit of [
    { scale: 3e38 },
    { vector, strength: 3e38 },
    { vector, strength: 1e30, unit: "row_norm" as const },
  ]) {
    const plan: LivePlan = { edits: [{ layer: 0, positions: "all", ...edit }] };
    const { status, body: text } = await graph.request(
      "completion",
      { ...body, prompt: start },
      undefined,
      plan,
    );
    assert.is(status, 400, text);
    assert.match(text, /non-finite/);
    assert.is(await plain(), before);
  }
});

test("unedited rows of these batches have the bits of unedited batches", async () => {
  const { plain, neutral, lost, first, edited } = graph.twin()!;
  assert.equal([plain.different, neutral.different, lost, first], [0, 0, 0, ""]);
  assert.ok(plain.beside > 0 && edited.different > 0);
});

test.run();
