/** Which halves of a block are proven, on graphs by hand: what no model does, and what few do. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Point } from "../../src/native/index.js";
import { type FoundPoints, Graph, sizes } from "../support/graphs/index.js";

const { width, tokens, heads } = sizes;

/** The nodes of a point, block by block; the way back from each block's output has to lead there. */
function nodes({ points }: FoundPoints, point: Point): (string | undefined)[] {
  return points[point].sites.map((site, layer) => {
    // A later block's input is met as the output of the block before it.
    if (site && !(point === "block_in" && layer > 0)) assert.is(site.reached, site.node);
    return site?.node;
  });
}

/** What is proven of one block that ends with "out". */
async function found(write: (graph: Graph, from: string) => void): Promise<FoundPoints> {
  const graph = new Graph();
  write(graph, graph.tokens());
  return graph.points("out");
}

const halves = (all: FoundPoints) =>
  [nodes(all, "attn_out"), nodes(all, "mid"), nodes(all, "ffn_out")].flat();

/** Why a block has no halves. */
async function refusal(write: (graph: Graph, from: string) => void): Promise<string> {
  const { points } = await found(write);
  const beginning = "The graph has no proven attn_out: block 0 ";
  assert.equal(points.attn_out.sites, []);
  assert.ok(points.attn_out.reason.startsWith(beginning), points.attn_out.reason);
  return points.attn_out.reason.slice(beginning.length);
}

const once = "adds to the residual stream only once, so it does not have two halves.";
const noAddition = "does not end with an addition to the residual stream.";
const otherwise = "is not the sum of its input and two halves, one of which mixes tokens.";
const more = "changes the residual stream by more than two additions.";
const thrice = "adds to the residual stream more than twice.";
const noAttention = "has a first half that does not mix tokens, so it is not attention.";

test("two blocks: their inputs, halves and outputs, and attention", async () => {
  const graph = new Graph();
  const all = await graph.points(graph.block(0, graph.tokens()), graph.block(1, "out-0"));
  for (const [point, expected] of [
    ["block_in", ["embd", "out-0"]],
    ["attention", ["attn-0-weights", "attn-1-weights"]],
    ["head_out", ["attn-0-heads", "attn-1-heads"]],
    ["attn_out", ["attn-0", "attn-1"]],
    ["mid", ["mid-0", "mid-1"]],
    ["ffn_out", ["mlp-0", "mlp-1"]],
    ["block_out", ["out-0", "out-1"]],
  ] as const) {
    assert.equal(nodes(all, point), expected, point);
    assert.is(all.points[point].reason, "");
  }
  assert.equal([all.parallel, all.normed, all.scaled], [0, 0, 0]);
  assert.is(all.points.router.reason, "The graph has no proven router: block 1 has no experts.");
  const [attention, read, out] = (["attention", "head_out", "block_out"] as const).map(
    (point) => all.points[point].sites[1]!,
  );
  assert.equal([attention!.heads, attention!.width], [heads, tokens]);
  assert.equal([read!.heads, read!.width], [heads, width]);
  assert.equal([out!.heads, out!.width], [0, width]);
});

test("a sum is the same in either order", async () => {
  for (const [first, second] of [
    [false, false],
    [false, true],
    [true, false],
    [true, true],
  ]) {
    const all = await found((graph, from) => {
      const add = (name: string, turned: boolean | undefined, one: string, other: string) =>
        turned ? graph.add(name, other, one) : graph.add(name, one, other);
      const mid = add("mid", first, from, graph.attention("attn", from));
      add("out", second, mid, graph.mlp("mlp", mid));
    });
    assert.equal(halves(all), ["attn", "mid", "mlp"]);
  }
});

test("nodes that only select or reshape rows are skipped", async () => {
  const ids = (graph: Graph) => graph.leaf("inp_out_ids", { ne: [tokens], type: "i32" });
  for (const op of ["RESHAPE", "VIEW", "CONT", "GET_ROWS"]) {
    const keep = (graph: Graph, name: string, of: string) =>
      graph.node(name, op, op === "GET_ROWS" ? [of, ids(graph)] : [of]);
    const all = await found((graph, from) => {
      const sum = graph.add("mid", from, graph.attention("attn", from));
      const mid = keep(graph, "rows", sum);
      keep(graph, "out", graph.add("sum", mid, graph.mlp("mlp", mid)));
    });
    assert.equal(halves(all), ["attn", "mid", "mlp"], op);
  }
});

