/** Pinned nodes and supernodes of a graph, and the fields of circuit-tracer's files that keep them. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  dissolved,
  type GraphMarks,
  grouped,
  marksIn,
  noMarks,
  renamed,
  supernodeEdges,
  toggled,
  withMarks,
} from "../../src/workbench/page/graph-marks.js";
import { graphNode } from "../support/graph-nodes.js";

const ids = ["E_7_0", "0_1_1", "1_3_1", "1_4_1", "4_12_1"];
const all = (marks: GraphMarks, ...more: string[]) => more.reduce(toggled, marks);

function refused(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  return "accepted";
}

test("pinned nodes become a named supernode, and are pinned again when it is ungrouped", () => {
  const pinned = all(noMarks, "0_1_1", "1_3_1", "1_4_1", "1_4_1");
  assert.equal(pinned, { pinned: ["0_1_1", "1_3_1"], supernodes: [] });
  const one = grouped(pinned, " Texas ");
  assert.equal(one, { pinned: [], supernodes: [{ name: "Texas", nodes: ["0_1_1", "1_3_1"] }] });
  assert.equal(renamed(one, 0, "Austin").supernodes[0]?.name, "Austin");
  assert.equal(dissolved(one, 0), pinned);
  // A node leaves its supernode; an empty one is gone.
  assert.equal(toggled(one, "0_1_1"), { pinned: [], supernodes: [{ name: "Texas", nodes: ["1_3_1"] }] });
  assert.equal(all(one, "0_1_1", "1_3_1"), noMarks);
});

test("supernodes need pinned nodes and a name", () => {
  assert.is(
    refused(() => grouped(noMarks, "a")),
    "Pin the nodes of the supernode first.",
  );
  const pinned = toggled(noMarks, "0_1_1");
  assert.is(
    refused(() => grouped(pinned, " ")),
    "Enter a name for the supernode.",
  );
  assert.is(
    refused(() => grouped(pinned, "a".repeat(81))),
    "Name: at most 80 characters, got 81.",
  );
});

test("a file keeps pinned nodes and supernodes, and the rest of its fields", () => {
  const marks = toggled(grouped(all(noMarks, "0_1_1", "1_3_1"), "Texas"), "E_7_0");
  const text = withMarks('{"metadata":{"slug":"s"},"qParams":{"linkType":"both","pinnedIds":["x"]}}', marks);
  assert.equal(JSON.parse(text), {
    metadata: { slug: "s" },
    qParams: {
      linkType: "both",
      pinnedIds: ["0_1_1", "1_3_1", "E_7_0"],
      supernodes: [["Texas", "0_1_1", "1_3_1"]],
    },
  });
  assert.equal(marksIn(JSON.parse(text).qParams, ids), marks);
});

test("what does not name nodes of the file is left out", () => {
  assert.equal(marksIn(undefined, ids), noMarks);
  assert.equal(marksIn({ pinnedIds: 5, supernodes: "a" }, ids), noMarks);
  const supernodes = [
    ["a", "1_3_1", "unknown", 5],
    ["b", "1_3_1", "1_4_1"],
    ["c", "nothing"],
    [5, "0_1_1"],
    "d",
  ];
  assert.equal(marksIn({ pinnedIds: ["1_3_1", "0_1_1", "0_1_1", null], supernodes }, ids), {
    supernodes: [
      { name: "a", nodes: ["1_3_1"] },
      { name: "b", nodes: ["1_4_1"] },
    ],
    pinned: ["0_1_1"],
  });
});

test("edges between supernodes are the sums of their nodes' edges", () => {
  const nodes = [
    graphNode("embedding", null, 0, null),
    graphNode("neuron", 0, 1, 1),
    graphNode("feature", 1, 1, 3),
    graphNode("feature", 1, 1, 4),
    graphNode("target", null, 1, 0),
  ];
  const edge = (source: number, target: number, value: number) => ({ source, target, value, influence: 0 });
  const edges = [
    ...[edge(1, 2, 2), edge(1, 3, -0.5), edge(2, 4, 1), edge(3, 4, 3), edge(0, 1, 9), edge(2, 3, 7)],
  ];
  const marks = grouped(all(grouped(all(noMarks, "0_1_1"), "below"), "1_3_1", "1_4_1"), "above");
  assert.equal(supernodeEdges(marks, ids, nodes, edges), [
    { source: 1, target: { node: 4 }, value: 4 },
    { source: 0, target: { supernode: 1 }, value: 1.5 },
  ]);
});

test.run();
