/** Captures of the resident model beside everything else: what HTTP adds, and what a chat that runs meanwhile loses. */
import { request } from "node:http";
import type { Model } from "../src/native/index.js";
import type { TestServer } from "../test/inference/support/serving.js";
import type { CaptureBench } from "./capture.js";
import { percentile, quartiles, type Row, row } from "./figures.js";
import { layerSets } from "./layer-sets.js";
import { textOf } from "./text-of.js";

const lengths = [16, 128, 256];

export async function benchResident(bench: CaptureBench, server: TestServer, model: Model): Promise<Row[]> {
  return [...(await overHttp(bench, server, model)), ...(await besideChat(bench, server, model))];
}

async function overHttp({ label, rounds }: CaptureBench, server: TestServer, model: Model): Promise<Row[]> {
  const layers = layerSets(model.info.nLayer)["4 layers"];
  const rows: Row[] = [];
  for (const length of lengths) {
    const body = {
      model: server.service.engine.info.id,
      prompt: await textOf(model, length),
      layers,
      max_input_tokens: 256,
    };
    const added: number[] = [];
    for (let i = 0; i < Math.min(rounds, 20); i++) {
      const start = performance.now();
      const answer = await server.post("/lab/activations", body);
      added.push(performance.now() - start - 1000 * answer.body.provenance.seconds.forward);
    }
    const name = `${label}, resident, ${length} tokens, 4 layers: HTTP round trip over the native time`;
    rows.push({ ...row(name, added, "ms"), spread: quartiles(added) });
  }
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

async function besideChat({ label, chats }: CaptureBench, server: TestServer, model: Model): Promise<Row[]> {
  const { engine } = server.service;
  const prompt = await textOf(model, 128);
  const layers = layerSets(model.info.nLayer)["4 layers"] as number[];
  const tokens = model.info.bytes < 40_000_000 ? 400 : 60;
  const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
  const speed: number[] = [];
  const stalls: number[] = [];
  const rate: number[] = [];
  const perStep: number[] = [];
  for (let round = 0; round < chats; round++) {
    const alone = await chat(server, tokens);
    const { decodes } = await engine.metrics();
    let done = false;
    const captures: number[] = [];
    const capturing = (async () => {
      while (!done) {
        const { forwardMs } = await engine.capture({ prompt, layers, maxTokens: 256, nextTop: 5 });
        captures.push(forwardMs);
      }
    })();
    const disturbed = await chat(server, tokens);
    perStep.push(captures.length / ((await engine.metrics()).decodes - decodes));
    done = true;
    await capturing;
    speed.push(sum(alone) / sum(disturbed));
    rate.push((1000 * captures.length) / sum(disturbed));
    // The slowest hundredth with and without, over the slowest hundredth of the captures: a slow one is still one.
    stalls.push((percentile(disturbed, 0.99) - percentile(alone, 0.99)) / percentile(captures, 0.99));
  }
  const name = `${label}, a chat beside captures of 128 tokens back to back`;
  return [
    row(`${name}: captures a second`, rate, "1/s"),
    row(`${name}: share of its tokens a second that it keeps`, speed, "x"),
    // Including those before its first step and after its last count.
    row(`${name}: captures to each step of the scheduler`, perStep, "x", { most: 1.1 }),
    row(`${name}: 99th percentile stall over a 99th percentile capture`, stalls, "x", { most: 1.25 }),
  ];
}