test("parallel halves are identified by which one mixes tokens, in any order of sums", async () => {
  const summands = ["embd", "attn", "mlp"];
  for (const last of summands) {
    const [one, other] = summands.filter((name) => name !== last) as [string, string];
    for (const [inner, outer] of [
      [false, false],
      [true, false],
      [false, true],
    ]) {
      for (const reshaped of [false, true]) {
        const all = await found((graph, from) => {
          graph.attention("attn", from);
          graph.mlp("mlp", from);
          graph.add("sum", ...(inner ? ([other, one] as const) : ([one, other] as const)));
          const sum = reshaped ? graph.node("rows", "RESHAPE", ["sum"]) : "sum";
          graph.add("out", ...(outer ? ([last, sum] as const) : ([sum, last] as const)));
        });
        assert.equal(halves(all), ["attn", "mlp"], `${last} is added last`);
        assert.equal([all.parallel, nodes(all, "block_in")], [1, ["embd"]]);
        assert.is(
          all.points.mid.reason,
          "The graph has no proven mid: in block 0 attention and MLP have the same input, so there is no point between them.",
        );
      }
    }
  }
});

test("parallel halves behind another block begin with that block's output", async () => {
  const graph = new Graph();
  const from = graph.block(0, graph.tokens());
  graph.add("sum", graph.attention("attn", from), graph.mlp("mlp", from));
  const all = await graph.points(from, graph.add("out", "sum", from));
  assert.equal(nodes(all, "attn_out"), ["attn-0", "attn"]);
  assert.equal(nodes(all, "ffn_out"), ["mlp-0", "mlp"]);
});

test("summands are not halves without the input or exactly one that mixes tokens", async () => {
  const threeOf = (write: (graph: Graph, from: string) => [string, string, string]) =>
    refusal((graph, from) => {
      const [one, two, three] = write(graph, from);
      graph.add("out", graph.add("sum", one, two), three);
    });
  const norm = (graph: Graph, from: string) => graph.node("normed", "RMS_NORM", [from]);
  assert.is(
    await threeOf((graph, from) => [
      norm(graph, from),
      graph.attention("attn", from),
      graph.mlp("mlp", from),
    ]),
    otherwise,
  );
  assert.is(
    await threeOf((graph, from) => [from, graph.attention("attn", from), graph.attention("other", from)]),
    otherwise,
  );
  assert.is(
    await threeOf((graph, from) => [from, graph.mlp("mlp", from), graph.mlp("other", from)]),
    otherwise,
  );
  const graph = new Graph();
  const from = graph.block(0, graph.tokens());
  const [one, two, three] = [norm(graph, from), graph.attention("attn", from), graph.mlp("mlp", from)];
  const { points } = await graph.points(from, graph.add("out", graph.add("sum", one, two), three));
  assert.is(points.attn_out.reason, `The graph has no proven attn_out: block 1 ${otherwise}`);
});

test("attention is what mixes tokens: by its operation, by a mask, or through a memory", async () => {
  const firstHalf = (op: string, more: (graph: Graph) => string[] = () => []) =>
    found((graph, from) => {
      const half = graph.product("half", graph.node("mixer", op, [from, ...more(graph)]));
      const mid = graph.add("mid", from, half);
      graph.add("out", mid, graph.mlp("mlp", mid));
    });
  const operations = "FLASH_ATTN_EXT SSM_CONV SSM_SCAN RWKV_WKV6 RWKV_WKV7 GATED_LINEAR_ATTN GATED_DELTA_NET";
  for (const op of operations.split(" "))
    assert.equal(halves(await firstHalf(op)), ["half", "mid", "mlp"], op);
  const mask = (graph: Graph) => [graph.leaf("mask", { ne: [tokens, tokens] })];
  assert.equal(halves(await firstHalf("SOFT_MAX", mask)), ["half", "mid", "mlp"]);
  const memory = (graph: Graph) => [graph.leaf("cache_r_l0")];
  assert.equal(halves(await firstHalf("CONCAT", memory)), ["half", "mid", "mlp"]);
  // Neither a softmax of a row of its own nor any other tensor that a batch brings along.
  for (const [op, other] of [
    ["SOFT_MAX", () => []],
    ["CONCAT", (graph: Graph) => [graph.leaf("scratch_cache_r_l0")]],
  ] as const) {
    const { points } = await firstHalf(op, other);
    assert.is(points.attn_out.reason, `The graph has no proven attn_out: block 0 ${noAttention}`);
  }
});

