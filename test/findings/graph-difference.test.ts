/** Two graphs next to each other: nodes pair up by what they are and by matching tokens. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { GraphNode } from "../../src/contracts/index.js";
import {
  type ComparedGraph,
  comparedNodes,
  pairNodes,
  pairsSentence,
} from "../../src/findings/graph-difference.js";
import { graphNode } from "../support/graph-nodes.js";

const node = (influence: number, ...place: Parameters<typeof graphNode>): GraphNode => ({
  ...graphNode(...place),
  influence,
});

function graph(tokens: string[], targets: string[], nodes: GraphNode[], sha256?: string): ComparedGraph {
  const block = { dictionary: "d", point: "ffn_in", writes: "ffn_out", features: 9, active: 1 };
  return {
    ...{ tokens, nodes, targets: targets.map((token) => ({ token })) },
    ...(sha256 !== undefined && {
      transcoders: { name: "d", zero_positions: 0, blocks: [{ layer: 2, sha256, ...block }] },
    }),
  };
}

const france = graph(
  ["The", " capital", " of", " France", " is"],
  [" Paris", " the"],
  [
    node(0.125, "embedding", null, 3, null),
    node(0.375, "neuron", 1, 4, 7),
    node(0.125, "head", 1, 4, 7),
    node(0.25, "neuron", 0, 3, 5),
    node(0.6, "target", null, 4, 0),
    node(0.2, "target", null, 4, 1),
  ],
);

test("nodes at the same token of texts of one length are paired, targets by their token", () => {
  const japan = graph(
    ["The", " capital", " of", " Japan", " is"],
    [" the", " Tokyo"],
    [
      node(0.25, "neuron", 1, 4, 7),
      node(0.25, "neuron", 0, 3, 5),
      node(0.75, "head", 1, 3, 7),
      node(0.5, "target", null, 4, 0),
      node(0.4, "target", null, 4, 1),
    ],
  );
  const pairs = pairNodes(france, japan);
  assert.equal(pairs.both, [
    { one: 1, other: 0 },
    { one: 3, other: 1 },
    { one: 5, other: 3 },
  ]);
  assert.equal(
    [pairs.onlyOne, pairs.onlyOther],
    [
      [0, 2, 4],
      [2, 4],
    ],
  );
  // Neurons: 0.625 of 0.75 in the first, 0.5 of 1.25 in the second.
  assert.is(
    pairsSentence(france, japan, pairs),
    "2 nodes are in both graphs, with 83.3 % of the first's and 40.0 % of the second's influence (embeddings and logits aside); " +
      "1 only in the first, 1 only in the second.",
  );
  const rows = comparedNodes(france, japan, pairs);
  // Differences: 0.75, 0.125 (three times, in the order of the rows), 0.
  assert.equal(
    rows.map(({ one, other }) => [one, other]),
    [
      [null, 2],
      [1, 0],
      [0, null],
      [2, null],
      [3, 1],
    ],
  );
  assert.equal(rows[1]?.influence, [0.375, 0.25]);
  assert.equal(rows[2]?.influence, [0.125, null]);
});

test("in texts of different lengths, the common beginning and end are paired", () => {
  const longer = graph(
    ["The", " capital", " of", " New", " France", " is"],
    [" Paris"],
    [
      node(0.1, "embedding", null, 4, null),
      node(0.1, "embedding", null, 3, null),
      node(0.3, "neuron", 1, 5, 7),
      node(0.3, "neuron", 1, 0, 7),
    ],
  );
  const { both, onlyOther } = pairNodes(france, longer);
  assert.equal(both, [
    { one: 0, other: 0 },
    { one: 1, other: 2 },
  ]);
  assert.equal(onlyOther, [1, 3]);
});

test("a token of the middle is paired with none, and no token of two texts twice", () => {
  const one = graph(["a", "b", "a"], ["x"], [node(1, "neuron", 0, 1, 1), node(1, "neuron", 0, 2, 1)]);
  const other = graph(["a", "a"], ["x"], [node(1, "neuron", 0, 0, 1), node(1, "neuron", 0, 1, 1)]);
  assert.equal(pairNodes(one, other), { both: [{ one: 1, other: 1 }], onlyOne: [0], onlyOther: [0] });
});

test("features are only paired within one dictionary", () => {
  const nodes = [node(0.5, "feature", 2, 1, 3), node(0.5, "error", 2, 1, null)];
  const one = graph(["a", "b"], ["x"], nodes, "1".repeat(64));
  const same = graph(["a", "c"], ["x"], nodes, "1".repeat(64));
  const different = graph(["a", "c"], ["x"], nodes, "2".repeat(64));
  assert.equal(pairNodes(one, same).both.length, 2);
  assert.equal(pairNodes(one, different), {
    both: [{ one: 1, other: 1 }],
    onlyOne: [0],
    onlyOther: [0],
  });
});

test.run();
