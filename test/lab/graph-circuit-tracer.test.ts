/** A graph in circuit-tracer's JSON: its schema, and the values of a graph that is small enough to write by hand. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Type from "typebox";
import { Check, Errors } from "typebox/value";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { GraphEdge } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { circuitTracerGraph, writeCircuitTracer } from "../../src/operations/graph/run-circuit-tracer.js";
import { listGraph } from "../../src/operations/graph/run-listing.js";
import { pruneGraph } from "../../src/operations/graph/run-pruning.js";
import { graphNode, graphTarget } from "../support/graph-nodes.js";

const strict = { additionalProperties: false };
const nullable = Type.Union([Type.Number(), Type.Null()]);
const Metadata = Type.Object(
  {
    slug: Type.String(),
    scan: Type.String(),
    transcoder_list: Type.Array(Type.String()),
    prompt_tokens: Type.Array(Type.String()),
    prompt: Type.String(),
    node_threshold: nullable,
    schema_version: Type.Literal(1),
  },
  strict,
);
/** circuit_tracer/frontend/graph_models.py of version 0.5.0. */
const Schema = Type.Object(
  {
    metadata: Metadata,
    qParams: Type.Object(
      {
        pinnedIds: Type.Array(Type.String()),
        supernodes: Type.Array(Type.Array(Type.String())),
        linkType: Type.String(),
        clickedId: Type.String(),
        sg_pos: Type.String(),
      },
      strict,
    ),
    nodes: Type.Array(
      Type.Object(
        {
          node_id: Type.String(),
          feature: Type.Integer(),
          layer: Type.String(),
          ctx_idx: Type.Integer(),
          feature_type: Type.String(),
          token_prob: Type.Number(),
          is_target_logit: Type.Boolean(),
          run_idx: Type.Integer(),
          reverse_ctx_idx: Type.Integer(),
          jsNodeId: Type.String(),
          clerp: Type.String(),
          influence: nullable,
          activation: nullable,
        },
        strict,
      ),
    ),
    links: Type.Array(
      Type.Object({ source: Type.String(), target: Type.String(), weight: Type.Number() }, strict),
    ),
  },
  strict,
);

/** @returns the graph's sources by their targets' ids, after checks that every tool that reads such files needs */
function checked(graph: unknown) {
  assert.ok(Check(Schema, graph), JSON.stringify(Errors(Schema, graph).slice(0, 3)));
  const ids = graph.nodes.map(({ node_id }) => node_id);
  assert.is(new Set(ids).size, ids.length, "ids are unique");
  for (const { source, target } of graph.links) assert.ok(ids.includes(source) && ids.includes(target));
  // Its page reads the probability of a logit from its label.
  for (const { feature_type, clerp, token_prob } of graph.nodes) {
    if (feature_type !== "logit") continue;
    assert.is(Number(clerp.split("(p=")[1]?.split(")")[0]), Number(token_prob.toFixed(3)));
  }
  return graph;
}

const result = {
  tokens: ["A", " b\n"],
  token_ids: [7, 300],
  blocks: 2,
  targets: [graphTarget(12, " c", 0.25), graphTarget(9, '"', 0.125, "\t")],
  nodes: [
    graphNode("embedding", null, 0, null),
    graphNode("embedding", null, 1, null),
    graphNode("neuron", 0, 1, 1, 2.5),
    graphNode("head", 1, 1, 3, -1.5),
    graphNode("rest", 1, 1, null),
    graphNode("rounding", 1, 1, null),
    graphNode("neuron", 1, 0, 0, 0.5),
    graphNode("target", null, 1, 0, 4),
    graphNode("target", null, 1, 1, 3),
  ],
};
const edges = [
  [3, 7, 2],
  [2, 3, -0.5],
  [1, 2, 1.25],
  [4, 7, 0.75],
  [5, 8, -0.25],
].map(([source, target, value]) => ({ source, target, value, influence: 0 }) as GraphEdge);

