import { test } from "uvu";
import * as assert from "uvu/assert";
import type { GraphResult } from "../../src/contracts/index.js";
import { nodeName, shortName } from "../../src/findings/graph.js";
import { graphFinding } from "../../src/findings/graph-finding.js";
import { findingsOf } from "../../src/report/index.js";

const parts = {
  ...{ embeddings: 1, neurons: 6, heads: 2, features: 0, rest: 0.5, errors: 0 },
  ...{ rounding: 0.5, constant: 0 },
};
const at = (
  kind: GraphResult["nodes"][number]["kind"],
  layer: number | null,
  position: number,
  index: number | null,
) => ({
  ...{ kind, layer, position, index, value: 1.5, influence: 0 },
});

/** A graph of two tokens and two blocks. */
function graph(more: Partial<GraphResult> = {}): GraphResult {
  return {
    tokens: ["The", " capital"],
    token_ids: [1, 2],
    position: 1,
    blocks: 2,
    targets: [
      {
        ...{
          token_id: 9,
          token: " Paris",
          probability: 0.5,
          foil_token_id: null,
          foil_token: null,
          weight: 0.5,
        },
        ...{ value: 10, measured: 10.1, direct: parts },
        through: { embeddings: 8.9, rest: 0, errors: 0, rounding: 1.1, constant: 0 },
      },
    ],
    nodes: [
      { ...at("embedding", null, 0, null), influence: 0.3 },
      { ...at("embedding", null, 1, null), influence: 0.2 },
      { ...at("head", 0, 1, 2), influence: 0.125 },
      { ...at("neuron", 1, 1, 305), influence: 0.25 },
      { ...at("rest", 1, 1, null), influence: 0.1 },
      at("target", null, 1, 0),
    ],
    edges: [
      { source: 3, target: 5, value: 6, influence: 0.5 },
      { source: 0, target: 2, value: -2, influence: 0.3 },
      { source: 2, target: 3, value: -1, influence: 0.2 },
    ],
    size: { found: 40, kept: 2, edges: 3 },
    scores: { replacement: 0.75, completeness: 0.9, rounding: 0.05 },
    closing: { worst: 2e-7, bound: 1e-3, attention: 1e-4, mlp: 2e-4 },
    measured: {
      nodes: [
        { kind: "neuron", layer: 1, position: 1, index: 305, estimate: 6, effect: 5 },
        { kind: "head", layer: 0, position: 1, index: 2, estimate: 2, effect: 1 },
        { kind: "head", layer: 0, position: 1, index: 3, estimate: 1, effect: 1 },
      ],
      ...{ baseline: 10.1, correlation: 0.97, interval: { low: 0.5, high: 1 } },
    },
    memory_bytes: 1000,
    note: "",
    artifacts: ["graph.npz"],
    provenance: {} as never,
    ...more,
  };
}

test("the first sentence says how much of the logit is rounding", () => {
  const { says, controls } = graphFinding(graph());
  assert.is(
    says,
    "Rounding accounts for 11.0 % of the logit of ·Paris above the mean logit (1.1 of 10). Neuron 305 of block 1 at ·capital " +
      "(token 1) (25.0 %) and head 2 of block 0 at ·capital (token 1) (12.5 %) have the most influence; 2 neurons and heads of 40 " +
      "remain after pruning. 75.0 % of the influence starts at the prompt's embeddings.",
  );
  assert.is(
    controls,
    "Each of the 3 strongest nodes was also removed with nothing frozen: the effects are close to the estimates (Pearson correlation " +
      "0.97, 95 % interval 0.50 to 1.00).",
  );
});

test("a finding names a difference of tokens, and says when estimates do not predict removals", () => {
  const [target] = graph().targets as [GraphResult["targets"][number]];
  const pair = { ...target, foil_token: " London", foil_token_id: 3, value: -4 };
  assert.match(
    graphFinding(graph({ targets: [pair] })).says,
    /^Rounding accounts for 27\.5 % of the logit difference between ·Paris and ·London \(1\.1 of -4\)\./,
  );
  const said = (correlation: number | null) =>
    graphFinding(
      graph({
        measured: {
          nodes: [],
          baseline: 0,
          correlation,
          interval: correlation === null ? null : { low: 0, high: 1 },
        },
      }),
    ).controls;
  assert.match(said(0.7), "the effects are similar to the estimates");
  assert.match(said(0.3), "the estimates do not predict the effects");
  assert.match(said(null), "too few to compare");
  assert.match(graphFinding(graph({ measured: null })).controls, "No removal was measured");
  const none = graph({ nodes: [] });
  assert.match(graphFinding(none).says, "No neuron or head is left after pruning.");
});

test("nodes have a name for sentences and a short one", () => {
  const names = graph().nodes.map((node) => [nodeName(graph(), node), shortName(node)]);
  assert.equal(names, [
    ["the embedding at The (token 0)", "emb 0"],
    ["the embedding at ·capital (token 1)", "emb 1"],
    ["head 2 of block 0 at ·capital (token 1)", "0.h2"],
    ["neuron 305 of block 1 at ·capital (token 1)", "1.n305"],
    ["other neurons of block 1 at ·capital (token 1)", "1.rest"],
    ["the logit of ·Paris", "target 0"],
  ]);
  assert.is(nodeName(graph(), at("rounding", 0, 0, null)), "rounding in block 0 at The (token 0)");
});

test("a report draws every node and edge, and escapes tokens", () => {
  const result = graph({ tokens: ["<b>", " capital"] });
  const { parts: sections, summary } = findingsOf({ operation: "graph", result });
  assert.match(summary[0]!, /^Rounding accounts for/);
  const picture = sections.find(({ id }) => id === "graph") as { body: { markup: string } };
  const { markup } = picture.body;
  assert.is([...markup.matchAll(/<circle/g)].length, 4, "embeddings, the neuron and the target");
  assert.is([...markup.matchAll(/<rect/g)].length, 1, "the head");
  assert.is([...markup.matchAll(/<path d="M[\d. ]+C/g)].length, 3, "edges");
  assert.is([...markup.matchAll(/Z" fill="none"/g)].length, 1, "other neurons");
  assert.match(
    markup,
    "<title>the embedding at &lt;b&gt; (token 0) to head 2 of block 0 at ·capital (token 1): -2.000</title>",
  );
  assert.not.match(markup, "<b>");
  const order = [...markup.matchAll(/stroke="(#\w+)"/g)].map(([, color]) => color);
  assert.equal(order, ["#d9722e", "#d9722e", "#2a8f9b"], "the weakest edge first");
  assert.equal(
    sections.map(({ id }) => id),
    ["graph", "graph-parts", "graph-nodes", "graph-edges", "graph-measured"],
  );
});

test.run();
