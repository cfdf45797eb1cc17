/** Graphs in files: those of tapline come back as they were, those of circuit-tracer get names, and others are refused. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { GraphEdge } from "../../src/contracts/index.js";
import { nodeName } from "../../src/findings/graph.js";
import { graphLayout } from "../../src/findings/graph-layout.js";
import { circuitTracerGraph } from "../../src/operations/graph/run-circuit-tracer.js";
import { readGraphFile } from "../../src/workbench/page/graph-file.js";
import { graphNode, graphTarget } from "../support/graph-nodes.js";

const own = {
  tokens: ["A", " b"],
  token_ids: [7, 300],
  blocks: 3,
  targets: [graphTarget(12, " c", 0.5), graphTarget(9, '"', 0.25, " d")],
  nodes: [
    graphNode("embedding", null, 0, null),
    graphNode("embedding", null, 1, null),
    graphNode("neuron", 0, 1, 1, 2.5),
    graphNode("head", 1, 1, 3, -1.5),
    graphNode("rest", 1, 1, null),
    graphNode("rounding", 1, 1, null),
    graphNode("target", null, 1, 0),
    graphNode("target", null, 1, 1),
  ],
};
const links: [source: number, target: number, value: number][] = [
  [3, 6, 3],
  [4, 6, -1],
  [5, 7, 2],
  [2, 3, -0.5],
  [1, 3, 0.5],
  [1, 2, 1.25],
];
const file = circuitTracerGraph(
  own,
  links.map(([source, target, value]): GraphEdge => ({ source, target, value, influence: 0 })),
  own.nodes.map(() => null),
  { prompt: "A b", node_threshold: 0.8 },
);

test("a file of tapline has the same nodes, edges and names", () => {
  const read = readGraphFile("graph.json", JSON.stringify(file));
  assert.equal([read.prompt, read.tokens, read.blocks], ["A b", ["A", " b"], 3]);
  assert.equal(
    read.nodes.map(({ kind, layer, position, index, value }) => [kind, layer, position, index, value]),
    own.nodes.map(({ kind, layer, position, index, value }) => [kind, layer, position, index, value]),
  );
  assert.equal(
    read.nodes.map((one) => one.label ?? nodeName(read, one)),
    own.nodes.map((one) => nodeName(own, one)),
  );
  // The first target passes 3/4 and 1/4 of 0.5 on, the second all of its 0.25; the head halves of its 0.375.
  const expected: [number, number, number, number][] = [
    [3, 6, 3, 0.375],
    [5, 7, 2, 0.25],
    [2, 3, -0.5, 0.1875],
    [1, 3, 0.5, 0.1875],
    [1, 2, 1.25, 0.1875],
    [4, 6, -1, 0.125],
  ];
  const total = expected.reduce((sum, [, , , influence]) => sum + influence, 0);
  const byEnds = (list: typeof expected) => [...list].sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const found = read.edges.map(
    ({ source, target, value, influence }) => [source, target, value, influence] as (typeof expected)[number],
  );
  for (const [at, [source, target, value, influence]] of byEnds(expected).entries()) {
    const one = byEnds(found)[at]!;
    assert.equal(one.slice(0, 3), [source, target, value]);
    assert.ok(Math.abs(one[3] - influence / total) < 1e-12, `${source} ${target}: ${one[3]}`);
  }
  assert.equal(
    found.map(([, , , influence]) => influence),
    found.map(([, , , influence]) => influence).sort((a, b) => b - a),
  );
  // Embedding 1 receives 0.375 of all that is received below the targets.
  const received = 0.375 + 0.25 + 0.1875 + 0.375 + 0.125;
  assert.ok(Math.abs(read.nodes[1]!.influence - 0.375 / received) < 1e-12);
  assert.is(read.nodes[6]!.influence, 0.5);
  assert.is(graphLayout(read).dots.length, 8);
});

test("a file of tapline keeps features, errors and other features apart", () => {
  const kinds = ["feature", "error", "rest", "rounding"] as const;
  const nodes = [
    ...kinds.map((kind) => graphNode(kind, 1, 1, kind === "feature" ? 3 : null)),
    graphNode("target", null, 1, 0),
  ];
  const written = circuitTracerGraph(
    { ...own, nodes },
    kinds.map((_, source): GraphEdge => ({ source, target: 4, value: 1, influence: 0 })),
    nodes.map(() => null),
    { prompt: "A b", node_threshold: 0.8 },
  );
  const read = readGraphFile("graph.json", JSON.stringify(written));
  assert.equal(
    read.nodes.map(({ kind, index, label }) => [kind, index, label]),
    [...kinds.map((kind) => [kind, kind === "feature" ? 3 : null, undefined]), ["target", 0, undefined]],
  );
  assert.is(new Set(read.ids).size, 5);
});

/** As circuit-tracer writes it: features of transcoders, with fewer fields than it has. */
const foreign = {
  metadata: { slug: "s", scan: "gemma-2-2b", prompt_tokens: ["<bos>", "Fact"], prompt: "Fact" },
  qParams: { pinnedIds: ["4_1234_1", "E_2_1", "gone"], supernodes: [["capitals", "4_1234_1"]] },
  nodes: [
    { node_id: "E_2_1", layer: "E", ctx_idx: 1, feature_type: "embedding" },
    {
      ...{ node_id: "4_1234_1", feature: 768_000, layer: "4", ctx_idx: 1, activation: 7.5 },
      ...{ feature_type: "cross layer transcoder", clerp: "capitals" },
    },
    { node_id: "0_5_1", feature: -1, layer: "5", ctx_idx: 1, feature_type: "mlp reconstruction error" },
    {
      ...{ node_id: "27_8_1", layer: "27", ctx_idx: 1, feature_type: "logit", token_prob: 0.75 },
      clerp: 'Output " Paris" (p=0.750)',
    },
  ],
  links: [
    { source: "E_2_1", target: "4_1234_1", weight: 1 },
    { source: "4_1234_1", target: "27_8_1", weight: 2 },
    { source: "0_5_1", target: "27_8_1", weight: 1 },
    { source: "elsewhere", target: "27_8_1", weight: 1 },
  ],
};

