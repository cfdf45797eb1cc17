/** The choice of experts as it is proven, on graphs by hand: what no model does, and what few do. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type FoundSite, Graph, sizes } from "../support/graphs/index.js";

const { width, tokens, experts, used } = sizes;

/** What is found of the router of one block whose second half this makes, from the stream between the halves. */
async function router(half: (graph: Graph, mid: string) => string): Promise<FoundSite | string> {
  const graph = new Graph();
  const from = graph.tokens();
  const mid = graph.add("mid", from, graph.attention("attn", from));
  const { points } = await graph.points(graph.add("out", mid, half(graph, mid)));
  const [site] = points.router.sites;
  const beginning = "The graph has no proven router: block 0 ";
  return site ?? points.router.reason.replace(beginning, "");
}

const rowsOfExperts = { ne: [width, used, tokens] };
const oneEach = { ne: [1, used, tokens] };

/** The usual half: each expert's product, weighed by what the router gave it. */
function usual(graph: Graph, mid: string, { probabilities, ids } = graph.choice(mid)): string {
  const made = graph.byExperts("made", graph.byExperts("up", mid, ids), ids);
  const weighed = graph.node(
    "weighed",
    "MUL",
    [made, graph.picked("weights", probabilities, ids)],
    rowsOfExperts,
  );
  return graph.summed("half", weighed);
}

const found = async (half: (graph: Graph, mid: string) => string, what = "", node = "weights") => {
  const site = await router(half);
  if (typeof site === "string") return assert.unreachable(`${what}: ${site}`);
  assert.equal(
    [site.node, site.reached, site.chosen, site.width, site.experts],
    [node, node, "sorted", used, experts],
    what,
  );
};

const more = "chooses experts more than once.";
const notBest = "does not choose experts as the best of a row of scores.";
const unknown = "weights its experts in an unknown way.";
const twice = "weights its experts more than once.";

test("experts are found by the ids that pick them, their weights by the same ids", async () => {
  await found(usual);
});

test("expert weights may be either factor and apply to inputs or outputs", async () => {
  for (const turned of [false, true]) {
    const operands = (rows: string, weights: string) => (turned ? [weights, rows] : [rows, weights]);
    await found((graph, mid) => {
      const { probabilities, ids } = graph.choice(mid);
      const weights = graph.picked("weights", probabilities, ids);
      const made = graph.byExperts("made", mid, ids);
      return graph.summed("half", graph.node("weighed", "MUL", operands(made, weights), rowsOfExperts));
    }, `behind, ${turned}`);
    await found((graph, mid) => {
      const { probabilities, ids } = graph.choice(mid);
      const weights = graph.picked("weights", probabilities, ids);
      const repeated = graph.node("repeated", "REPEAT", [mid], rowsOfExperts);
      const weighed = graph.node("weighed", "MUL", operands(repeated, weights), rowsOfExperts);
      return graph.summed("half", graph.byExperts("made", weighed, ids));
    }, `before, ${turned}`);
  }
});

test("between an expert's product and its weight may stand a bias, a scale, a gain and another shape", async () => {
  for (const [op, more] of [
    ["ADD_ID", ["bias", "ids"]],
    ["MUL", ["gain"]],
    ["SCALE", []],
    ["RESHAPE", []],
  ] as const) {
    await found((graph, mid) => {
      const { probabilities, ids } = graph.choice(mid);
      for (const name of more.filter((each) => each !== ids)) graph.leaf(name, { ne: [width] });
      const made = graph.node("changed", op, [graph.byExperts("made", mid, ids), ...more], rowsOfExperts);
      const weights = graph.picked("weights", probabilities, ids);
      return graph.summed("half", graph.node("weighed", "MUL", [made, weights], rowsOfExperts));
    }, op);
  }
  // What else is done to it makes it another number, which is not an expert's to weigh.
  const other = await router((graph, mid) => {
    const { probabilities, ids } = graph.choice(mid);
    const made = graph.node("changed", "UNARY", [graph.byExperts("made", mid, ids)], rowsOfExperts);
    const weights = graph.picked("weights", probabilities, ids);
    return graph.summed("half", graph.node("weighed", "MUL", [made, weights], rowsOfExperts));
  });
  assert.is(other, unknown);
});

test("weights may be scaled, divided by their sum, or made by a softmax of those chosen", async () => {
  const behind = (op: string) => (graph: Graph, mid: string) => {
    const { probabilities, ids } = graph.choice(mid);
    const picked = graph.picked("picked", probabilities, ids);
    const sum = op === "DIV" ? [graph.node("sum", "SUM_ROWS", [picked], { ne: [1, 1, tokens] })] : [];
    const weights = graph.node("weights", op, [picked, ...sum], oneEach);
    const made = graph.byExperts("made", mid, ids);
    return graph.summed("half", graph.node("weighed", "MUL", [made, weights], rowsOfExperts));
  };
  for (const op of ["RESHAPE", "SCALE", "DIV", "SOFT_MAX"]) await found(behind(op), op);
  assert.is(await router(behind("UNARY")), unknown);
});

