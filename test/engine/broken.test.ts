/** Live requests that go wrong: what they answer, and what the slots that they used hold afterwards. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { demoModelPath } from "../../src/models/resolve.js";
import type { Edit } from "../../src/native/edit.js";
import { Engine } from "../../src/native/engine.js";
import type { LivePlan } from "../../src/native/live.js";
import { binding } from "../../src/native/load.js";

/** As far as it is asked here without src/native/ before it. */
interface NativeEngine {
  open(route: string, body: string, live: object): number;
  close(): Promise<void>;
}

let engine: Engine;
const slots = 2;
test.before(async () => {
  // Without flash attention masked numbers are multiplied by 0, so that NaN in an unused cell is seen.
  engine = await Engine.open({
    ...{ path: demoModelPath, id: "demo", threads: 1, parallel: slots, batch: 32, ctxSize: 512 },
    ...{ flashAttention: "off", cacheRamMiB: 0 },
  });
});
test.after(() => engine.close());

/** Four batches of 32 tokens or more. */
const prompt = `${"The review says that the film was good. ".repeat(14)}The capital of France is`;
const overflow = (positions: Edit["positions"]): Edit[] =>
  Array.from({ length: 10 }, () => ({ layer: 2, scale: 1e6, positions }));

const ask = (body: object, plan?: LivePlan) =>
  engine.request(
    "completion",
    { prompt, max_tokens: 4, temperature: 0, ignore_eos: true, ...body },
    undefined,
    plan,
  );

// biome-ignore lint/suspicious/noExplicitAny: tests read whatever comes
async function choices(body: object = {}, plan?: LivePlan): Promise<any[]> {
  const reply = await ask(body, plan);
  assert.is(reply.status, 200, reply.body);
  return JSON.parse(reply.body).choices;
}

/** What a plain request answers on each slot: tokens and log-probabilities, first computed, then from the cache. */
async function plainAnswers(): Promise<object[]> {
  const answers: object[] = [];
  for (let slot = 0; slot < slots; slot++) {
    for (const cached of [false, true]) {
      const [choice] = await choices({ id_slot: slot, cache_prompt: cached, logprobs: 3 });
      answers.push({ text: choice.text, logprobs: choice.logprobs });
    }
  }
  return answers;
}

