/** What requests change and watch, asked of the engine itself: bounds, completions that share a prompt, broken numbers. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { demoModelPath } from "../../src/models/resolve.js";
import type { Edit } from "../../src/native/edit.js";
import { Engine } from "../../src/native/engine.js";
import type { CapturedRows, LivePlan } from "../../src/native/live.js";

let engine: Engine;
const prompt = "The capital of France is";
const layers = [2, 5];

test.before(async () => {
  // Without flash attention what is masked is multiplied with 0, so that a number that is not finite would be seen.
  engine = await Engine.open({
    ...{ path: demoModelPath, id: "demo", threads: 1, parallel: 2, batch: 32, ctxSize: 128 },
    flashAttention: "off",
  });
});
test.after(() => engine.close());

interface Choice {
  text: string;
  finish_reason: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever comes
  tapline?: any;
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever comes
  logprobs?: any;
}

async function ask(plan?: LivePlan, more: object = {}): Promise<Choice[]> {
  const { status, body } = await engine.request(
    "completion",
    { prompt, max_tokens: 6, temperature: 0, ignore_eos: true, ...more },
    undefined,
    plan,
  );
  assert.is(status, 200, body);
  return (JSON.parse(body) as { choices: Choice[] }).choices;
}

const direction = () => Float32Array.from({ length: engine.info.nEmbd }, (_, i) => Math.sin(1.3 * i));
const steer = (more: Partial<Edit> = {}): Edit => ({
  ...{ layer: 4, vector: direction(), strength: 0.8, unit: "row_norm", positions: "all" },
  ...more,
});

/** The rows that were kept of the prompt and of the answer, and what the answer says about them. */
async function kept(rows: number, more: object = {}) {
  const bytes = rows * layers.length * engine.info.nEmbd * 4;
  const found: CapturedRows[] = [];
  const keep = (one: CapturedRows) => void found.push(one);
  const choices = await ask({ watch: { layers, positions: "all", states: { id: "k", bytes, keep } } }, more);
  return { found, told: choices.map(({ tapline }) => tapline.capture) };
}

test("captured rows never exceed the bound, in prompts and generation", async () => {
  const all = (await kept(1000)).found[0]!;
  const total = all.rows.length;
  assert.is(total, all.promptTokens + 5);
  for (const rows of [0, 1, all.promptTokens, all.promptTokens + 2, total - 1, total]) {
    const { found, told } = await kept(rows);
    assert.equal(
      [...found[0]!.rows],
      Array.from({ length: rows }, (_, row) => row),
    );
    assert.is(told[0].rows, rows);
    assert.is(told[0].note, rows < total ? "Rows beyond the limit of a capture were not saved." : undefined);
    for (const [i, { values }] of found[0]!.layers.entries())
      assert.is(values.length, rows * engine.info.nEmbd, `layer ${i}`);
  }
});

test("choices of one prompt get its rows and first reading, and edits start at once", async () => {
  const probe = { name: "always", layer: 1, weight: new Float64Array(engine.info.nEmbd), bias: 1 };
  const choices = await ask(
    {
      ...{ edits: [steer({ positions: "generated" })], gates: [0], probes: [probe] },
      conditions: [{ probe: 0, bound: 0.5, above: true, tokens: 1 }],
      watch: { layers: [1], positions: "generated", norms: true, probes: true },
    },
    { n: 2 },
  );
  const [first, second] = choices.map(({ text, tapline }) => ({ text, tapline }));
  assert.equal(second, first);
  const { interventions, tokens } = first!.tapline;
  // The last of six tokens is computed by nobody; each of the others, once the prompt's last row has said so.
  assert.is(interventions[0].rows, 5);
  assert.equal(
    tokens.map(({ index }: { index: number }) => index),
    [0, 1, 2, 3, 4, 5],
  );
  for (const { probes } of tokens) assert.ok(Math.abs(probes.always - 1 / (1 + Math.exp(-1))) < 1e-9);
  const rows = (await kept(1000, { n: 2 })).found.map(({ id, rows }) => [id, rows.length]);
  assert.equal(rows.sort(), [
    ["k-0", rows[0]![1]],
    ["k-1", rows[0]![1]],
  ]);
});

test("answers end by a condition while others ask about the slots", async () => {
  // Under ThreadSanitizer: the thread that answers reads what ends an answer.
  const probe = { name: "always", layer: 1, weight: new Float64Array(engine.info.nEmbd), bias: 1 };
  const conditions = [{ probe: 0, bound: 0.5, above: true, tokens: 3 }];
  let asking = true;
  const asked = (async () => {
    for (; asking; ) assert.is((await engine.request("slots", {})).status, 200);
  })();
  for (let round = 0; round < 5; round++) {
    const plan = { probes: [probe], conditions, stop: 0 };
    const answers = await Promise.all([1, 2].map(() => ask(plan, { logprobs: 1, max_tokens: 40 })));
    for (const [choice] of answers) assert.is(choice!.finish_reason, "monitor");
    for (const [choice] of answers) assert.is(choice!.logprobs.content.length, 3);
  }
  asking = false;
  await asked;
});

test("a pair draws the same numbers, also where nobody chose a seed", async () => {
  for (let i = 0; i < 3; i++) {
    const [one, other] = await ask(
      { edits: [steer({ strength: 0 })], pair: true },
      { temperature: 2, max_tokens: 12 },
    );
    assert.is(other!.text, one!.text);
    assert.is(other!.tapline.pair_of, 0);
  }
});

