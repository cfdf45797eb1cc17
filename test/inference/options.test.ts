import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import type { ServingOptions } from "../../src/inference/index.js";
import { estimateMemory } from "../../src/native/index.js";
import { startServer, type TestServer } from "./support/serving.js";
import {
  infiller,
  merged,
  reranker,
  writeTinyAdapter,
  writeTinyModel,
  writeTinyProjector,
} from "./support/tiny-models.js";

const test = suite("options of llama-server");
let folder = "";
let model = "";

test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), "tapline-options-"));
  model = join(folder, "tiny.gguf");
  await writeTinyModel(model);
});
test.after(() => rm(folder, { recursive: true, force: true }));

async function served<T>(options: Partial<ServingOptions>, work: (server: TestServer) => Promise<T>) {
  const server = await startServer({ model, parallel: 1, ctxSize: 256, ...options });
  try {
    return await work(server);
  } finally {
    await server.close();
  }
}

/** Log-probabilities of the likeliest next tokens, by token. */
async function nextTokens(server: TestServer): Promise<Map<number, number>> {
  const { body } = await server.post("/completion", {
    prompt: "a text of some words",
    n_predict: 1,
    temperature: 0,
    n_probs: 100,
    logit_bias: [[97, 1000]], // not half of a character, which would have no probabilities yet
  });
  const [{ top_logprobs }] = body.completion_probabilities;
  return new Map(top_logprobs.map(({ id, logprob }: { id: number; logprob: number }) => [id, logprob]));
}

/** The largest difference between two answers over the tokens that both name. */
function distance(one: Map<number, number>, other: Map<number, number>): number {
  const shared = [...one].filter(([id]) => other.has(id));
  return Math.max(...shared.map(([id, value]) => Math.abs(value - (other.get(id) as number))));
}

const asked = (options: Partial<ServingOptions>) => served(options, nextTokens);
const refusalOf = (options: Partial<ServingOptions>) =>
  served(options, async () => "served").catch((error: Error) => error.message);

test("a LoRA adapter equals merged weights; at scale 0 it equals the base", async () => {
  const adapter = join(folder, "adapter.gguf");
  await writeTinyAdapter(adapter);
  const plain = await asked({});
  assert.is(distance(await asked({ loras: [{ path: adapter, scale: 0 }] }), plain), 0);
  for (const scale of [1, -0.5]) {
    const path = join(folder, "merged.gguf");
    await writeTinyModel(path, merged(scale));
    const multiplied = await asked({ model: path });
    assert.ok(distance(multiplied, plain) > 0.5, "the adapter changes little");
    const changed = await asked({ loras: [{ path: adapter, scale }] });
    assert.ok(distance(changed, multiplied) < 1e-3, `scale ${scale}: ${distance(changed, multiplied)}`);
  }
  await served({ loras: [{ path: adapter, scale: 0.5 }] }, async (server) => {
    const { body } = await server.get("/lora-adapters");
    assert.equal([body.length, body[0].path, body[0].scale], [1, adapter, 0.5]);
    const capture = await server.post("/lab/activations", { model: "tiny", prompt: "a", layers: [0] });
    assert.match(capture.body.error, "with LoRA adapters");
    const scored = await server.post("/v1/completions", { prompt: "a", echo: true, logprobs: 1 });
    assert.is(scored.status, 400);
    assert.match(scored.body.error.message, /^logprobs: with echo,? .* with LoRA adapters/);
    const live = await server.post("/v1/completions", {
      prompt: "a",
      tapline: { watch: { layers: [0], norms: true } },
    });
    assert.ok(live.status >= 400, JSON.stringify(live.body));
    assert.match(live.body.error.message, "with LoRA adapters");
  });
  assert.match(await refusalOf({ loras: [{ path: join(folder, "none.gguf"), scale: 1 }] }), "none.gguf");
});

test("RoPE: a given base equals one in the file; a scale divides positions", async () => {
  const plain = await asked({});
  assert.is(distance(await asked({ ropeFreqBase: 10_000 }), plain), 0);
  const path = join(folder, "base.gguf");
  for (const [options, metadata] of [
    [{ ropeFreqBase: 100 }, { "qwen3.rope.freq_base": { f32: 100 } }],
    [
      { ropeScaling: "linear", ropeScale: 4 },
      { "qwen3.rope.scaling.type": "linear", "qwen3.rope.scaling.factor": { f32: 4 } },
    ],
    [
      { ropeScaling: "yarn", ropeScale: 4, yarnOriginalCtx: 64 },
      {
        "qwen3.rope.scaling.type": "yarn",
        "qwen3.rope.scaling.factor": { f32: 4 },
        "qwen3.rope.scaling.original_context_length": 64,
      },
    ],
  ] as const) {
    await writeTinyModel(path, { metadata });
    const [given, inFile] = [await asked(options), await asked({ model: path })];
    assert.ok(distance(given, plain) > 1e-3, JSON.stringify(options));
    assert.ok(distance(given, inFile) < 1e-5, `${JSON.stringify(options)}: ${distance(given, inFile)}`);
  }
  for (const options of [{ ropeFreqBase: 100 }, { yarnOriginalCtx: 64 }]) {
    await served(options, async (server) => {
      const capture = await server.post("/lab/activations", { model: "tiny", prompt: "a", layers: [0] });
      assert.is(
        capture.body.error,
        "Captures are not possible with changed RoPE settings; serve without --rope-scaling, --rope-scale, --rope-freq-base and --yarn-orig-ctx.",
      );
    });
  }
});

