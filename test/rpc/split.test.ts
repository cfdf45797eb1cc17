import { test } from "uvu";
import * as assert from "uvu/assert";
import { demoModelPath } from "../../src/models/resolve.js";
import { nameOf } from "../../src/models/rpc.js";
import { backendInfo, connectRemotes, estimateMemory, Model } from "../../src/native/index.js";
import { type RunningRpcServer, startRpcServer } from "./support/rpc-server.js";

const layers = [0, 3, 4, 7];
const prompt = "The capital of France is";

/** Everything that the Lab's operations ask of a model, as plain numbers. */
async function experiment(model: Model) {
  const tokens = await model.tokenize(prompt);
  const hidden = model.info.nEmbd;
  const context = await model.createContext({ nCtx: 512, maxSequences: 8, threads: 1 });
  assert.ok(context.blockOutputs.supported, context.blockOutputs.reason);
  assert.ok(context.lens.supported, context.lens.reason);
  const pass = await context.advance({ tokens, layers, lensTopK: 3, nextTopK: 5, logits: true });
  await context.reset();
  const vector = new Float32Array(hidden).map((_, index) => Math.sin(index));
  const edits = [
    { layer: 3, scale: 0.5, vector },
    { layer: 4, positions: [[1, 1]] as const, scale: 0 },
  ];
  const edited = await context.advance({ tokens, layers, edits, logits: true });
  const early = await context.features({ sequences: [tokens, tokens.slice(0, 3)], layers: [1, 6] });
  const sweep = await context.sweep({
    prompts: [tokens, await model.tokenize("The sea is")],
    plans: [{ scale: 0 }, { scale: 1 }, { vector }].map((edit) => [{ layer: 5, ...edit }]),
    maxTokens: 6,
  });
  await context.close();
  return {
    pass: pass.layers.map(({ states, norms, lens }) => [
      [...states!.data],
      [...norms],
      [...lens!.tokenIds],
      [...lens!.probabilities],
    ]),
    next: [[...pass.next!.tokenIds], [...pass.next!.probabilities], [...pass.logits!]],
    edited: [...edited.layers.map(({ states }) => [...states!.data]), [...edited.logits!]],
    early: [...early.values()].map(({ data }) => [...data]),
    sweep: sweep.map(({ target, baseline, rows }) => [
      target,
      ...[baseline, ...rows].map(({ probability, continuation }) => [probability, ...continuation]),
    ]),
  };
}

const servers: RunningRpcServer[] = [];
test.after(async () => {
  for (const server of servers) await server.kill();
});

test("captures, edits, lens and sweeps are the same across two RPC servers", async () => {
  const here = await Model.open(demoModelPath);
  const expected = await experiment(here);
  await here.close();

  servers.push(await startRpcServer(), await startRpcServer());
  await connectRemotes(servers.map(nameOf));
  const remote = backendInfo().devices.filter(({ name }) => name.startsWith("RPC"));
  assert.equal(
    remote.map(({ description }) => description),
    servers.map(nameOf),
  );
  const layout = await estimateMemory({ path: demoModelPath, ctxSize: 512, parallel: 1 });
  // Some blocks lie on either server; the machine itself keeps the token embeddings.
  for (const { name, host, weights, context } of layout) {
    assert.ok(weights > 0, name);
    assert.is(context > 0, !host, name);
  }

  const model = await Model.open(demoModelPath);
  const found = await experiment(model);
  // The same kernels on the same processor: to the last bit.
  assert.equal(found, expected);
  await model.close();
});

test("an endpoint that is none is refused before llama.cpp sees it", async () => {
  for (const endpoint of ["", "host", "host:", "host:0", "host:65536", ":1", "host:x", "[::1]:50052"]) {
    try {
      await connectRemotes([endpoint]);
      assert.unreachable();
    } catch (error) {
      assert.match((error as Error).message, `An rpc-server must be host:port, got "${endpoint}".`);
    }
  }
});

test.run();