test("a block that adds once, or three times, or whose first half reads its own row only, has no halves", async () => {
  assert.is(await refusal((graph, from) => graph.add("out", from, graph.attention("attn", from))), once);
  assert.is(
    await refusal((graph, from) => {
      const one = graph.add("one", from, graph.attention("attn", from));
      const two = graph.add("two", one, graph.mlp("mlp", one));
      graph.add("out", two, graph.mlp("third", two));
    }),
    thrice,
  );
  assert.is(
    await refusal((graph, from) => {
      const mid = graph.add("mid", from, graph.mlp("mlp", from));
      graph.add("out", mid, graph.attention("attn", mid));
    }),
    noAttention,
  );
});

test("a stream that is changed by more than sums is none that two halves are added to", async () => {
  const changed = (between: (graph: Graph, sum: string) => string) =>
    refusal((graph, from) => {
      const mid = between(graph, graph.add("sum", from, graph.attention("attn", from)));
      graph.add("out", mid, graph.mlp("mlp", mid));
    });
  assert.is(await changed((graph, sum) => graph.node("scaled", "SCALE", [sum])), more);
  assert.is(await changed((graph, sum) => graph.node("gated", "MUL", [sum, graph.mlp("gate", sum)])), more);
  assert.is(
    await changed((graph, sum) => {
      const scaled = graph.node("scaled", "SCALE", [sum]);
      return graph.add("again", scaled, graph.attention("other", scaled));
    }),
    more,
  );
  // A later block, whose input is known.
  const graph = new Graph();
  const from = graph.block(0, graph.tokens());
  const scaled = graph.node("scaled", "SCALE", [from]);
  const mid = graph.add("mid", scaled, graph.attention("attn", scaled));
  const { points } = await graph.points(from, graph.add("out", mid, graph.mlp("mlp", mid)));
  assert.is(points.attn_out.reason, `The graph has no proven attn_out: block 1 ${more}`);
  assert.is(points.block_in.sites[1]?.node, from);
  const ended = (end: (graph: Graph, mid: string, mlp: string) => void) =>
    refusal((graph, from) => {
      const mid = graph.add("mid", from, graph.attention("attn", from));
      end(graph, mid, graph.mlp("mlp", mid));
    });
  assert.is(
    await ended((graph, mid, mlp) => graph.node("out", "RMS_NORM", [graph.add("sum", mid, mlp)])),
    noAddition,
  );
  assert.is(await ended((graph, mid, mlp) => graph.node("out", "MUL", [mid, mlp])), noAddition);
  assert.is(await ended((graph, mid) => graph.add("out", mid, mid)), noAddition);
});

test("embeddings that are scaled, normed or told their places are the first block's input", async () => {
  for (const made of [
    (graph: Graph, embd: string) => graph.node("made", "RMS_NORM", [embd]),
    (graph: Graph, embd: string) => graph.add("made", embd, graph.leaf("inp_pos", { ne: [width, tokens] })),
  ]) {
    const sequential = await found((graph, embd) => {
      const from = made(graph, embd);
      const mid = graph.add("mid", from, graph.attention("attn", from));
      graph.add("out", mid, graph.mlp("mlp", mid));
    });
    assert.equal([...nodes(sequential, "block_in"), ...halves(sequential)], ["made", "attn", "mid", "mlp"]);
    const parallel = await found((graph, embd) => {
      const from = made(graph, embd);
      graph.add("out", graph.add("sum", from, graph.attention("attn", from)), graph.mlp("mlp", from));
    });
    assert.equal([...nodes(parallel, "block_in"), ...halves(parallel)], ["made", "attn", "mlp"]);
  }
});