test("a cache of q8_0 takes 34 bytes where f16 takes 64, and changes answers a little", async () => {
  const { path } = (await served({ model: "demo" }, async ({ service }) => service.engine.info)) as {
    path: string;
  };
  const context = async (options: object) => {
    const devices = await estimateMemory({ path, ctxSize: 512, parallel: 1, threads: 1, ...options });
    return devices.reduce((sum, device) => sum + device.context, 0);
  };
  const quantised = { cacheTypeK: "q8_0", cacheTypeV: "q8_0", flashAttention: "on" } as const;
  // In parallel, because llama.cpp's log mixed up two estimates.
  const [small, usual] = await Promise.all([context(quantised), context({})]);
  assert.is((small as number) / (usual as number), 34 / 64);
  const change = distance(await asked({ model: "demo", ...quantised }), await asked({ model: "demo" }));
  assert.ok(change > 0 && change < 0.5, String(change));
  const exact = await asked({ model: "demo", flashAttention: "off" });
  assert.ok(distance(exact, await asked({ model: "demo", flashAttention: "on" })) < 0.05);
  assert.match(await refusalOf({ model: "demo", cacheTypeV: "q8_0", flashAttention: "off" }), /V cache/i);
});

test("pooling: the embedding follows the option, and the answer names it", async () => {
  const embedding = (pooling: "mean" | "last" | "cls", input: string) =>
    served({ pooling }, async (server) => {
      const { body } = await server.post("/v1/embeddings", { input });
      assert.is(body.pooling, pooling);
      const { data } = (await server.get("/v1/models")).body;
      assert.is(data[0].meta.pooling, pooling);
      return body.data[0].embedding as number[];
    });
  const dot = (a: number[], b: number[]) =>
    a.reduce((sum, value, index) => sum + value * (b[index] as number), 0);
  const [mean, last, first] = await Promise.all(
    (["mean", "last", "cls"] as const).map((pooling) => embedding(pooling, "xyz")),
  );
  const [x, one] = await Promise.all([embedding("last", "x"), embedding("mean", "x")]);
  assert.ok(Math.abs(dot(first as number[], x) - 1) < 1e-4, "cls is the first token's");
  assert.ok(Math.abs(dot(one, x) - 1) < 1e-4, "the mean of one token is that token's");
  assert.ok(
    dot(mean as number[], last as number[]) < 0.999 && dot(first as number[], last as number[]) < 0.999,
  );
  await served({ pooling: "none" }, async (server) => {
    const { status, body } = await server.post("/v1/embeddings", { input: "xyz" });
    assert.is(status, 400);
    assert.match(body.error.message, "pooling type is none");
  });
  assert.match(await refusalOf({ pooling: "rank" }), "no layer for scores");
});

test("reranking returns scores computed by hand, best first, up to the limit", async () => {
  const path = join(folder, "reranker.gguf");
  await writeTinyModel(path, reranker);
  await served({ model: path }, async (server) => {
    // The last byte's number modulo 32 is 1 for a, 2 for b, 3 for c: sigmoid(sqrt(32) * n / 10).
    const documents = ["a", "some c", "b", "c"];
    const { status, body } = await server.post("/v1/rerank", { query: "q", documents });
    assert.is(status, 200, JSON.stringify(body));
    const scores = body.results.map((one: { index: number; relevance_score: number }) => [
      one.index,
      Number(one.relevance_score.toFixed(4)),
    ]);
    assert.equal(
      scores.map(([, score]: number[]) => score),
      [0.8451, 0.8451, 0.7561, 0.6378],
    );
    assert.equal(
      scores.slice(2).map(([index]: number[]) => index),
      [2, 0],
    );
    const best = await server.post("/v1/rerank", { query: "q", documents, top_n: 1 });
    assert.is(best.body.results.length, 1);
    const embedding = await server.post("/v1/embeddings", { input: "a" });
    assert.match(embedding.body.error.message, "ask /v1/rerank");
  });
});

