/** Clamping a graph's feature: the job, the command, and the check that the served model is the graph's. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { GraphResult } from "../../src/contracts/index.js";
import {
  clampCommand,
  clampJob,
  type SteeredGraph,
  servedMisfit,
} from "../../src/workbench/page/graph-steering.js";
import { graphTarget } from "../support/graph-nodes.js";

const job = {
  model: "my models/a.gguf",
  config: { prompt: "It's" },
  result: {
    targets: [graphTarget(5, " Paris", 0.5)],
    blocks: 8,
    model_fingerprint: "f",
  } as unknown as GraphResult,
} as SteeredGraph;
const feature = { dictionary: "set-3", index: 12, layer: 3, writes: "ffn_out", level: 2.5 };

test("a clamp is a comparison at the point that the decoder writes", () => {
  assert.equal(clampJob(job, feature), {
    ...{ operation: "compare", model: "my models/a.gguf", prompt: "It's", intervention: "clamp" },
    ...{ feature: ["set-3", 12], point: "ffn_out", layers: [3], positions: "all", min: 2.5, max: 2.5 },
    ...{ strengths: [0, 1], controls: true, max_tokens: 8, target_token: " Paris" },
  });
  assert.is(
    clampCommand(job, feature),
    "tapline compare 'It'\\''s' --model 'my models/a.gguf' --layers 3 --intervention clamp --feature set-3:12 --point ffn_out --positions all " +
      "--min 2.5 --max 2.5 --strengths 0,1 --controls --max-tokens 8 --target-token ' Paris'",
  );
});

test("the served model must be the graph's", () => {
  const other = "This graph is of another model than the one in the chat.";
  const served = { ok: true, n_layer: 8, fingerprint: "f" };
  assert.is(servedMisfit(job.result, served), undefined);
  assert.is(servedMisfit(job.result, { ...served, fingerprint: "g" }), other);
  assert.is(servedMisfit(job.result, { ...served, n_layer: 9 }), other);
  assert.is(servedMisfit(job.result, { ...served, ok: false }), "Chat needs a serving model.");
  assert.is(servedMisfit(job.result, undefined), "Chat needs a serving model.");
  // Results and servers of older versions do not say.
  assert.is(servedMisfit({ blocks: 8 }, served), undefined);
  assert.is(servedMisfit(job.result, { ok: true, n_layer: 8 }), undefined);
});

test.run();
