/** What MLPs read, proven or refused, on graphs by hand. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type FoundPoints, Graph, sizes } from "../support/graphs/index.js";

const { width, tokens } = sizes;

const weight = (graph: Graph, name = "norm") => graph.leaf(name, { ne: [width] });
const rms = (graph: Graph, of: string, name = "rms") => graph.node(name, "RMS_NORM", [of]);
const weighed = (graph: Graph, of: string, name = "weighed") => graph.node(name, "MUL", [of, weight(graph)]);

/** The points of one block whose MLP is written by `mlp`, from the stream to what it adds. */
async function withMlp(mlp: (graph: Graph, mid: string) => string): Promise<FoundPoints> {
  const graph = new Graph();
  const from = graph.tokens();
  const mid = graph.add("mid", from, graph.attention("attn", from));
  return graph.points(graph.add("out", mid, mlp(graph, mid)));
}

function found({ points }: FoundPoints): string | undefined {
  const [site] = points.ffn_in.sites;
  if (site) assert.equal([site.reached, site.width], [site.node, width]);
  return site?.node;
}

test("an MLP reads its norm's output, with weight and bias", async () => {
  const plain = await withMlp((graph, mid) => graph.mlp("mlp", rms(graph, mid)));
  assert.is(found(plain), "rms");
  const scaled = await withMlp((graph, mid) => graph.mlp("mlp", weighed(graph, rms(graph, mid))));
  assert.is(found(scaled), "weighed");
  const shifted = await withMlp((graph, mid) => {
    const norm = weighed(graph, graph.node("centred", "NORM", [mid]));
    return graph.mlp("mlp", graph.node("shifted", "ADD", [norm, weight(graph, "bias")]));
  });
  assert.is(found(shifted), "shifted");
  const picked = await withMlp((graph, mid) => {
    const ids = graph.leaf("inp_out_ids", { ne: [tokens], type: "i32" });
    return graph.mlp("mlp", weighed(graph, rms(graph, graph.node("rows", "GET_ROWS", [mid, ids]))));
  });
  assert.is(found(picked), "weighed");
});

test("several readers of one norm read the same input", async () => {
  const all = await withMlp((graph, mid) => {
    const norm = weighed(graph, rms(graph, mid));
    return graph.add("both", graph.mlp("gate", norm), graph.mlp("up", norm));
  });
  assert.is(found(all), "weighed");
  // A gate of the normalised row's own is no weight.
  const gated = await withMlp((graph, mid) => {
    const norm = rms(graph, mid);
    return graph.mlp("mlp", graph.node("gated", "MUL", [norm, graph.product("gate", norm)]));
  });
  assert.is(found(gated), "rms");
});

test("an MLP that reads more than one norm's output has no such point", async () => {
  const beginning = "The graph has no proven ffn_in: block 0 ";
  const none = "has an MLP that reads the stream without a norm.";
  const refused = async (mlp: (graph: Graph, mid: string) => string) => {
    const { points } = await withMlp(mlp);
    assert.equal([points.ffn_in.sites, points.ffn_out.sites.length], [[], 1]);
    assert.ok(points.ffn_in.reason.startsWith(beginning), points.ffn_in.reason);
    return points.ffn_in.reason.slice(beginning.length);
  };
  assert.is(await refused((graph, mid) => graph.mlp("mlp", mid)), none);
  // Its norm is at the end, as in OLMo 2.
  assert.is(await refused((graph, mid) => weighed(graph, rms(graph, graph.mlp("mlp", mid)))), none);
  assert.is(
    await refused((graph, mid) =>
      graph.add("both", graph.mlp("gate", mid), graph.mlp("up", weighed(graph, rms(graph, mid)))),
    ),
    none,
  );
  assert.is(
    await refused((graph, mid) =>
      graph.add("both", graph.mlp("one", rms(graph, mid)), graph.mlp("other", rms(graph, mid, "second"))),
    ),
    "reads several norms of the stream in its MLP.",
  );
});

test("parallel halves have it only with separate norms", async () => {
  const graph = new Graph();
  const from = graph.tokens();
  const attention = graph.attention("attn", weighed(graph, rms(graph, from)));
  const mlp = graph.mlp("mlp", weighed(graph, rms(graph, from, "second"), "own"));
  graph.add("sum", attention, mlp);
  const apart = await graph.points(graph.add("out", "sum", from));
  assert.equal([apart.parallel, found(apart)], [1, "own"]);

  const shared = new Graph();
  const input = shared.tokens();
  const norm = weighed(shared, rms(shared, input));
  shared.add("sum", shared.attention("attn", norm), shared.mlp("mlp", norm));
  const { points } = await shared.points(shared.add("out", "sum", input));
  assert.is(
    points.ffn_in.reason,
    "The graph has no proven ffn_in: block 0 has one norm for attention and MLP, so a change there would change both.",
  );
});

test.run();