test("what an answer's overflowing numbers left behind reaches nobody", async () => {
  const before = await ask();
  for (const layer of [0, 3]) {
    const failing = await engine.request("completion", { prompt, max_tokens: 4, temperature: 0 }, undefined, {
      edits: [{ layer, scale: 3e38, positions: "last" }],
    });
    assert.is(failing.status, 400);
    assert.match(failing.body, /made the model's numbers non-finite: the change is too large/);
    for (const cache of [true, false]) assert.equal(await ask(undefined, { cache_prompt: cache }), before);
  }
});

test("what an answer's overflowing numbers spoil is told of no neighbour", async () => {
  const watch = { layers: [5], positions: "all", lensTop: 1 } as const;
  const spoilt = { edits: [{ layer: 3, scale: 3e38, positions: "last" } as const], watch };
  let answered = false;
  const answer = ask({ watch }, { max_tokens: 100 }).finally(() => {
    answered = true;
  });
  // In one batch with a token of the answer, as often as it lasts.
  do {
    const failing = await engine.request("completion", { prompt, max_tokens: 4 }, undefined, spoilt);
    assert.is(failing.status, 400);
  } while (!answered);
  const [choice] = await answer;
  const told = [...choice!.tapline.prompt, ...choice!.tapline.tokens] as { lens: Record<string, object[]> }[];
  assert.ok(told.length > 100);
  for (const [at, { lens }] of told.entries()) assert.is(lens["5"]?.length, 1, `token ${at}`);
});

test("watched or edited prompt rows are computed despite the prompt cache", async () => {
  await ask();
  const watch = { layers: [2], positions: [[-2, -2]] as [number, number][], norms: true };
  const [watched] = await ask({ watch });
  const { length } = (await kept(1000)).found[0]!.rows;
  assert.equal(
    watched!.tapline.prompt.map(({ index }: { index: number }) => index),
    [length - 5 - 2],
  );
  const [edited] = await ask({ edits: [steer({ positions: [[-2, -2]] })] });
  assert.is(edited!.tapline.interventions[0].rows, 1);
});

test("both of a pair compute the prompt", async () => {
  await ask();
  const cachedOf = async (plan?: LivePlan) => {
    const { body } = await engine.request(
      "completion",
      { prompt, max_tokens: 2, temperature: 0, ignore_eos: true },
      undefined,
      plan,
    );
    return JSON.parse(body).usage.prompt_tokens_details.cached_tokens as number;
  };
  const edits = [steer({ positions: "generated" })];
  assert.ok((await cachedOf({ edits })) > 0, "an edit of the answer alone leaves the prompt's beginning");
  assert.is(await cachedOf({ edits, pair: true }), 0);
});

test("what edits left in a slot is no later prompt's", async () => {
  const before = await ask();
  await ask({ edits: [steer({ positions: "prompt" })] });
  await ask({ edits: [steer({ positions: "generated" })] });
  for (let i = 0; i < 4; i++) assert.equal(await ask(), before);
});

test("reasoning is recognised if the template has already opened it", async () => {
  const rows = async (answer: object, positions: "thinking" | "answer") => {
    const { status, body } = await engine.request(
      "chat",
      {
        messages: [
          { role: "user", content: "Which tag?" },
          { role: "assistant", ...answer },
        ],
        ...{ max_tokens: 4, temperature: 0, ignore_eos: true, logit_bias: [["</think>", false]] },
      },
      undefined,
      { edits: [{ layer: 3, scale: 1, positions }] },
    );
    assert.is(status, 200, body);
    return JSON.parse(body).choices[0].tapline.interventions[0].rows as number;
  };
  // Of four tokens the last one is read by nobody.
  for (const [answer, thinking] of [
    [{ content: "It is" }, 0],
    [{ content: "It is <think>, which" }, 0],
    [{ content: "It is <think>, not </think>, which" }, 0],
    [{ reasoning_content: "A tag: <think>?", content: "It is <think>, which" }, 0],
    [{ content: "", reasoning_content: "A tag" }, 3],
    [{ content: "", reasoning_content: "A tag: <think>?" }, 3],
  ] as const) {
    const told = [await rows(answer, "thinking"), await rows(answer, "answer")];
    assert.equal(told, [thinking, 3 - thinking], JSON.stringify(answer));
  }
});

test("a thought ends with its tag, although no token is the whole of it", async () => {
  const rows = async (positions: "thinking" | "answer") => {
    const { status, body } = await engine.request(
      "chat",
      {
        messages: [
          { role: "user", content: "Which tag?" },
          { role: "assistant", content: "", reasoning_content: "Hm" },
        ],
        grammar: 'root ::= "</think>" "xyz" "xyz"',
        ...{ max_tokens: 40, temperature: 0, logprobs: true, logit_bias: [["</think>", false]] },
      },
      undefined,
      { edits: [{ layer: 3, scale: 1, positions }] },
    );
    assert.is(status, 200, body);
    const [{ logprobs, tapline }] = JSON.parse(body).choices;
    const tokens = logprobs.content.map(({ token }: { token: string }) => token);
    assert.equal(tokens, ["<", "/", "t", "h", "in", "k", ">", "x", "y", "z", "x", "y", "z", ""]);
    return tapline.interventions[0].rows as number;
  };
  assert.equal([await rows("thinking"), await rows("answer")], [7, 6]);
});

test.run();