test("ids that no token chooses are an adapter's and count as none", async () => {
  const ids = (graph: Graph) => graph.leaf("adapter_ids", { ne: [used, tokens], type: "i32" });
  await found((graph, mid) =>
    usual(graph, graph.summed("adapted", graph.byExperts("adapter", mid, ids(graph)))),
  );
  const alone = await router((graph, mid) => graph.summed("half", graph.byExperts("made", mid, ids(graph))));
  assert.is(alone, "has no experts.");
  // Its products are no experts', whatever they are multiplied with.
  const weighed = await router((graph, mid) => {
    const chosen = graph.choice(mid);
    const made = graph.byExperts("made", mid, chosen.ids);
    const adapter = graph.byExperts("adapter", mid, ids(graph));
    const weights = graph.picked("weights", chosen.probabilities, chosen.ids);
    const product = graph.node("weighed", "MUL", [adapter, weights], rowsOfExperts);
    return graph.summed("half", graph.add("both", made, product, rowsOfExperts));
  });
  assert.is(weighed, unknown);
});

test("experts that are not on the way to the block's output are none of its", async () => {
  await found((graph, mid) => {
    const { ids } = graph.choice(mid, "other-");
    graph.byExperts("aside", mid, ids);
    return usual(graph, mid);
  });
});

test("two routers in one block are ambiguous and refused", async () => {
  const both = await router((graph, mid) => {
    const other = graph.summed("other", graph.byExperts("first", mid, graph.choice(mid, "other-").ids));
    return graph.add("both", usual(graph, mid), other);
  });
  assert.is(both, more);
});

test("ids are the first of a whole row of scores, sorted from the highest", async () => {
  const chosen = (sort: Parameters<Graph["sorted"]>[2], pick: Parameters<Graph["best"]>[2], op?: string) =>
    router((graph, mid) => {
      const gate = graph.product("probabilities", mid, { ne: [experts, tokens] });
      const sorted = op
        ? graph.node("sorted", op, [gate], { ne: [experts, tokens], type: "i32", param: 1 })
        : graph.sorted(gate, "sorted", sort);
      return usual(graph, mid, { probabilities: gate, ids: graph.best(sorted, "ids", pick) });
    });
  assert.is(((await chosen({}, {})) as FoundSite).chosen, "sorted");
  assert.is(await chosen({ param: 0 }, {}), notBest); // ascending
  assert.is(await chosen({}, { offset: 4 }), notBest); // from the second on
  assert.is(await chosen({}, { stride: used * 4 }), notBest); // the first two rows' ids, one after another
  assert.is(await chosen({}, {}, "CONT"), notBest);
  assert.is(await chosen({ stride: 64 }, { stride: 64 }), notBest);
  assert.is(await chosen({ ne: [experts, tokens, 2] }, {}), notBest);
  assert.is(await chosen({ ne: [experts, tokens + 1] }, {}), notBest); // not every token's
});

test("values with other ids or shared by tokens are not expert weights", async () => {
  const byOthers = await router((graph, mid) => {
    const { probabilities, ids } = graph.choice(mid);
    const others = graph.leaf("others", { ne: [used, tokens], type: "i32" });
    const made = graph.byExperts("made", mid, ids);
    const weights = graph.picked("weights", probabilities, others);
    return graph.summed("half", graph.node("weighed", "MUL", [made, weights], rowsOfExperts));
  });
  assert.is(byOthers, unknown);
  // Each expert's own scale comes from the file.
  await found((graph, mid) => {
    const { probabilities, ids } = graph.choice(mid);
    const scale = graph.picked("scale", graph.leaf("scales", { ne: [experts, 1] }), ids);
    const made = graph.byExperts("made", mid, ids);
    const scaled = graph.node("scaled", "MUL", [made, scale], rowsOfExperts);
    const weights = graph.picked("weights", probabilities, ids);
    return graph.summed("half", graph.node("weighed", "MUL", [scaled, weights], rowsOfExperts));
  });
});

test("a weight is one number of a token and expert, in float32; what else is read by their ids is none", async () => {
  for (const other of [
    { ne: [width, used, tokens] },
    { ...oneEach, type: "f16" as const },
    { ...oneEach, stride: 64 },
  ]) {
    await found((graph, mid) => {
      const { probabilities, ids } = graph.choice(mid);
      const rows = graph.product("rows", probabilities, { ne: [width, experts, tokens] });
      const gain = graph.node("gain", "GET_ROWS", [rows, ids], other);
      const scaled = graph.node("scaled", "MUL", [graph.byExperts("made", mid, ids), gain], rowsOfExperts);
      const weights = graph.picked("weights", probabilities, ids);
      return graph.summed("half", graph.node("weighed", "MUL", [scaled, weights], rowsOfExperts));
    }, JSON.stringify(other));
  }
});

test("weights that multiply something else weigh nobody, and two that multiply experts are one too many", async () => {
  await found((graph, mid) => {
    const { probabilities, ids } = graph.choice(mid);
    const weights = graph.picked("weights", probabilities, ids);
    const repeated = graph.node("repeated", "REPEAT", [mid], rowsOfExperts);
    const elsewhere = graph.node("elsewhere", "MUL", [repeated, weights], rowsOfExperts);
    const made = graph.byExperts("made", mid, ids);
    const weighed = graph.node("weighed", "MUL", [made, weights], rowsOfExperts);
    return graph.summed("half", graph.add("both", weighed, elsewhere, rowsOfExperts));
  });
  const again = await router((graph, mid) => {
    const { probabilities, ids } = graph.choice(mid);
    const weights = graph.picked("weights", probabilities, ids);
    const once = graph.node("once", "MUL", [graph.byExperts("made", mid, ids), weights], rowsOfExperts);
    return graph.summed("half", graph.node("weighed", "MUL", [once, weights], rowsOfExperts));
  });
  assert.is(again, twice);
});

test.run();
