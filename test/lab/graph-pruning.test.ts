/** Influence and pruning of a graph that is small enough to compute by hand. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type Edges,
  leastInfluence,
  type PrunedEdge,
  strongestEdges,
} from "../../src/operations/graph/run-edges.js";
import { Pause } from "../../src/operations/graph/run-pause.js";
import { pruneGraph } from "../../src/operations/graph/run-pruning.js";

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
const most = 100;
const whole = { nodeThreshold: 1, edgeThreshold: 1, most };

const near = (found: Iterable<number>, expected: number[]) => {
  const list = [...found];
  assert.is(list.length, expected.length);
  for (const [i, value] of expected.entries())
    assert.ok(Math.abs(list[i]! - value) < 1e-12, `${i}: ${list[i]}, ${value}`);
};

test("influence flows down every path, and is divided by its sum", async () => {
  const { influence, scores } = await pruneGraph({ edges }, layout, [1], whole);
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

test("the influence of targets is weighted", async () => {
  const two = { ...layout, targets: 2 };
  const both = Float32Array.from([...parts.subarray(0, 8), 0, 5, 0, 0, 0, 0, 0, 0, ...parts.subarray(8)]);
  const { influence } = await pruneGraph(
    { edges: { parts: both, columns: 8 } as never },
    two,
    [0, 0.5],
    whole,
  );
  near(influence, [0, 1, 0, 0, 0, 0, 0, 0]);
});

test("pruning keeps strong nodes, all embeddings, and the edges between them", async () => {
  // Of the influence in total, 0.28 + 0.375 + 0.375 + 0.5 + 0.09 + 0.125 + 0.125, two thirds are these: node 1, then
  // embedding 1 and node 0, of 0.375 each.
  const { kept, edges: found } = await pruneGraph({ edges }, layout, [1], {
    nodeThreshold: 0.66,
    edgeThreshold: 1,
    most,
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

test("a node that no kept edge leads to, or from, is dropped with its edges", async () => {
  // Edges sum to 1.857; 0.5 of it is the target's edge from node 1 and node 0's from embedding 0. Then nothing leads from
  // node 0, and nothing to node 1.
  const { kept, edges: found } = await pruneGraph({ edges }, layout, [1], {
    nodeThreshold: 0.66,
    edgeThreshold: 0.5,
    most,
  });
  assert.equal([...kept], [1, 1, 0, 0, 0, 0, 0, 0]);
  assert.equal(found, []);
});

const edgesOf = (...influences: number[]): Edges => ({
  rows: 1,
  of: (row, visit) => {
    for (const [column, influence] of influences.entries()) visit(influence, row, column);
  },
});
const leastOf = (edges: Edges, share: number) => leastInfluence(edges, share, new Pause());

test("the least influence is the smallest of the strongest that have the share together", async () => {
  const of = async (edges: Edges, ...shares: number[]) =>
    Promise.all(shares.map((share) => leastOf(edges, share)));
  assert.equal(await of(edgesOf(1, 5, 2, 2), 0, 0.5, 0.51, 0.9, 0.91, 1), [5, 5, 2, 2, 1, 1]);
  assert.is(await leastOf(edgesOf(), 0.5), 0);
  // These differ in the last bit, and add up to less than a half and to more.
  const [low, high] = [1, 1 + Number.EPSILON] as const;
  assert.equal(await of(edgesOf(low, high, 1.5), 0.42, 0.5, 0.8), [1.5, high, low]);
  // The sums of these round, so that all of them together seem too few.
  assert.is(await leastOf(edgesOf(0.8, 0.73, 0.7, 0.52, 0.45, 0.0501, 0.0499), 1), 0.0499);
});

test("the strongest edges are in order, and the first of equal ones", async () => {
  const found: number[][] = [];
  for (const most of [1, 2, 3, 4, 9]) {
    const edges = await strongestEdges(edgesOf(2, 5, 2, 1, 2), most, new Pause());
    found.push(edges.map(({ column }) => column));
  }
  assert.equal(found, [[1], [1, 0], [1, 0, 2], [1, 0, 2, 4], [1, 0, 2, 4, 3]]);
  assert.equal(await strongestEdges(edgesOf(), 3, new Pause()), []);
});

/** What pruning keeps, from a list of all edges between columns that are kept. */
function connected(all: PrunedEdge[], edgeThreshold: number, targets: number, tokens: number, nodes: number) {
  const sorted = [...all].sort((a, b) => b.influence - a.influence);
  const total = sorted.reduce((sum, { influence }) => sum + influence, 0);
  let [count, sum] = [0, 0];
  while (count < sorted.length && sum < edgeThreshold * total) sum += sorted[count++]!.influence;
  let edges = sorted.slice(0, count);
  for (;;) {
    const isInner = (column: number) => column >= tokens && column < tokens + nodes;
    const stays = ({ row, column }: PrunedEdge) =>
      (row < targets || edges.some((other) => other.column === tokens + row - targets)) &&
      (!isInner(column) || edges.some((other) => other.row === targets + column - tokens));
    const left = edges.filter(stays);
    if (left.length === edges.length) return left;
    edges = left;
  }
}