test("filling in continues between the vocabulary's fill-in tokens", async () => {
  const path = join(folder, "infiller.gguf");
  await writeTinyModel(path, infiller);
  await served({ model: path }, async (server) => {
    const ask = { n_predict: 6, temperature: 0 };
    const filled = await server.post("/infill", { input_prefix: "a = ", input_suffix: " + b", ...ask });
    assert.is(filled.status, 200, JSON.stringify(filled.body));
    const prompt = [300, ...Buffer.from("a = "), 301, ...Buffer.from(" + b"), 302];
    const written = await server.post("/completion", { prompt, ...ask });
    assert.is(filled.body.tokens_evaluated, prompt.length);
    assert.equal([filled.body.content, filled.body.tokens], [written.body.content, written.body.tokens]);
  });
});

/** A picture of one colour, as a .bmp file. */
function bmp(size: number, [red, green, blue]: readonly [number, number, number]): string {
  const pixels = size * size * 3;
  const head = Buffer.alloc(54);
  head.write("BM");
  head.writeUInt32LE(54 + pixels, 2);
  for (const [value, at] of [
    [54, 10],
    [40, 14],
    [size, 18],
    [size, 22],
    [0x18_0001, 26],
  ] as const) {
    head.writeUInt32LE(value, at);
  }
  const colour = Buffer.from([blue, green, red]);
  return `data:image/bmp;base64,${Buffer.concat([head, Buffer.alloc(pixels, colour)]).toString("base64")}`;
}

test("images: a picture counts as the tokens that its encoder makes of it", async () => {
  const mmproj = join(folder, "mmproj.gguf");
  await writeTinyProjector(mmproj, "z".charCodeAt(0));
  const picture = { type: "image_url", image_url: { url: bmp(28, [200, 30, 30]) } };
  const text = (words: string) => ({ type: "text", text: words });
  const ask = (server: TestServer, content: unknown, more = {}) =>
    server.post("/v1/chat/completions", {
      messages: [{ role: "user", content }],
      max_tokens: 4,
      temperature: 0,
      logprobs: true,
      top_logprobs: 5,
      ...more,
    });
  await served({ mmproj }, async (server) => {
    const shown = await ask(server, [text("this "), picture, text(" here")]);
    assert.is(shown.status, 200, JSON.stringify(shown.body));
    const said = await ask(server, "this zzzz here");
    assert.is(shown.body.usage.prompt_tokens, said.body.usage.prompt_tokens);
    assert.is(shown.body.choices[0].message.content, said.body.choices[0].message.content);
    for (const [index, { logprob }] of said.body.choices[0].logprobs.content.entries()) {
      assert.ok(Math.abs(shown.body.choices[0].logprobs.content[index].logprob - logprob) < 1e-3);
    }
    // Texts, embeddings and live requests are served in parallel.
    assert.is((await server.post("/v1/embeddings", { input: "xyz" })).status, 200);
    const live = await ask(server, "this", { tapline: { watch: { layers: [0], norms: true } } });
    assert.is(live.status, 200, JSON.stringify(live.body));
    for (const [content, more, param, sentence] of [
      [
        [picture],
        { tapline: { watch: { layers: [0], norms: true } } },
        "tapline",
        "not supported in chats with images",
      ],
      [[picture], { n: 1, n_cmpl: 1, tools: [] }, null, ""],
      [
        [{ type: "image_url", image_url: { url: "http://example.com/a.png" } }],
        {},
        "messages[0].content[0]",
        "must be a data:image/…;base64,… URL; other URLs are not fetched.",
      ],
      [
        [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }],
        {},
        null,
        "Failed to load image",
      ],
    ] as const) {
      const { status, body } = await ask(server, content, more);
      if (sentence === "") assert.is(status, 200, JSON.stringify(body));
      else {
        assert.is(status, 400, JSON.stringify(body));
        assert.match(body.error.message, sentence);
        assert.is(body.error.param ?? null, param);
      }
    }
  });
  await writeTinyProjector(mmproj);
  await served({ mmproj }, async (server) => {
    const answers = [];
    for (const colour of [
      [255, 0, 0],
      [0, 0, 255],
      [255, 0, 0],
    ] as const) {
      const { body } = await ask(server, [{ type: "image_url", image_url: { url: bmp(28, colour) } }]);
      answers.push(body.choices[0].logprobs.content[0].logprob as number);
    }
    const [red, blue, again] = answers as [number, number, number];
    assert.ok(Math.abs(red - again) < 1e-4 && Math.abs(red - blue) > 1e-2, answers.join(", "));
  });
  assert.match(await refusalOf({ mmproj: model }), /could not be loaded with the image encoder/);
});

test.run();