test("a tensor after attention or a sum is not the first block's input", async () => {
  const unknown = async (write: (graph: Graph, embd: string) => string) => {
    const { points } = await found((graph, embd) => {
      const from = write(graph, embd);
      graph.add("out", graph.add("sum", from, graph.attention("attn", from)), graph.mlp("mlp", from));
    });
    assert.is(points.block_in.reason, `The graph has no proven block_in: block 0 ${otherwise}`);
  };
  await unknown((graph, embd) => graph.add("twice", embd, graph.mlp("first", embd)));
  await unknown((graph, embd) => graph.node("normed", "RMS_NORM", [graph.attention("first", embd)]));
});

test("a summand of another shape or from outside the stream is not a half", async () => {
  const second = (of: (graph: Graph, mid: string) => string) =>
    refusal((graph, from) => {
      const mid = graph.add("mid", from, graph.attention("attn", from));
      graph.add("out", mid, of(graph, mid));
    });
  // One row for all tokens.
  assert.is(await second((graph, mid) => graph.product("mean", mid, { ne: [width] })), noAddition);
  const places = (graph: Graph) => graph.leaf("inp_pos", { ne: [width, tokens] });
  assert.is(await second(places), noAddition);
  assert.is(await second((graph) => graph.node("turned", "SCALE", [places(graph)])), noAddition);
  // From an earlier block, past this one's input.
  const graph = new Graph();
  const from = graph.block(0, graph.tokens());
  const mid = graph.add("mid", from, graph.attention("attn", from));
  const { points } = await graph.points(from, graph.add("out", mid, "mlp-0"));
  assert.is(points.ffn_out.reason, `The graph has no proven ffn_out: block 1 ${noAddition}`);
});

test("a tensor that the block's input bypasses is not the residual stream", async () => {
  const beside = await refusal((graph, from) => {
    const mid = graph.add("mid", from, graph.attention("attn", from));
    const gated = graph.node("gated", "MUL", [mid, from]);
    graph.add("out", mid, graph.mlp("mlp", gated));
  });
  assert.is(beside, otherwise);
});

test("rows that were taken apart in between are other rows", async () => {
  const graph = new Graph();
  const from = graph.block(0, graph.tokens());
  const narrow = { ne: [width / 2, 2 * tokens] };
  const apart = graph.node("apart", "RESHAPE", [from], narrow);
  const ids = graph.leaf("ids", { ne: [2 * tokens], type: "i32" });
  const turned = graph.node("turned", "GET_ROWS", [apart, ids], narrow);
  const together = graph.node("together", "RESHAPE", [turned]);
  const sum = graph.add("sum", together, graph.attention("attn", from));
  const { points } = await graph.points(from, graph.add("out", sum, graph.mlp("mlp", from)));
  assert.is(points.attn_out.reason, `The graph has no proven attn_out: block 1 ${otherwise}`);
});

test("a refused block has the input that the block before it put out, and the first one what is seen of it", async () => {
  const graph = new Graph();
  const from = graph.block(0, graph.tokens());
  const all = await graph.points(from, graph.node("out", "RMS_NORM", [from]));
  assert.equal(nodes(all, "block_in"), ["embd", "out-0"]);
  assert.equal(nodes(all, "block_out"), ["out-0", "out"]);
  assert.equal(nodes(all, "head_out"), ["attn-0-heads", undefined]);
  assert.equal(all.points.head_out.without, ["", noAddition.slice(0, -1)]);
  const first = await found((one, tokens) => one.add("out", tokens, one.attention("attn", tokens)));
  assert.equal(nodes(first, "block_in"), ["embd"]);
  const unknown = await found((one, tokens) => one.node("out", "RMS_NORM", [tokens]));
  assert.is(unknown.points.block_in.reason, `The graph has no proven block_in: block 0 ${noAddition}`);
});

test("the first block that has not a point is named, of experts the last", async () => {
  const graph = new Graph();
  const from = graph.node("none", "RMS_NORM", [graph.tokens()]);
  const { points } = await graph.points(from, graph.add("out", from, graph.attention("attn", from)));
  assert.is(points.attn_out.reason, `The graph has no proven attn_out: block 0 ${noAddition}`);
  assert.is(points.attention.reason, `The graph has no proven attention: block 0 ${noAddition}`);
  assert.is(points.router.reason, "The graph has no proven router: block 1 has no experts.");
});

test.run();
