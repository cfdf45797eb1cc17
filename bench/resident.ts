/**
 * Captures of the resident model: against a plain forward pass of the same tokens in the same process, what they cost
 * a chat that runs meanwhile, and what HTTP adds.
 */
import { request } from "node:http";
import { threadsFor } from "../src/models/threads.js";
import { Model } from "../src/native/index.js";
import { startServer, type TestServer } from "../test/inference/support/serving.js";
import { TestRandom } from "../test/support/random.js";
import { median, percentile, quartiles, type Row, row } from "./figures.js";
import { layerSets } from "./layer-sets.js";

const lengths = [16, 128, 256];

export interface ResidentBench {
  label: string;
  path: string;
  pairs: number;
  /** What a capture may cost over a plain pass. */
  goal: number;
}

export async function benchResident(bench: ResidentBench): Promise<Row[]> {
  const { path } = bench;
  const server = await startServer({ model: path, parallel: 2, ctxSize: 512, embeddings: false });
  const model = await Model.open(path);
  try {
    return [...(await againstPlain(bench, server, model)), ...(await besideChat(bench, server, model))];
  } finally {
    await model.close();
    await server.close();
  }
}

/** A text of exactly so many tokens. */
async function textOf(model: Model, length: number): Promise<string> {
  const random = new TestRandom(length);
  const letters = Array.from({ length }, () => "abcdefghij"[random.below(10)]);
  for (let words = length; words > 0; words--) {
    for (const end of ["", ".", "?!", ", 7"]) {
      const text = letters.slice(0, words).join(" ") + end;
      if ((await model.tokenize(text)).length === length) return text;
    }
  }
  throw new Error(`No text of ${length} tokens was found.`);
}

async function againstPlain(bench: ResidentBench, server: TestServer, model: Model): Promise<Row[]> {
  const { engine } = server.service;
  const { nLayer, bytes } = model.info;
  const context = await model.createContext({ nCtx: 256, nBatch: 256, threads: threadsFor(bytes) });
  const random = new TestRandom(5);
  const rows: Row[] = [];
  for (const length of lengths) {
    const prompt = await textOf(model, length);
    const plain = async () => {
      const start = performance.now();
      const tokens = await model.tokenize(prompt);
      await context.reset();
      await context.advance({ tokens, layers: [], nextTopK: 5 });
      return performance.now() - start;
    };
    const capture = async (layers: number[]) => {
      const start = performance.now();
      await engine.capture({ prompt, layers, maxTokens: 256, nextTop: 5 });
      return performance.now() - start;
    };
    for (const [what, layers] of Object.entries(layerSets(nLayer))) {
      for (let i = 0; i < 3; i++) await plain().then(() => capture(layers));
      const ratios: number[] = [];
      const plains: number[] = [];
      for (let pair = 0; pair < bench.pairs; pair++) {
        const first = random.uniform() < 0.5;
        const early = first ? await capture(layers) : 0;
        const bare = await plain();
        ratios.push((first ? early : await capture(layers)) / bare);
        plains.push(bare);
      }
      const name = `${bench.label}, resident, ${length} tokens, ${what}: over a plain pass of ${median(plains).toFixed(1)} ms`;
      rows.push({ ...row(name, ratios, "x", { most: bench.goal }), spread: quartiles(ratios) });
    }
    const added: number[] = [];
    for (let i = 0; i < Math.min(bench.pairs, 30); i++) {
      const start = performance.now();
      const { body } = await server.post("/lab/activations", {
        ...{ model: engine.info.id, prompt, layers: layerSets(nLayer)["4 layers"], max_input_tokens: 256 },
      });
      added.push(performance.now() - start - 1000 * body.provenance.seconds.forward);
    }
    const name = `${bench.label}, resident, ${length} tokens, 4 layers: HTTP round trip over the native time`;
    rows.push({ ...row(name, added, "ms"), spread: quartiles(added) });
  }
  await context.close();
  return rows;
}

/** Times between the tokens of one chat of `count` tokens, in milliseconds. */
function chat(server: TestServer, count: number): Promise<number[]> {
  const body = JSON.stringify({ prompt: "a b c", max_tokens: count, ignore_eos: true, stream: true });
  return new Promise((resolve, reject) => {
    const gaps: number[] = [];
    let last = 0;
    const outgoing = request(`${server.url}/v1/completions`, { method: "POST", agent: false }, (incoming) => {
      incoming.on("data", () => {
        const now = performance.now();
        if (last > 0) gaps.push(now - last);
        last = now;
      });
      incoming.on("end", () => resolve(gaps));
      incoming.on("error", reject);
    });
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

async function besideChat(bench: ResidentBench, server: TestServer, model: Model): Promise<Row[]> {
  const { engine } = server.service;
  const prompt = await textOf(model, 128);
  const layers = layerSets(model.info.nLayer)["4 layers"] as number[];
  const [tokens, rounds] = model.info.bytes < 40_000_000 ? [400, 5] : [60, 3];
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
  const speed: number[] = [];
  const stalls: number[] = [];
  const rate: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const alone = await chat(server, tokens);
    let done = false;
    const captures: number[] = [];
    const capturing = (async () => {
      while (!done) {
        const { forwardMs } = await engine.capture({ prompt, layers, maxTokens: 256, nextTop: 5 });
        captures.push(forwardMs);
      }
    })();
    const disturbed = await chat(server, tokens);
    done = true;
    await capturing;
    speed.push(sum(alone) / sum(disturbed));
    rate.push((1000 * captures.length) / sum(disturbed));
    stalls.push((percentile(disturbed, 0.99) - median(alone)) / median(captures));
  }
  const name = `${bench.label}, a chat beside captures of 128 tokens back to back`;
  return [
    row(`${name}: captures a second`, rate, "1/s"),
    row(`${name}: share of its tokens a second that it keeps`, speed, "x"),
    // Captures vary by themselves, and so do tokens.
    row(`${name}: 99th percentile stall, in captures`, stalls, "x", { most: 1.25 }),
  ];
}
