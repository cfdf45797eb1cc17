/** The graph of the embedded model: its sums, targets, pruned edges and measured removals. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkSubmission, type GraphResult, type Progress, UserError } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { Model } from "../../src/native/index.js";
import type { CircuitTracerGraph } from "../../src/operations/graph/run-circuit-tracer.js";
import type { Findings } from "../../src/operations/run.js";
import { runOperation } from "../../src/operations/runs.js";
import { demo } from "../native/demo-model.js";
import { readNpz } from "./npz-reader.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-graph-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));
const asked = { operation: "graph", model: demo, prompt: "The capital of France is" };

async function run(more: object = {}) {
  const config = checkSubmission({ ...asked, ...more });
  const model = await Model.open(config.model, { gpuLayers: 0 });
  const place = mkdtempSync(join(folder, "artifacts-"));
  const told: Progress[] = [];
  try {
    const result = (await runOperation({
      ...{ config, model, artifacts: new Artifacts(place), clock: new StageClock() },
      progress: (one) => void told.push(one),
      openOther: () => assert.unreachable() as never,
    })) as Findings<GraphResult>;
    const file = (name: string) => readFileSync(join(place, name));
    return {
      ...{ result, told, arrays: readNpz(file("graph.npz")) },
      traced: JSON.parse(file("graph.json").toString()),
    };
  } finally {
    await model.close();
  }
}

async function logitsOf(prompt: string, position = -1): Promise<Float32Array> {
  const model = await Model.open(demo, { gpuLayers: 0 });
  const context = await model.createContext({ nCtx: 64, keepAttention: true });
  const tokens = await model.tokenize(prompt, { special: true, parseSpecial: false });
  const { logits } = await context.forward({ sequences: [{ tokens }], logits: Int32Array.of(position) });
  await model.close();
  return logits!.data as Float32Array;
}

const sum = (values: Iterable<number>) => [...values].reduce((all, value) => all + value, 0);
const close = (found: number, expected: number, off: number, what = "") =>
  assert.ok(Math.abs(found - expected) <= off, `${what} ${found}, ${expected}`);

test("every node's edges add up to its value, and the target's parts to the logit", async () => {
  const { result, arrays, told } = await run({ nodes: 80, measured: 0, first_token: true });
  const { data: edges, shape } = arrays.get("edges")!;
  const [rows, columns] = shape as [number, number];
  assert.equal([rows, columns], [81, 6 + 80 + 2 * 8 * 6]);
  const values = arrays.get("values")!.data;
  const constants = arrays.get("constants")!.data;
  for (let row = 0; row < rows; row++) {
    const parts = edges.slice(row * columns, (row + 1) * columns);
    const size = Math.hypot(...parts, values[row]!);
    close(sum(parts) + constants[row]!, values[row]!, 1e-5 * size, `row ${row}`);
  }
  const logits = await logitsOf(asked.prompt);
  const best = logits.indexOf(Math.max(...logits));
  const [target] = result.targets as [GraphResult["targets"][number]];
  assert.is(target.token_id, best);
  close(target.measured, logits[best]! - sum(logits) / logits.length, 1e-4, "measured");
  close(target.value, target.measured, 0.02, "value");
  close(sum(Object.values(target.direct)), target.value, 1e-4, "direct");
  close(sum(Object.values(target.through)), target.value, 1e-9, "through");
  const exponentials = logits.map((logit) => Math.exp(logit - logits[best]!));
  close(target.probability, 1 / sum(exponentials), 1e-5, "probability");
  assert.is(result.measured, null);
  assert.ok(result.closing.worst < 1e-4 && result.closing.bound === 1e-3);
  const stages = [...new Set(told.map(({ stage }) => stage.replace(/ \(needs [\d.]+ MB\)$/, "")))];
  // Native progress is throttled, so a small model may skip some.
  assert.is(stages[0], "finding nodes");
  for (const stage of stages)
    assert.ok(["finding nodes", "reading nodes", "computing edges"].includes(stage), stage);
  assert.match(told[0]!.stage, /^finding nodes \(needs \d+(\.\d)? MB\)$/);
});

test("pruned edges are those of the artifact, between listed nodes", async () => {
  const { result, arrays, traced } = await run({ nodes: 60, measured: 0 });
  const of = (name: string) => arrays.get(name)!.data;
  assert.ok(result.edges.length > 20 && result.size.edges === result.edges.length, `${result.edges.length}`);
  assert.ok(
    result.nodes.every(({ kind, position }) => kind === "embedding" || kind === "rest" || position > 0),
  );
  assert.is(result.size.found, 60);
  const without = (await run({ nodes: 500, measured: 0 })).arrays.get("node_position")!.data;
  assert.ok(without.every((position) => position > 0));
  const atFirst = (await run({ nodes: 500, measured: 0, first_token: true })).arrays.get(
    "node_position",
  )!.data;
  assert.ok(atFirst.some((position) => position === 0));
  assert.is(result.nodes.filter(({ kind }) => kind === "neuron" || kind === "head").length, result.size.kept);
  const columns = arrays.get("edges")!.shape[1] as number;
  const inner = ({ kind, layer, position, index }: GraphResult["nodes"][number]) =>
    Array.from(of("node_layer")).findIndex(
      (one, i) =>
        (of("node_is_head")[i] === 1) === (kind === "head") &&
        one === layer &&
        of("node_position")[i] === position &&
        of("node_index")[i] === index,
    );
  const column = (node: GraphResult["nodes"][number]) => {
    const at = 6 + 60 + node.layer! * 6 + node.position;
    if (node.kind === "embedding") return node.position;
    return node.kind === "rest" ? at : node.kind === "rounding" ? at + 48 : 6 + inner(node);
  };
  for (const { source, target, value } of result.edges) {
    const to = result.nodes[target]!;
    const row = to.kind === "target" ? 0 : 1 + inner(to);
    assert.is(value, of("edges")[row * columns + column(result.nodes[source]!)]);
  }
  close(sum(result.edges.map(({ influence }) => influence)), 1, 1e-9);
  // The same graph for circuit-tracer.
  const { nodes, links } = traced as CircuitTracerGraph;
  assert.is(nodes.length, result.nodes.length);
  assert.equal(
    links.map(({ weight }) => weight),
    result.edges.map(({ value }) => value),
  );
  const ids = nodes.map(({ node_id }) => node_id);
  assert.equal(
    links.map(({ source, target }) => [ids.indexOf(source), ids.indexOf(target)]),
    result.edges.map(({ source, target }) => [source, target]),
  );
  const shares = nodes.flatMap(({ influence }) => influence ?? []);
  assert.ok(shares.every((share) => share > 0 && share <= 1 + 1e-9));
  const strongest = result.nodes.map(({ influence, kind }) => (kind === "target" ? 0 : influence));
  const most = strongest.indexOf(Math.max(...strongest));
  close(nodes[most]!.influence!, strongest[most]!, 1e-9, "the strongest");
});

test("a removal is the loss of the target without that neuron or head", async () => {
  const { result } = await run({ nodes: 40, measured: 12, target_token: " Paris", foil_token: " London" });
  const { measured } = result;
  assert.is(measured!.nodes.length, 12);
  const model = await Model.open(demo, { gpuLayers: 0 });
  const context = await model.createContext({ nCtx: 64 });
  const tokens = await model.tokenize(asked.prompt, { special: true, parseSpecial: false });
  const [paris] = await model.tokenize(" Paris", { special: false });
  const [london] = await model.tokenize(" London", { special: false });
  const difference = async (edits: object[]) => {
    const { logits } = await context.forward({
      sequences: [{ tokens, edits: edits as never }],
      logits: "last",
    });
    return logits!.get(0, paris!) - logits!.get(0, london!);
  };
  const baseline = await difference([]);
  close(measured!.baseline, baseline, 1e-3, "baseline");
  let heads = 0;
  for (const { kind, layer, position, index, effect } of measured!.nodes.filter(
    (node) => node.kind === "head",
  )) {
    const edit = { layer, point: "head_out", heads: [index], scale: 0, positions: [[position, position]] };
    close(effect, baseline - (await difference([edit])), 2e-3, `${kind} ${layer}.${index}`);
    heads++;
  }
  assert.ok(heads > 2, `${heads} heads`);
  await model.close();
  const sizes = measured!.nodes.map(({ estimate }) => Math.abs(estimate));
  assert.equal(
    sizes,
    [...sizes].sort((a, b) => b - a),
  );
  // By hand: Pearson's correlation.
  const mean = (list: number[]) => sum(list) / list.length;
  const [x, y] = [measured!.nodes.map((one) => one.estimate), measured!.nodes.map((one) => one.effect)];
  const product = (a: number[], b: number[]) =>
    sum(a.map((value, i) => (value - mean(a)) * (b[i]! - mean(b))));
  close(
    measured!.correlation!,
    product(x, y) / Math.sqrt(product(x, x) * product(y, y)),
    1e-9,
    "correlation",
  );
  assert.ok(
    measured!.interval!.low <= measured!.correlation! && measured!.correlation! <= measured!.interval!.high,
  );
});

test("targets have 0.95 of the probability, or are the tokens given", async () => {
  const prompt = "The capital";
  const logits = await logitsOf(prompt);
  const exponentials = [...logits].map((logit) => Math.exp(logit - Math.max(...logits)));
  const probabilities = exponentials.map((one) => one / sum(exponentials)).sort((a, b) => b - a);
  let count = 0;
  for (let mass = 0; mass < 0.95 && count < 10; count++) mass += probabilities[count]!;
  const { result } = await run({ prompt, nodes: 5, measured: 0 });
  assert.is(result.targets.length, count);
  assert.ok(count > 1, `${count}`);
  for (const [i, { probability, weight }] of result.targets.entries()) {
    close(probability, probabilities[i]!, 1e-6);
    assert.is(weight, probability);
  }
  const one = (await run({ nodes: 5, measured: 2, target_token: " London", position: 3 })).result;
  assert.equal(
    one.targets.map(({ token, weight, foil_token }) => [token, weight, foil_token]),
    [[" London", 1, null]],
  );
  assert.is(one.position, 3);
  assert.equal([one.measured!.nodes.length, one.measured!.correlation], [2, null]);
  assert.ok(one.nodes.every(({ position }) => position <= 3));
  assert.is(one.tokens.length, 4);
});

test("refuses a position or a token that does not exist", async () => {
  const refused = async (more: object, says: RegExp) => {
    const error = await run(more).then(
      () => assert.unreachable(),
      (reason) => reason,
    );
    assert.instance(error, UserError);
    assert.match(error.message, says);
  };
  await refused({ position: 6 }, /^position: 6 does not exist; the prompt has 6 tokens, 0 to 5\.$/);
  await refused({ target_token: "two words" }, /^target_token must encode to exactly one token/);
  assert.throws(() => checkSubmission({ ...asked, foil_token: "a" }), /foil_token: requires target_token/);
  assert.throws(
    () => checkSubmission({ ...asked, foil_token: "a", target_token: "a" }),
    /foil_token: must differ from target_token/,
  );
});

test.run();