test("pruned edges are those of a list of all edges", async () => {
  const [targets, tokens, nodes, layers] = [2, 3, 25, 2];
  const columns = tokens + nodes + 2 * layers * tokens;
  let seed = 7;
  const random = () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed / 2 ** 31;
  };
  const values = Float32Array.from({ length: (targets + nodes) * columns }, (_, at) => {
    const [row, column] = [Math.floor(at / columns), at % columns];
    const isAbove =
      column >= tokens + Math.max(0, row < targets ? nodes : row - targets) && column < tokens + nodes;
    return isAbove || random() < 0.6 ? 0 : random() ** 4 - 0.3;
  });
  const graph = { edges: { parts: values, columns } as never };
  const size = { targets, tokens, nodes, layers };
  for (const nodeThreshold of [1, 0.7]) {
    // Everything first, for the influence of each edge between kept columns.
    const whole = await pruneGraph(graph, size, [0.7, 0.3], { nodeThreshold, edgeThreshold: 1, most: 1e6 });
    for (const edgeThreshold of [0.98, 0.8, 0.5, 0.2]) {
      const { edges, all, kept } = await pruneGraph(graph, size, [0.7, 0.3], {
        nodeThreshold,
        edgeThreshold,
        most: 20,
      });
      const expected = connected(whole.edges, edgeThreshold, targets, tokens, nodes);
      const named = (list: PrunedEdge[]) => list.map(({ row, column }) => `${row} ${column}`);
      assert.equal(named(edges), named(expected.slice(0, 20)), `${nodeThreshold} ${edgeThreshold}`);
      assert.is(all.count, expected.length);
      near([all.influence], [expected.reduce((sum, { influence }) => sum + influence, 0)]);
      const ends = new Set(expected.map(({ column }) => column));
      for (let column = 0; column < columns; column++)
        assert.is(kept[column], column < tokens || ends.has(column) ? 1 : 0, `${column}`);
    }
  }
});

test("a graph of millions of edges is pruned in a heap of 64 MB, between other work", () => {
  const script = fileURLToPath(new URL("./fixtures/wide-graph.ts", import.meta.url));
  const found = execFileSync(process.execPath, ["--max-old-space-size=64", "--import", "tsx", script], {
    encoding: "utf8",
  });
  const { edges, count, listed, strongest, turns, ended } = JSON.parse(found);
  assert.ok(edges > 4_000_000, `${edges}`);
  assert.is(count, edges);
  assert.is(listed, 1000);
  assert.is(strongest, "0 3003");
  // Each of the passes over the edges has at least one pause.
  assert.ok(turns >= 5, `${turns} turns of the event loop`);
  assert.is(ended, "enough");
});

test.run();
