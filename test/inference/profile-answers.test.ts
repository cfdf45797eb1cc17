/** Profiles on the demo model: their answers, their log-probabilities and their embeddings. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { aroundServer, layer, question, server, steer } from "./support/live.js";

aroundServer();

const save = async (name: string, tapline: object) => {
  const { status, body } = await server.put(`/lab/profiles/${name}`, { tapline });
  assert.is(status, 200, JSON.stringify(body));
};
const named = (profile?: string) => (profile === undefined ? "tapline-demo" : `tapline-demo@${profile}`);

const completion = async (profile: string | undefined, body: object) => {
  const answer = await server.post("/v1/completions", {
    ...{ model: named(profile), temperature: 0, cache_prompt: false, ...body },
  });
  assert.is(answer.status, 200, answer.bytes.toString());
  return answer.body;
};
const echoed = async (profile: string | undefined, prompt: string, tapline?: object) => {
  const asked = { prompt, echo: true, logprobs: 1, max_tokens: 0, ...(tapline && { tapline }) };
  return (await completion(profile, asked)).choices[0].logprobs.token_logprobs as (number | null)[];
};

/** Log-probabilities of a prompt's tokens, from the logits of a forward call with the same edits. */
async function fromLogits(prompt: string, edits: object[]): Promise<number[]> {
  const { bytes } = await server.post("/lab/forward", { sequences: [prompt], edits, logits: "all" });
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
  const part = (name: string) => {
    const [from, to] = header[name].data_offsets;
    const data = bytes.subarray(8 + length + from, 8 + length + to);
    return data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
  };
  const tokens = new Int32Array(part("tokens"));
  const logits = new Float32Array(part("logits"));
  const width = logits.length / tokens.length;
  return [...tokens.subarray(1)].map((token, row) => {
    const values = logits.subarray(row * width, (row + 1) * width);
    const most = values.reduce((a, b) => Math.max(a, b));
    const sum = values.reduce((total, value) => total + Math.exp(value - most), 0);
    return (values[token] as number) - most - Math.log(sum);
  });
}

const text = "The capital of Sweden is Stockholm. The capital of France is Paris.";

test("a profile answers as a request with its edits does", async () => {
  await save("unknown", steer("unknown", 2));
  const plain = await completion(undefined, { prompt: question("Sweden"), max_tokens: 4 });
  const edited = await completion("unknown", { prompt: question("Sweden"), max_tokens: 4 });
  const own = await completion(undefined, {
    ...{ prompt: question("Sweden"), max_tokens: 4, tapline: steer("unknown", 2) },
  });
  assert.match(edited.choices[0].text, /unknown/);
  assert.not.match(plain.choices[0].text, /unknown/);
  assert.equal(edited.choices, own.choices);
});

test("echoed log-probabilities are those of the edited model", async () => {
  await save("unknown", steer("unknown", 2));
  const edits = steer("unknown", 2).interventions;
  const expected = await fromLogits(text, edits);
  const plain = await echoed(undefined, text);
  const found = await echoed("unknown", text);
  assert.equal(await echoed(undefined, text, steer("unknown", 2)), found);
  assert.is(found.length, expected.length + 1);
  for (const [index, value] of expected.entries()) {
    assert.ok(
      Math.abs((found[index + 1] as number) - value) < 1e-3,
      `${index}: ${found[index + 1]}, ${value}`,
    );
  }
  const moved = found.filter((value, index) => Math.abs((value ?? 0) - (plain[index] ?? 0)) > 0.1);
  assert.ok(moved.length > 3, `${moved.length} of ${found.length} moved`);
});

test("edits at ranges of the prompt act on those tokens of the echo only", async () => {
  const ranged = steer("unknown", 2, { positions: [[-3, -1]] });
  await save("end", ranged);
  const [plain, found] = [await echoed(undefined, text), await echoed("end", text)];
  // A token's log-probability comes from the row before it: only the last two follow an edited row.
  const differing = found.flatMap((value, index) => (value === plain[index] ? [] : [index - found.length]));
  assert.equal(differing, [-2, -1]);
});

test("a profile of strength zero gives the base's figures to the last digit", async () => {
  await save("zero", steer("unknown", 0));
  assert.equal(await echoed("zero", text), await echoed(undefined, text));
  const body = { prompt: text, max_tokens: 6, logprobs: 5 };
  const [plain, zero] = [await completion(undefined, body), await completion("zero", body)];
  assert.equal(zero.choices[0].logprobs, plain.choices[0].logprobs);
});

test("refuses echoed log-probabilities of edits that overflow", async () => {
  const huge = {
    interventions: [
      { kind: "scale", layer, strength: 1e6 },
      ...Array(9).fill({ kind: "scale", layer, strength: 1e6 }),
    ],
  };
  const { status, body } = await server.post("/v1/completions", {
    ...{ prompt: text, echo: true, logprobs: 1, max_tokens: 0, tapline: huge },
  });
  assert.equal(
    [status, body.error.message],
    [400, "tapline: The interventions made the model's numbers non-finite: the change is too large."],
  );
});

const embedding = async (profile: string | undefined, input: string): Promise<number[]> => {
  const { status, body } = await server.post("/v1/embeddings", { model: named(profile), input });
  assert.is(status, 200, JSON.stringify(body));
  return body.data[0].embedding;
};
const apart = (a: number[], b: number[]) =>
  Math.hypot(...a.map((value, index) => value - (b[index] as number)));

test("embeddings are those of the edited model", async () => {
  const last = server.service.engine.info.nLayer - 1;
  const interventions = [{ kind: "scale", layer: last, strength: 3 }];
  await save("tripled", { interventions });
  await save("zero", steer("unknown", 0));
  await save("unknown", steer("unknown", 2));
  const [one, two] = [await embedding(undefined, text), await embedding(undefined, "A second text.")];
  // Up to the rounding of what is cached and computed again.
  assert.ok(apart(await embedding("zero", text), one) < 1e-5);
  // The final norm and the unit length take a factor of the last block's output away.
  assert.ok(apart(await embedding("tripled", text), one) < 1e-4);
  assert.ok(apart(await embedding("unknown", text), one) > 0.05);
  // A donor in place of the last block's output leaves nothing of the text.
  const donor = Float32Array.from({ length: one.length }, (_, index) => Math.cos(index));
  await server.service.library.vectors.put("donor", new Map([[last, donor]]), server.service.library.model, {
    note: "",
  });
  await save("donated", { interventions: [{ kind: "patch", layer: last, vector: "donor", strength: 1 }] });
  const [first, second] = [await embedding("donated", text), await embedding("donated", "A second text.")];
  assert.ok(apart(first, second) < 1e-5);
  assert.ok(apart(one, two) > 0.1);
});

test("embeddings beside edited ones are unchanged", async () => {
  await save("unknown", steer("unknown", 2));
  const alone = await embedding(undefined, text);
  const [, beside] = await Promise.all([embedding("unknown", text), embedding(undefined, text)]);
  assert.ok(apart(beside, alone) < 1e-5);
  assert.ok(apart(await embedding(undefined, text), alone) < 1e-5);
});

test("refuses embeddings of edits that overflow; later ones are clean", async () => {
  const before = await embedding(undefined, text);
  await save("huge", { interventions: Array(10).fill({ kind: "scale", layer, strength: 1e6 }) });
  const { status, body } = await server.post("/v1/embeddings", { model: named("huge"), input: text });
  assert.is(status, 400, JSON.stringify(body));
  assert.match(body.error.message, /non-finite: the change is too large/);
  assert.ok(apart(await embedding(undefined, text), before) < 1e-5);
});

test.run();
