/** Attribution graphs with transcoders on the embedded model: nodes, sums, removals, and what is refused. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type Config,
  checkSubmission,
  type FeaturesResult,
  type GraphResult,
} from "../../src/contracts/index.js";
import { InvalidInput } from "../../src/contracts/invalid-input.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { addSet, Dictionaries, setAt } from "../../src/library/index.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { Model } from "../../src/native/index.js";
import { runOperation } from "../../src/operations/runs.js";
import { randomTranscoder, writeSetConfig, writeTranscoder } from "../support/random-transcoders.js";
import { refusal, refusalBy } from "../support/refusal.js";

const width = 128;
/** The embedded model's blocks that have a transcoder; the others have none. */
const layers = [0, 1, 3, 4];
const prompt = "The capital of France is";

const folder = mkdtempSync(join(tmpdir(), "tapline-graph-transcoders-"));
const home = join(folder, "home");
const homeBefore = process.env.TAPLINE_HOME;
let model: Model;
test.before(async () => {
  process.env.TAPLINE_HOME = home;
  model = await Model.open(demoModelPath);
  const set = join(folder, "set");
  mkdirSync(set);
  writeSetConfig(set);
  for (const layer of layers) {
    writeTranscoder(set, layer, randomTranscoder(layer, { width, features: 300, skip: layer !== 1 }));
  }
  const members = await setAt(set, undefined);
  const stored = await addSet(new Dictionaries(home), "set", set, members!);
  assert.equal(
    stored.map(({ name, layer, zero_positions }) => [name, layer, zero_positions]),
    layers.map((layer) => [`set-${layer}`, layer, 1]),
  );
});
test.after(async () => {
  if (homeBefore === undefined) delete process.env.TAPLINE_HOME;
  else process.env.TAPLINE_HOME = homeBefore;
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

async function graph(body: object): Promise<{ result: GraphResult; stages: string[]; path: string }> {
  const config = checkSubmission({ operation: "graph", model: "demo", prompt, ...body }) as Config;
  const path = mkdtempSync(join(folder, "job-"));
  const stages: string[] = [];
  const result = await runOperation({
    ...{ config, model, artifacts: new Artifacts(path), clock: new StageClock() },
    progress: ({ stage }) => stages.push(stage),
    openOther: () => Model.open(demoModelPath),
  });
  return { result: result as unknown as GraphResult, stages, path };
}

const sumOf = (parts: Record<string, number>) => Object.values(parts).reduce((sum, one) => sum + one, 0);

test("nodes are features and errors, and every sum closes", async () => {
  const { result, stages } = await graph({ transcoders: "set", nodes: 7500, measured: 8, node_threshold: 1 });
  const { transcoders, targets, size, closing, scores, nodes } = result;
  assert.equal(
    transcoders?.blocks.map(({ layer, dictionary, point, writes }) => [layer, dictionary, point, writes]),
    layers.map((layer) => [layer, `set-${layer}`, "ffn_in", "ffn_out"]),
  );
  assert.is(transcoders?.zero_positions, 1);
  const active = transcoders!.blocks.reduce((sum, one) => sum + one.active, 0);
  assert.ok(active > 40, `${active} active features`);
  assert.equal([size.active, size.found], [active, active]);
  assert.ok(closing.worst < 1e-4, `${closing.worst}`);
  assert.ok(closing.frozen! < 1e-4, `${closing.frozen}`);
  const kinds = new Set(nodes.map(({ kind }) => kind));
  for (const kind of ["embedding", "feature", "error", "target"] as const) assert.ok(kinds.has(kind), kind);
  assert.is(kinds.has("neuron") || kinds.has("head"), false);
  for (const { value, direct, through } of targets) {
    assert.ok(Math.abs(sumOf(direct) - value) < 1e-3 * Math.abs(value), "direct parts");
    assert.ok(Math.abs(sumOf(through) - value) < 1e-9, "parts through all paths");
    assert.is(direct.rest, 0);
  }
  // A block without a transcoder has errors only.
  assert.ok(nodes.some(({ kind, layer }) => kind === "error" && layer === 2));
  assert.not(nodes.some(({ kind, layer }) => kind === "feature" && layer === 2));
  assert.not(nodes.some(({ kind, position }) => (kind === "feature" || kind === "error") && position === 0));
  assert.ok(Math.abs(scores.replacement + scores.errors! + scores.rest! + scores.rounding - 1) < 1e-9);
  assert.ok(stages.includes("encoding"));
  assert.ok(
    stages.some((stage) => /^computing edges \(needs [\d.]+ .B\)$/.test(stage)),
    stages.join("; "),
  );
  for (const { kind, direct, frozen } of result.measured!.nodes) {
    assert.is(kind, "feature");
    assert.ok(
      Math.abs(direct! - frozen!) <= 1e-4 * Math.max(Math.abs(direct!), 1e-2),
      `${direct}, ${frozen}`,
    );
  }
});

test("the most influential features are chosen, and the others are summed up", async () => {
  const whole = await graph({ transcoders: "set", nodes: 7500, measured: 0, node_threshold: 1 });
  const some = await graph({ transcoders: "set", nodes: 25, measured: 0, node_threshold: 1 });
  assert.is(some.result.size.found, 25);
  assert.is(some.result.size.active, whole.result.size.active);
  const [own] = some.result.targets;
  const [all] = whole.result.targets;
  assert.ok(own!.direct.rest !== 0);
  const near = (a: number, b: number) => Math.abs(a - b) < 1e-4 * Math.abs(all!.value);
  assert.ok(near(own!.direct.features + own!.direct.rest, all!.direct.features));
  assert.ok(near(own!.direct.errors, all!.direct.errors));
  assert.ok(some.result.scores.rest! > 0);
  assert.ok(some.result.scores.replacement < whole.result.scores.replacement);
});

test("features are described by their tokens in the prompt and by what their rows raise", async () => {
  const { result } = await graph({ transcoders: "set", nodes: 7500, measured: 0, node_threshold: 1 });
  const shown = new Set(
    result.nodes
      .filter(({ kind }) => kind === "feature")
      .sort((a, b) => b.influence - a.influence)
      .map(({ layer, index }) => `${layer} ${index}`),
  );
  const described = result.features!;
  assert.equal(
    described.map(({ layer, index }) => `${layer} ${index}`),
    [...shown].slice(0, 100),
  );
  const one = described[0]!;
  // `features` reads the same prompt, with pages of this feature.
  const read = (await runOperation({
    config: checkSubmission({
      ...{ operation: "features", model: "demo", prompt, dictionary: `set-${one.layer}`, top: 64 },
      pages: [one.index],
    }) as Config,
    ...{ model, artifacts: new Artifacts(mkdtempSync(join(folder, "job-"))), clock: new StageClock() },
    progress: () => {},
    openOther: () => Model.open(demoModelPath),
  })) as unknown as FeaturesResult;
  const active = read.texts[0]!.top.flatMap((list, position) =>
    position === 0
      ? [] // the first token is constant in the graph
      : list
          .filter(({ feature }) => feature === one.index)
          .map(({ activation }) => ({ position, activation })),
  );
  active.sort((a, b) => b.activation - a.activation);
  assert.is(one.active_tokens, active.length);
  assert.equal(
    one.strongest.map(({ position }) => position),
    active.slice(0, 3).map(({ position }) => position),
  );
  for (const [i, { activation }] of one.strongest.entries())
    assert.ok(Math.abs(activation - active[i]!.activation) < 1e-4 * activation);
  const [page] = read.pages!;
  const named = (list: typeof one.raised) => list!.map(({ token_id, token }) => [token_id, token]);
  assert.equal(named(one.raised), named(page!.raised!.slice(0, 5)));
  for (const [i, { effect }] of one.raised!.entries())
    assert.ok(Math.abs(effect - page!.raised![i]!.effect) < 1e-5);
  assert.ok(one.raised!.every(({ effect }, i) => i === 0 || effect <= one.raised![i - 1]!.effect));
});

test("zero_positions, a single transcoder and a missing one", async () => {
  const { result } = await graph({
    transcoders: "set-3",
    zero_positions: 0,
    measured: 0,
    nodes: 7500,
    node_threshold: 1,
  });
  assert.equal(
    result.transcoders?.blocks.map(({ layer }) => layer),
    [3],
  );
  assert.is(result.transcoders?.zero_positions, 0);
  assert.ok(result.nodes.some(({ kind, position }) => kind === "error" && position === 0));
  assert.match(
    await refusal(() => graph({ transcoders: "nothing" })),
    /^There is no dictionary named nothing; /,
  );
  assert.match(await refusalBy(InvalidInput)(() => graph({ zero_positions: 0 })), /requires transcoders\./);
  assert.match(
    await refusalBy(InvalidInput)(() => graph({ transcoders: "set", first_token: true })),
    /is for graphs without transcoders/,
  );
});

test.run();
