import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { byteTokenizer } from "../../bench/models/byte-tokenizer.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { Engine } from "../../src/native/engine.js";
import { readNpz } from "../lab/npz-reader.js";
import { npyFile, zipOf } from "../support/npz-bytes.js";
import { startServer, streamEvents, type TestServer, user } from "./support/serving.js";
import { randomTensor, tinyVocabulary, writeTinyModel } from "./support/tiny-models.js";

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
      `${field}: not available with a draft model, whose accepted tokens have no probabilities; start the server without --draft.`;
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

test("beside a draft model: edits, readings and kept rows are of accepted tokens, as without it; the draft is not steered", async () => {
  const home = await mkdtemp(join(tmpdir(), "tapline-draft-live-"));
  const layer = 5;
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever comes
  const ask = async (server: TestServer, strength: number, more: object = {}): Promise<any> => {
    const intervention = { kind: "steer", vector: "wave", layer, strength, strength_unit: "row_norm" };
    const { status, body } = await server.post("/v1/completions", {
      ...{ prompt: "one two three four five six seven", max_tokens: 48, temperature: 0, ignore_eos: true },
      ...more,
      tapline: {
        interventions: [{ ...intervention, positions: "generated" }],
        watch: { layers: [2, 6], norms: true, probes: ["odd"], states: true, positions: "all" },
      },
    });
    assert.is(status, 200, JSON.stringify(body));
    const { capture } = body.choices[0].tapline;
    const kept = readNpz((await server.get(`/lab/captures/${capture.id}?format=npz`)).bytes);
    return {
      ...body.choices[0].tapline,
      kept,
      text: body.choices[0].text,
      usage: body.usage,
      timings: body.timings,
    };
  };
  const close = (some: number, other: number, most: number, what: string) =>
    assert.ok(Math.abs(some - other) <= most, `${what}: ${some}, not ${other}`);
  // biome-ignore lint/suspicious/noExplicitAny: tests read whatever comes
  const compare = (alone: any, found: any) => {
    assert.is(found.text, alone.text);
    const { prompt_tokens: prompt, completion_tokens: answer } = found.usage;
    const [told] = found.interventions;
    const [expected] = alone.interventions;
    // Every generated token that the model read again, once: rejected guesses were edited, too.
    assert.is(told.rows, answer - 1);
    assert.is(expected.rows, answer - 1);
    close(told.mean_row_length, expected.mean_row_length, 1e-3 * expected.mean_row_length, "mean length");
    close(told.mean_change_length, expected.mean_change_length, 1e-3 * expected.mean_row_length, "change");
    assert.equal(
      [...found.prompt, ...found.tokens].map(({ index, token_id: id }) => [index, id]),
      [...alone.prompt, ...alone.tokens].map(({ index, token_id: id }) => [index, id]),
    );
    for (const [place, { norms, probes }] of found.tokens.entries()) {
      const entry = alone.tokens[place];
      for (const at of ["2", "6"])
        close(norms[at] / entry.norms[at], 1, 1e-3, `norm of token ${place} at ${at}`);
      close(probes.odd, entry.probes.odd, 1e-3, `score of token ${place}`);
    }
    assert.equal(
      [...found.kept.get("rows").data],
      Array.from({ length: prompt + answer - 1 }, (_, row) => row),
    );
    assert.equal([...found.kept.get("token_ids").data], [...alone.kept.get("token_ids").data]);
    for (const at of ["layer_2", "layer_6"]) {
      const { data } = alone.kept.get(at);
      for (const [place, value] of found.kept.get(at).data.entries()) {
        close(value, data[place], 5e-2, `${at} value ${place}`);
      }
    }
  };
  const servers: TestServer[] = [];
  try {
    const plain = await startServer({ parallel: 1, home });
    servers.push(plain);
    const { nEmbd: width } = plain.service.engine.info;
    const wave = Float32Array.from({ length: width }, (_, index) => Math.sin(12.9898 * (index + 1) ** 2));
    const one = (value: number) => npyFile(new Float32Array(width).fill(value), [width]);
    await plain.put("/lab/vectors/wave", zipOf({ layer_5: npyFile(wave, [width]) }));
    const probe = {
      weight: npyFile(wave, [width]),
      mean: one(0),
      std: one(60),
      bias: npyFile(Float32Array.of(0), []),
    };
    assert.is((await plain.put("/lab/probes/odd?layer=4", zipOf(probe))).status, 200);
    const drafted = await startServer({ parallel: 1, home, draft: "demo" });
    servers.push(drafted);
    for (const strength of [0, 0.5]) {
      const whole = await ask(plain, strength);
      // A word in the middle ends the answer where the draft has guessed on.
      const [word] = /\S+\s*$/.exec(whole.text.slice(0, whole.text.length / 2)) as RegExpExecArray;
      for (const more of [{}, { stop: [word] }] as { stop?: string[] }[]) {
        const alone = await ask(plain, strength, more);
        const found = await ask(drafted, strength, more);
        compare(alone, found);
        if (more.stop !== undefined) continue;
        // The draft does not wear the edit: what it guesses is the plain model's answer, and some of it is rejected.
        const { draft_n: guessed, draft_n_accepted: accepted } = found.timings;
        if (strength === 0)
          assert.ok(guessed > 10 && accepted > 0.8 * guessed, `${accepted} of ${guessed} accepted`);
        else assert.ok(guessed - accepted >= 3, `${accepted} of ${guessed} accepted`);
      }
    }
    // In a stream, where several are taken at once, each is told once, in order, beside its own text.
    const { bytes } = await drafted.post("/v1/completions", {
      ...{ prompt: "one two three", max_tokens: 20, temperature: 0, ignore_eos: true, stream: true },
      tapline: { watch: { layers: [2], norms: true } },
    });
    const chunks = streamEvents(bytes.toString()).flatMap(
      // biome-ignore lint/suspicious/noExplicitAny: tests read whatever comes
      ({ choices }: any) =>
        choices as { text: string; tapline?: { tokens?: { index: number; token: string }[] } }[],
    );
    const told = chunks.flatMap(({ tapline }) => tapline?.tokens ?? []);
    assert.equal(
      told.map(({ index }) => index),
      Array.from({ length: 20 }, (_, index) => index),
    );
    assert.is(told.map(({ token }) => token).join(""), chunks.map(({ text }) => text).join(""));
    for (const tapline of [
      { stop_when: { probe: "odd", above: 0.9 } },
      { interventions: [{ kind: "scale", layer, strength: 2, when: { probe: "odd", above: 0.9 } }] },
    ]) {
      const { status, body } = await drafted.post("/v1/completions", { prompt: "x", max_tokens: 1, tapline });
      assert.equal(
        [status, body.error.message],
        [400, "tapline: conditions are not supported with a draft model (--draft)."],
      );
    }
  } finally {
    for (const server of servers) await server.close();
    await rm(home, { recursive: true });
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

test("a missing draft model or one with another vocabulary is refused in one sentence", async () => {
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
  await fails("/nowhere/draft.gguf", "No model found at /nowhere/draft.gguf.");
  const folder = await mkdtemp(join(tmpdir(), "tapline-draft-"));
  try {
    // One letter of one token: the longest word that the vocabulary has.
    const bytes = await readFile(demoModelPath);
    const at = bytes.indexOf("Netherlands");
    assert.ok(at > 0);
    bytes.write("Metherlands", at);
    const other = join(folder, "other.gguf");
    await writeFile(other, bytes);
    await fails(other, "has a different vocabulary: token ");
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("vocabularies differ after the first five tokens or by over 128 at the end", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tapline-draft-vocabulary-"));
  try {
    const model = join(folder, "model.gguf");
    await writeTinyModel(model);
    const asked = async (size: number, renamed?: number) => {
      const tokenizer = byteTokenizer(size);
      const tokens = [...(tokenizer["tokenizer.ggml.tokens"] as string[])];
      if (renamed !== undefined) tokens[renamed] = "another";
      const draft = join(folder, `${size}-${renamed}.gguf`);
      await writeTinyModel(draft, {
        metadata: {
          ...tokenizer,
          "tokenizer.ggml.tokens": tokens,
          "tokenizer.ggml.eos_token_id": tinyVocabulary - 1,
        },
        tensors: [randomTensor("token_embd.weight", [32, size])],
      });
      try {
        await (
          await Engine.open({ path: model, id: "x", draft, threads: 1, parallel: 1, ctxSize: 64 })
        ).close();
        return "taken";
      } catch (error) {
        return / has a different vocabulary: (.*)$/.exec((error as Error).message)?.[1] ?? error;
      }
    };
    assert.is(await asked(tinyVocabulary, 4), "taken");
    assert.is(await asked(tinyVocabulary, 5), "token 5 differs.");
    assert.is(await asked(tinyVocabulary, tinyVocabulary - 1), "token 319 differs.");
    assert.is(await asked(tinyVocabulary + 128), "taken");
    assert.is(await asked(tinyVocabulary + 129), "449 tokens, not 320.");
  } finally {
    await rm(folder, { recursive: true });
  }
});

test.run();