test("an overflow in the first prompt batch ends the request and clears its slot", async () => {
  const before = await plainAnswers();
  for (const stream of [false, true]) {
    for (let slot = 0; slot < slots; slot++) {
      const reply = await ask({ id_slot: slot, stream, logprobs: 3 }, { edits: overflow([[0, 1]]) });
      let { body } = reply;
      if (reply.parts) for await (const part of reply.parts) body += part.data;
      assert.match(body, /made the model's numbers non-finite: the change is too large/);
      assert.not.match(body, /"text"/);
    }
    assert.equal(await plainAnswers(), before, `stream: ${stream}`);
  }
});

test("choices that copy a broken prompt fail with it and clear their slots", async () => {
  const before = await plainAnswers();
  for (const positions of [[[0, 1]], [[-1, -1]], "prompt"] as Edit["positions"][]) {
    for (const tokens of [1, 4]) {
      const { status, body } = await ask({ n: slots, max_tokens: tokens }, { edits: overflow(positions) });
      assert.is(status, 400, body);
      assert.match(body, /non-finite/);
      assert.equal(await plainAnswers(), before, `${JSON.stringify(positions)}, ${tokens} tokens`);
    }
  }
});

test("edits and readings of the prompt apply to every choice", async () => {
  const edits: Edit[] = [{ layer: 2, scale: 0.2, positions: "prompt" }];
  const watch = { layers: [1, 4], positions: "all", norms: true, lensTop: 1 } as const;
  const [{ tapline: alone }] = await choices({ max_tokens: 1 }, { edits, watch });
  const length = alone.prompt.length;
  assert.ok(length > 100);
  assert.is(alone.interventions[0].rows, length);
  for (const max_tokens of [1, 3]) {
    const all = await choices({ n: slots, max_tokens }, { edits, watch });
    assert.is(all.length, slots);
    for (const { tapline } of all) {
      assert.is(tapline.interventions[0].rows, length);
      assert.is(tapline.interventions[0].note, undefined);
      assert.equal(tapline.interventions, alone.interventions);
      assert.equal(tapline.prompt, alone.prompt);
      assert.is(tapline.tokens.length, max_tokens);
    }
  }
  // A choice's own rows come on top of the prompt's.
  for (const { tapline } of await choices({ n: slots }, { edits: [{ ...edits[0]!, positions: "all" }] }))
    assert.is(tapline.interventions[0].rows, length + 3);
});

test("the addon itself refuses plans that do not fit the model", async () => {
  const { nEmbd, nLayer } = engine.info;
  const vector = new Float32Array(nEmbd);
  const edit = { ...{ layer: 2, kind: "affine", unit: "vector", vector }, positions: {} };
  const { openEngine } = binding<{ openEngine(options: object): Promise<NativeEngine> }>();
  const native = await openEngine({
    path: demoModelPath,
    id: "demo",
    threads: 1,
    embeddings: -1,
    thinking: -1,
  });
  try {
    const weight = new Float64Array(nEmbd);
    for (const [plan, sentence] of [
      [
        { edits: [{ ...edit, point: "attn_out" }] },
        "A live edit can only change block outputs, not attn_out.",
      ],
      [
        { edits: [{ ...edit, point: "block_in" }] },
        "A live edit can only change block outputs, not block_in.",
      ],
      [
        { edits: [{ ...edit, layer: nLayer }] },
        `Layer ${nLayer} does not exist: the model has layers 0 to ${nLayer - 1}.`,
      ],
      [
        { edits: [{ ...edit, layer: -1 }] },
        `Layer -1 does not exist: the model has layers 0 to ${nLayer - 1}.`,
      ],
      [
        { edits: [{ ...edit, vector: vector.subarray(1) }] },
        `An edit's vector has ${nEmbd - 1} values; the hidden size is ${nEmbd}.`,
      ],
      [
        { edits: [{ ...edit, kind: "project_out", vector: undefined }] },
        "An edit of a projection needs a vector.",
      ],
      [{ edits: [edit], gates: [0] }, "A gate is entry 0 of a list of 0."],
      [{ stop: 1 }, "The stop condition is entry 1 of a list of 0."],
      [{ conditions: [{ probe: 0, bound: 0 }] }, "A condition's probe is entry 0 of a list of 0."],
      [
        { probes: [{ name: "p", layer: 0, weight: weight.subarray(1), bias: 0 }] },
        `A probe has ${nEmbd - 1} values; the hidden size is ${nEmbd}.`,
      ],
      [
        { watch: { layers: [nLayer] } },
        `Layer ${nLayer} does not exist: the model has layers 0 to ${nLayer - 1}.`,
      ],
      [
        { watch: { layers: [], projections: [{ name: "v", layer: 0, vector: vector.subarray(2) }] } },
        `A projection's vector has ${nEmbd - 2} values; the hidden size is ${nEmbd}.`,
      ],
    ] as [object, string][]) {
      let refusal = "taken";
      try {
        native.open("completion", JSON.stringify({ prompt: "x" }), plan);
      } catch (error) {
        refusal = (error as Error).message;
      }
      assert.is(refusal, sentence);
    }
  } finally {
    await native.close();
  }
});

// The library that takes memory away: Linux, with a C compiler, and not under a sanitizer.
const folder = mkdtempSync(join(tmpdir(), "tapline-broken-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));
const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const library = join(folder, "scarce.so");
const scarce =
  process.platform === "linux" &&
  process.env.TAPLINE_SANITIZED === undefined &&
  spawnSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, here("../support/faults/scarce.c"), "-ldl"])
    .status === 0;

if (scarce) {
  test("an exception in the middle of a prompt leaves no half of it to be reused", () => {
    const bytes = String(7 * engine.info.nEmbd * 4);
    const script = here("./fixtures/scarce-live.ts");
    const output = execFileSync(process.execPath, ["--import", "tsx", script, demoModelPath, bytes], {
      encoding: "utf8",
      env: { ...process.env, LD_PRELOAD: library, SCARCE_BYTES: bytes },
    });
    const { before, failed, after } = JSON.parse(output);
    assert.match(failed, /^500: decode\(\) failed/);
    assert.equal(after, [...before, ...before]);
  });
}

/** What a program of fixtures/ prints, which may end by a signal. */
const printed = (name: string) =>
  JSON.parse(
    execFileSync(process.execPath, ["--import", "tsx", here(`./fixtures/${name}.ts`), demoModelPath], {
      encoding: "utf8",
      timeout: 120_000,
    }),
  );

if (process.platform === "linux") {
  test("a held feature reads the others only where they matter", () => {
    assert.equal(printed("untouched"), { status: 200, change: 0, rows: true });
  });

  test("the lens of live requests keeps its threads from step to step", () => {
    assert.equal(printed("lens-threads"), { statuses: [200, 200], begun: 1, kept: true });
  });
}

test("a callback that throws delays nothing that is delivered with it", () => {
  assert.equal(printed("throwing"), { status: 200, thrown: ["thrown by the callback"] });
});

test.run();
