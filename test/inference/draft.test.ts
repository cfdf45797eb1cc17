import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { demoModelPath } from "../../src/models/resolve.js";
import { startServer, user } from "./support/serving.js";

const questions = ["What is the capital of France?", "Where is Kyoto?", "Who are you?", "one two three"];

async function answers(draft: string | undefined) {
  const server = await startServer({ parallel: 2, ...(draft && { draft }) });
  try {
    return await Promise.all(
      questions.map(async (question) => {
        const { status, body } = await server.post("/v1/chat/completions", {
          ...{ messages: user(question), max_tokens: 40, temperature: 0 },
        });
        assert.is(status, 200, JSON.stringify(body));
        const [choice] = body.choices;
        return { text: choice.message.content as string, timings: body.timings };
      }),
    );
  } finally {
    await server.close();
  }
}

test("a draft model guesses tokens and changes no answer", async () => {
  const plain = await answers(undefined);
  const drafted = await answers("demo");
  assert.equal(
    drafted.map(({ text }) => text),
    plain.map(({ text }) => text),
  );
  const guessed = drafted.reduce((sum, { timings }) => sum + (timings.draft_n ?? 0), 0);
  const accepted = drafted.reduce((sum, { timings }) => sum + (timings.draft_n_accepted ?? 0), 0);
  // A model that guesses for itself is nearly always right.
  assert.ok(guessed > 10 && accepted > 0.8 * guessed, `${accepted} of ${guessed} guesses were right`);
  assert.is(plain[0]?.timings.draft_n, undefined);
});

test("probabilities that a guessed token would not have are refused", async () => {
  const server = await startServer({ parallel: 1, draft: "demo" });
  try {
    const refused = (field: string) =>
      `${field}: this server has a draft model, and tokens that it guessed have no probabilities; without --draft they do.`;
    const chat = { messages: user("What is the capital of France?"), max_tokens: 3 };
    const completion = { prompt: "The capital of France is", max_tokens: 3 };
    for (const [path, body, expected] of [
      ["/v1/chat/completions", { ...chat, logprobs: true }, refused("logprobs")],
      [
        "/v1/chat/completions",
        { ...chat, logprobs: true, top_logprobs: 3, stream: true },
        refused("logprobs"),
      ],
      ["/v1/chat/completions", { ...chat, n_probs: 2 }, refused("n_probs")],
      ["/v1/completions", { ...completion, logprobs: 0 }, refused("logprobs")],
      ["/v1/completions", { ...completion, n_probs: 1 }, refused("n_probs")],
      ["/v1/chat/completions", { ...chat, logprobs: false, n_probs: 0 }, undefined],
      ["/v1/completions", completion, undefined],
    ] as const) {
      const { status, body: answer } = await server.post(path, body);
      assert.is(status, expected === undefined ? 200 : 400, JSON.stringify(body));
      assert.is(answer.error?.message, expected);
    }
  } finally {
    await server.close();
  }
});

test("without a draft model, log-probabilities are those of a distribution", async () => {
  const server = await startServer({ parallel: 1 });
  try {
    const { body } = await server.post("/v1/chat/completions", {
      ...{
        messages: user("one two three"),
        max_tokens: 24,
        temperature: 0,
        logprobs: true,
        top_logprobs: 20,
      },
    });
    const tokens: Array<{ logprob: number; top_logprobs: Array<{ logprob: number }> }> =
      body.choices[0].logprobs.content;
    assert.ok(tokens.length > 4);
    for (const { logprob, top_logprobs: top } of tokens) {
      assert.is(top.length, 20);
      assert.is(logprob, top[0]?.logprob, "a greedy token is the most probable one");
      const mass = top.reduce((sum, each) => sum + Math.exp(each.logprob), 0);
      assert.ok(mass <= 1 + 1e-4 && top.every((each) => each.logprob <= 0), String(mass));
    }
    assert.ok(
      tokens.some(({ logprob }) => logprob < -1e-3),
      "no model is sure of everything",
    );
  } finally {
    await server.close();
  }
});

test("captures go on beside a draft model, and embeddings too", async () => {
  const server = await startServer({ parallel: 1, draft: demoModelPath });
  try {
    const capture = await server.post("/lab/activations", {
      ...{ model: server.service.engine.info.id, prompt: "The capital of France is", layers: [3] },
    });
    assert.is(capture.status, 200);
    const embedded = await server.post("/v1/embeddings", { input: "a text" });
    assert.is(embedded.status, 200, embedded.bytes.toString());
    assert.is(embedded.body.data[0].embedding.length, server.service.engine.info.nEmbd);
  } finally {
    await server.close();
  }
});

test("a draft model that is not there, or of another vocabulary, is told in one sentence", async () => {
  const fails = async (draft: string, sentence: string) => {
    try {
      const server = await startServer({ draft });
      await server.close();
    } catch (error) {
      assert.match((error as Error).message, sentence);
      return;
    }
    assert.unreachable("it should not have started");
  };
  await fails("/nowhere/draft.gguf", "There is no model at /nowhere/draft.gguf.");
  const folder = await mkdtemp(join(tmpdir(), "tapline-draft-"));
  try {
    // One letter of one token: the longest word that the vocabulary has.
    const bytes = await readFile(demoModelPath);
    const at = bytes.indexOf("Netherlands");
    assert.ok(at > 0);
    bytes.write("Metherlands", at);
    const other = join(folder, "other.gguf");
    await writeFile(other, bytes);
    await fails(other, "has another vocabulary than the model: token ");
  } finally {
    await rm(folder, { recursive: true });
  }
});

test.run();