test("a small graph has the ids, numbers and labels of circuit-tracer", () => {
  const cumulative = [0.95, 0.9, 0.6, 0.4, 0.8, 1, 0.99, null, null];
  const graph = circuitTracerGraph(result, edges, cumulative, { prompt: "A b\n", node_threshold: 0.8 });
  assert.equal(checked(graph).metadata, {
    ...{ slug: "graph", scan: "./tapline", transcoder_list: [], prompt_tokens: ["A", " b⏎"] },
    ...{ prompt: "A b\n", node_threshold: 0.8, schema_version: 1 },
  });
  assert.equal(graph.qParams, {
    ...{ pinnedIds: [], supernodes: [], linkType: "both", clickedId: "", sg_pos: "" },
  });
  const usual = { token_prob: 0, is_target_logit: false, run_idx: 0, reverse_ctx_idx: 0, activation: null };
  const feature = { ...usual, feature_type: "cross layer transcoder" };
  const error = { ...usual, feature_type: "mlp reconstruction error" };
  const logit = { ...usual, layer: "3", ctx_idx: 1, feature_type: "logit", influence: null };
  // Neuron 0 of block 1 has no links, so it is left out.
  assert.equal(graph.nodes, [
    {
      ...{ node_id: "E_7_0", jsNodeId: "E_7-0", feature: 0, layer: "E", ctx_idx: 0, clerp: "" },
      ...{ ...usual, feature_type: "embedding", influence: 0.95 },
    },
    {
      ...{ node_id: "E_300_1", jsNodeId: "E_300-1", feature: 1, layer: "E", ctx_idx: 1, clerp: "" },
      ...{ ...usual, feature_type: "embedding", influence: 0.9 },
    },
    // Cantor's pair of 0 and 1 is 1 * 2 / 2 + 1, of 1 and 1000003 it is 1000004 * 1000005 / 2 + 1000003.
    {
      ...{ node_id: "0_1_1", jsNodeId: "0_1-0", feature: 2, layer: "0", ctx_idx: 1, clerp: "neuron 1" },
      ...{ ...feature, influence: 0.6, activation: 2.5 },
    },
    {
      ...{ node_id: "1_1000003_1", jsNodeId: "1_1000003-0", feature: 500_005_500_013, layer: "1" },
      ...{ ...feature, ctx_idx: 1, clerp: "head 3", influence: 0.4, activation: -1.5 },
    },
    {
      ...{ node_id: "1_-1_1", jsNodeId: "1_-1-1", feature: -1, layer: "1", ctx_idx: 1 },
      ...{ ...error, clerp: 'Other neurons: " b⏎"', influence: 0.8 },
    },
    {
      ...{ node_id: "1_-2_1", jsNodeId: "1_-2-1", feature: -2, layer: "1", ctx_idx: 1 },
      ...{ ...error, clerp: 'Rounding: " b⏎"', influence: 1 },
    },
    {
      ...{ node_id: "3_12_1", jsNodeId: "L_12-1", feature: 12 },
      ...{ ...logit, token_prob: 0.25, is_target_logit: true, clerp: 'Output " c" (p=0.250)' },
    },
    {
      ...{ node_id: "3_9_1", jsNodeId: "L_9-1", feature: 9 },
      ...{ ...logit, token_prob: 0.125, clerp: 'Output """ minus "→" (p=0.125)' },
    },
  ]);
  assert.equal(graph.links, [
    { source: "1_1000003_1", target: "3_12_1", weight: 2 },
    { source: "0_1_1", target: "1_1000003_1", weight: -0.5 },
    { source: "E_300_1", target: "0_1_1", weight: 1.25 },
    { source: "1_-1_1", target: "3_12_1", weight: 0.75 },
    { source: "1_-2_1", target: "3_9_1", weight: -0.25 },
  ]);
});

test("influence is the share of a node and all stronger ones, before pruning", async () => {
  // One target, one token, two nodes in one block: embedding, node 0, node 1, other neurons, rounding.
  const layout = { targets: 1, tokens: 1, nodes: 2, layers: 1 };
  const parts = Float32Array.from([
    ...[0, 1, 3, 0, 0], // the target: 1/4 from node 0, 3/4 from node 1
    ...[1, 0, 0, 1, 0], // node 0: 1/8 to the embedding and to other neurons
    ...[3, 0, 0, 0, -1], // node 1: 9/16 to the embedding, 3/16 to rounding
  ]);
  const columns = 5;
  const found = {
    nodes: {
      heads: Int32Array.of(0, 1),
      layers: Int32Array.of(0, 0),
      tokens: Int32Array.of(0, 0),
      indices: Int32Array.of(5, 2),
      values: Float64Array.of(1, 2),
    },
    edges: { parts, columns, values: Float64Array.of(4, 2, 2) },
  } as never;
  const all = { nodeThreshold: 1, edgeThreshold: 1, most: 10 };
  const pruned = await pruneGraph(found, layout, [1], all);
  const { nodes, edges, cumulative } = listGraph(
    [{ position: 0, token: 1, weight: 1 }],
    found,
    layout,
    pruned,
  );
  // Node 1 12/16, the embedding 11/16, node 0 4/16, rounding 3/16, other neurons 2/16: 32/16 in total.
  assert.equal(
    nodes.map(({ kind, index }) => [kind, index]),
    [
      ["embedding", null],
      ["neuron", 5],
      ["head", 2],
      ["rest", null],
      ["rounding", null],
      ["target", 0],
    ],
  );
  const near = (list: readonly (number | null)[], expected: (number | null)[]) => {
    assert.is(list.length, expected.length);
    for (const [at, value] of expected.entries()) {
      if (value === null) assert.is(list[at], null);
      else assert.ok(Math.abs((list[at] as number) - value) < 1e-12, `${at}: ${list[at]}, ${value}`);
    }
  };
  near(cumulative, [23 / 32, 27 / 32, 12 / 32, 1, 30 / 32, null]);
  near(
    nodes.map(({ influence }) => influence),
    [11 / 32, 4 / 32, 12 / 32, 2 / 32, 3 / 32, 1],
  );
  // The target's own edges first: 3/4 and 1/4 of 1, then 3/4 of 3/4, 1/4 of 3/4 and both of node 0's.
  assert.equal(
    edges.map(({ source, target, value }) => [source, target, value]),
    [
      [2, 5, 3],
      [0, 2, 3],
      [1, 5, 1],
      [4, 2, -1],
      [0, 1, 1],
      [3, 1, 1],
    ],
  );
  near(
    edges.map(({ influence }) => influence),
    [12, 9, 4, 3, 2, 2].map((sixteenths) => sixteenths / 32),
  );
});

test("the files are in the folder that circuit-tracer's server reads", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tapline-circuit-tracer-"));
  try {
    const graph = circuitTracerGraph(result, edges, [], { prompt: "A b\n", node_threshold: 1 });
    const artifacts = new Artifacts(folder);
    await writeCircuitTracer(artifacts, graph);
    assert.equal(artifacts.names, ["graph.json", "graph-metadata.json"]);
    assert.equal(readdirSync(folder).sort(), ["graph-metadata.json", "graph.json"]);
    const read = (name: string) => JSON.parse(readFileSync(join(folder, name), "utf8"));
    assert.equal(checked(read("graph.json")), graph);
    assert.equal(read("graph-metadata.json"), { graphs: [graph.metadata] });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test.run();