test("a file of circuit-tracer has its features, errors and labels", () => {
  const read = readGraphFile("dallas.json", JSON.stringify(foreign));
  assert.equal(
    read.nodes.map(({ kind, layer, index, value, label }) => [kind, layer, index, value, label]),
    [
      ["embedding", null, null, null, undefined],
      ["feature", 4, 1234, 7.5, "feature 1234 of block 4 at Fact (token 1), capitals"],
      ["error", 5, null, null, undefined],
      ["target", null, 0, null, undefined],
    ],
  );
  assert.is(nodeName(read, read.nodes[3]!), "the logit of ·Paris");
  assert.is(nodeName(read, read.nodes[2]!), "the error of block 5 at Fact (token 1)");
  assert.equal(read.ids, ["E_2_1", "4_1234_1", "0_5_1", "27_8_1"]);
  assert.equal(read.marks, { pinned: ["E_2_1"], supernodes: [{ name: "capitals", nodes: ["4_1234_1"] }] });
  // Blocks up to the highest one with a node; links to nodes that are not in the file are left out.
  assert.is(read.blocks, 6);
  assert.is(read.edges.length, 3);
});

test("files that are not such graphs are refused", () => {
  const refused = (content: unknown) => {
    const text = typeof content === "string" ? content : JSON.stringify(content);
    try {
      readGraphFile("a.json", text);
    } catch (error) {
      return (error as Error).message;
    }
    return assert.unreachable("it was read") as never;
  };
  const expected = "a.json: expected a graph, with prompt tokens, nodes and links.";
  assert.is(refused("{"), "a.json: expected JSON.");
  for (const content of [null, [], 5, {}, { ...foreign, nodes: {} }, { ...foreign, links: [{}] }]) {
    assert.is(refused(content), expected);
  }
  assert.is(refused({ ...foreign, metadata: { prompt_tokens: [5] } }), expected);
  const [first, ...others] = foreign.nodes;
  for (const change of [{ ctx_idx: 2 }, { ctx_idx: -1 }, { node_id: 5 }, { feature_type: "logit" }]) {
    assert.is(refused({ ...foreign, nodes: [{ ...first, ...change }, ...others] }), expected);
  }
  // A picture of so many blocks would never end.
  const high = { ...foreign.nodes[1], layer: "1000000000" };
  assert.is(refused({ ...foreign, nodes: [high] }), expected);
  assert.is(refused({ ...foreign, nodes: foreign.nodes.slice(0, 3) }), "a.json: the graph has no logit.");
  const back = { source: "4_1234_1", target: "E_2_1", weight: 1 };
  assert.is(refused({ ...foreign, links: [...foreign.links, back] }), "a.json: the graph has a cycle.");
});

test.run();
