/** Influence and pruning of a graph that is small enough to compute by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { pruneGraph, threshold } from "../../src/operations/graph/run-pruning.js";

/**
 * One target, two tokens, two nodes in one block: columns are embeddings 0 and 1, nodes 0 and 1, other neurons at tokens 0
 * and 1, and rounding at tokens 0 and 1.
 */
const layout = { targets: 1, tokens: 2, nodes: 2, layers: 1 };
const parts = Float32Array.from([
  ...[0, 1, 2, -4, 0, 1, 0, 0], // the target: 8 without signs
  ...[3, 0, 0, 0, 1, 0, 0, 0], // node 0: 4
  ...[0, -2, 1, 0, 0, 0, 0, 1], // node 1: 4
]);
const edges = { parts, columns: 8 } as never;
const whole = { nodeThreshold: 1, edgeThreshold: 1 };

const near = (found: Iterable<number>, expected: number[]) => {
  const list = [...found];
  assert.is(list.length, expected.length);
  for (const [i, value] of expected.entries())
    assert.ok(Math.abs(list[i]! - value) < 1e-12, `${i}: ${list[i]}, ${value}`);
};

test("influence flows down every path, and is divided by its sum", () => {
  const { influence, scores } = pruneGraph({ edges }, layout, [1], whole);
  // The target passes 1/8, 2/8, 4/8 and 1/8 on. Node 1 gets 1/2 and passes 1/4, 1/8 and 1/8 on; node 0 gets 2/8 + 1/8.
  const node0 = 2 / 8 + 1 / 8;
  const all = [(node0 * 3) / 4, 1 / 8 + 1 / 4, node0, 1 / 2, node0 / 4, 1 / 8, 0, 1 / 8];
  const sum = all.reduce((total, value) => total + value, 0);
  near(
    influence,
    all.map((value) => value / sum),
  );
  const [embeddings, errors] = [all[0]! + all[1]!, all[4]! + all[5]! + all[7]!];
  near([scores.replacement], [embeddings / (embeddings + errors)]);
  near([scores.rounding], [1 / 8 / (embeddings + errors)]);
  // The target has 1/8 from errors, node 0 1/4 and node 1 1/4; sources have no edges.
  const good = 7 / 8 + (node0 * 3) / 4 + (1 / 2) * (3 / 4) + embeddings + errors;
  near([scores.completeness], [good / (1 + node0 + 1 / 2 + embeddings + errors)]);
});

test("the influence of targets is weighted", () => {
  const two = { ...layout, targets: 2 };
  const both = Float32Array.from([...parts.subarray(0, 8), 0, 5, 0, 0, 0, 0, 0, 0, ...parts.subarray(8)]);
  const { influence } = pruneGraph({ edges: { parts: both, columns: 8 } as never }, two, [0, 0.5], whole);
  near(influence, [0, 1, 0, 0, 0, 0, 0, 0]);
});

test("a threshold is the smallest of the largest values that have the share together", () => {
  const values = Float64Array.of(1, 5, 2, 2);
  assert.is(threshold(values, 0.5), 5);
  assert.is(threshold(values, 0.51), 2);
  assert.is(threshold(values, 0.91), 1);
  assert.is(threshold(values, 0), 5);
});

test("pruning keeps strong nodes, all embeddings, and the edges between them", () => {
  // Of the influence in total, 0.28 + 0.375 + 0.375 + 0.5 + 0.09 + 0.125 + 0.125, two thirds are these: node 1, then
  // embedding 1 and node 0, of 0.375 each.
  const { kept, edges: found } = pruneGraph({ edges }, layout, [1], {
    nodeThreshold: 0.66,
    edgeThreshold: 1,
  });
  assert.equal([...kept], [1, 1, 1, 1, 0, 0, 0, 0]);
  // Without errors the target passes 1/7, 2/7 and 4/7 on, and node 1 two thirds and one third.
  const influences = new Map(found.map(({ row, column, influence }) => [`${row} ${column}`, influence]));
  near(
    ["0 1", "0 2", "0 3", "1 0", "2 1", "2 2"].map((edge) => influences.get(edge)!),
    [1 / 7, 2 / 7, 4 / 7, 2 / 7 + 4 / 21, 8 / 21, 4 / 21],
  );
  assert.equal(
    found.map(({ influence }) => influence),
    found.map(({ influence }) => influence).sort((a, b) => b - a),
  );
  assert.is(found.length, 6);
});

test("a node that no kept edge leads to, or from, is dropped with its edges", () => {
  // Edges sum to 1.857; 0.5 of it is the target's edge from node 1 and node 0's from embedding 0. Then nothing leads from
  // node 0, and nothing to node 1.
  const { kept, edges: found } = pruneGraph({ edges }, layout, [1], {
    nodeThreshold: 0.66,
    edgeThreshold: 0.5,
  });
  assert.equal([...kept], [1, 1, 0, 0, 0, 0, 0, 0]);
  assert.equal(found, []);
});

test.run();
