/** Heads, what is done to what halves add, and by which names nodes are met: on graphs by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type FoundPoints, Graph, sizes } from "../support/graphs/index.js";

const { width, tokens, heads } = sizes;

/** What is found in one block whose first half this is. */
async function withHalf(write: (graph: Graph, from: string) => string): Promise<FoundPoints> {
  const graph = new Graph();
  const from = graph.tokens();
  const mid = graph.add("mid", from, write(graph, from));
  return graph.points(graph.add("out", mid, graph.mlp("mlp", mid)));
}

const values = (graph: Graph, from: string) =>
  graph.product("values", from, { ne: [tokens, width / heads, heads] });

test("attention in one operation keeps no weights, and has its heads side by side at once", async () => {
  const { points } = await withHalf((graph, from) => {
    const ne = [width / heads, heads, tokens];
    const read = graph.node("flash", "FLASH_ATTN_EXT", [from, from, from, graph.leaf("mask")], { ne });
    return graph.product("attn", graph.node("read", "RESHAPE", [read]));
  });
  assert.is(
    points.attention.reason,
    "The graph has no proven attention: block 0 does not store attention weights (flash attention).",
  );
  const [site] = points.head_out.sites;
  assert.equal([site?.node, site?.reached, site?.heads, site?.width], ["read", "read", heads, width]);
});

test("two attentions in one half are ambiguous; a softmax of one row is not attention", async () => {
  const both = (other: (graph: Graph, from: string) => string) =>
    withHalf((graph, from) => graph.add("half", graph.attention("attn", from), other(graph, from)));
  const { points } = await both((graph, from) => graph.attention("other", from));
  assert.is(points.attention.reason, "The graph has no proven attention: block 0 attends more than once.");
  assert.is(points.head_out.reason, "The graph has no proven head_out: block 0 attends more than once.");
  const gated = await both((graph, from) => graph.node("gate", "SOFT_MAX", [from]));
  assert.is(gated.points.attention.sites[0]?.node, "attn-weights");
  assert.is(gated.points.head_out.sites[0]?.node, "attn-heads");
});

test("a half that mixes tokens otherwise has no heads", async () => {
  const { points } = await withHalf((graph, from) => graph.node("scan", "SSM_SCAN", [from]));
  const without = "block 0 mixes tokens without attention weights.";
  assert.is(points.attention.reason, `The graph has no proven attention: ${without}`);
  assert.is(points.head_out.reason, `The graph has no proven head_out: ${without}`);
});

test("weights of several streams are not attention, and shared values are not heads", async () => {
  const streams = await withHalf((graph, from) => {
    const weights = graph.weights("weights", from, { ne: [tokens, tokens / 2, heads, 2] });
    return graph.product("attn", graph.sideBySide("read", values(graph, from), weights));
  });
  assert.is(streams.points.attention.sites.length, 0);
  assert.equal(
    [streams.points.head_out.sites[0]?.node, streams.points.head_out.sites[0]?.heads],
    ["read", heads],
  );
  const twice = await withHalf((graph, from) => {
    const weights = graph.weights("weights", from);
    const one = graph.sideBySide("one", values(graph, from), weights);
    return graph.add("attn", one, graph.sideBySide("other", "values", weights));
  });
  assert.is(twice.points.attention.sites[0]?.node, "weights");
  const nowhere = "block 0 has no tensor with the concatenated outputs of the heads.";
  assert.is(twice.points.head_out.reason, `The graph has no proven head_out: ${nowhere}`);
});

test("what heads read is a row of equal parts, in float32", async () => {
  for (const options of [{ ne: [width - 1, tokens] }, { type: "f16" as const }, { stride: 64 }]) {
    const { points } = await withHalf((graph, from) => {
      const weights = graph.weights("weights", from);
      return graph.product("attn", graph.sideBySide("read", values(graph, from), weights, options));
    });
    assert.is(points.attention.sites[0]?.node, "weights");
    const nowhere = "block 0 has no tensor with the concatenated outputs of the heads.";
    assert.is(points.head_out.reason, `The graph has no proven head_out: ${nowhere}`);
  }
});

test("a point whose tensor is not rows of float32 is refused, others are kept", async () => {
  for (const options of [{ type: "f16" as const }, { stride: 64 }]) {
    const graph = new Graph();
    const from = graph.tokens();
    const half = graph.product("half", graph.attention("attn", from), options);
    const mid = graph.add("mid", from, half);
    const { points } = await graph.points(graph.add("out", mid, graph.mlp("mlp", mid)));
    const why = "block 0's tensor does not hold one vector per token.";
    assert.is(points.attn_out.reason, `The graph has no proven attn_out: ${why}`);
    assert.equal([points.mid.sites[0]?.node, points.ffn_out.sites[0]?.node], ["mid", "mlp"]);
  }
});

test("a norm or scale counts only as the last step before a half is added", async () => {
  const ids = (graph: Graph) => graph.leaf("inp_out_ids", { ne: [tokens], type: "i32" });
  const weight = (graph: Graph) => graph.leaf("norm", { ne: [width] });
  const rms = (graph: Graph, of: string) => graph.node("rms", "RMS_NORM", [of]);
  const changes: [change: (graph: Graph, of: string) => string, normed: number, scaled: number][] = [
    [(_, of) => of, 0, 0],
    [rms, 1, 0],
    [(graph, of) => graph.node("norm-plain", "NORM", [of]), 1, 0],
    [(graph, of) => graph.node("weighed", "MUL", [rms(graph, of), weight(graph)]), 1, 0],
    [(graph, of) => graph.node("gated", "MUL", [of, weight(graph)]), 0, 0],
    [(graph, of) => graph.node("scaled", "SCALE", [of]), 0, 1],
    [(graph, of) => graph.node("picked", "GET_ROWS", [rms(graph, of), ids(graph)]), 1, 0],
    [(graph, of) => graph.node("shaped", "RESHAPE", [graph.node("scaled", "SCALE", [of])]), 0, 1],
    [(graph, of) => graph.product("projected", rms(graph, of)), 0, 0],
  ];
  for (const [i, [change, normed, scaled]] of changes.entries()) {
    for (const second of [false, true]) {
      const graph = new Graph();
      const from = graph.tokens();
      const attention = graph.attention("attn", from);
      const mid = graph.add("mid", from, second ? attention : change(graph, attention));
      const mlp = graph.mlp("mlp", mid);
      const all = await graph.points(graph.add("out", mid, second ? change(graph, mlp) : mlp));
      assert.equal([all.normed, all.scaled], [normed, scaled], `change ${i}, second half: ${second}`);
    }
  }
});

test("a node is met by its own name, or by the nearest before it that occurs once", async () => {
  for (const called of ["node_7", "embd"]) {
    const graph = new Graph();
    const from = graph.tokens();
    const half = graph.attention("attn", from);
    const mid = graph.add("mid", from, half, { called });
    graph.mlp("mlp", mid);
    const { points } = await graph.points(graph.add("out", mid, "mlp"));
    const [site] = points.mid.sites;
    // "attn" is the node before it.
    assert.equal([site?.anchor, site?.offset], ["attn", 1], called);
    const [own] = points.ffn_out.sites;
    assert.equal([own?.anchor, own?.offset], ["mlp", 0]);
  }
});

test.run();
