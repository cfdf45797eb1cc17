import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkSubmission, type InspectConfig } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { Model } from "../../src/native/index.js";
import { inspect } from "../../src/operations/inspect/run.js";
import { type Choice, route, sizes, writeExpertsModel } from "../support/experts-model.js";
import { readNpz } from "./npz-reader.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-routing-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** The operation itself, as a worker runs it. */
async function operate(model: Model, body: object) {
  const config = checkSubmission({ operation: "inspect", model: "demo", ...body }) as InspectConfig;
  const place = mkdtempSync(join(folder, "job-"));
  const openOther = () => Promise.reject(new Error("One model is enough."));
  const input = { config, model, artifacts: new Artifacts(place), openOther, clock: new StageClock() };
  const result = await inspect({ ...input, progress: () => {} });
  return { result, arrays: (name: string) => readNpz(readFileSync(join(place, name))) };
}

test("the experts of a text longer than a pass match the router's own weights", async () => {
  const choice: Choice = {
    groups: 4,
    groupsUsed: 2,
    gate: "sigmoid",
    biased: true,
    normed: true,
    scale: 2.5,
  };
  const path = join(folder, "experts.gguf");
  const weights = await writeExpertsModel(path, choice);
  const model = await Model.open(path, { gpuLayers: 0 });
  try {
    // About a byte a token: more than the 256 of a pass.
    const prompt = "Which experts are chosen for this? ".repeat(9);
    const body = { prompt, max_input_tokens: 400, layers: [2, 1], points: ["mid"] };
    const { result, arrays } = await operate(model, { ...body, routing: true });
    const { tokens, routing = [] } = result;
    assert.ok(tokens.length > 256);
    assert.equal(
      routing.map(({ layer, experts, used }) => [layer, experts, used]),
      [2, 1].map((layer) => [layer, sizes.experts, sizes.used]),
    );
    const file = arrays("routing.npz");
    const rows = arrays("activations.npz");
    for (const { layer, chosen, weights: applied, shares } of routing) {
      const mid = rows.get(`layer_${layer}_mid`)!.data;
      const counts = new Array<number>(sizes.experts).fill(0);
      for (const token of tokens.keys()) {
        const row = mid.subarray(token * sizes.hidden, (token + 1) * sizes.hidden);
        const expected = route(weights, choice, layer, row);
        assert.equal(chosen[token], expected.chosen, `layer ${layer}, token ${token}`);
        for (const [i, weight] of expected.weights.entries())
          assert.ok(Math.abs(weight - applied[token]![i]!) < 1e-5);
        for (const expert of expected.chosen) counts[expert]!++;
      }
      assert.ok(Math.abs(shares.reduce((sum, share) => sum + share, 0) - 1) < 1e-12);
      for (const [expert, count] of counts.entries())
        assert.ok(Math.abs(shares[expert]! - count / (tokens.length * sizes.used)) < 1e-12);
      const ids = file.get(`layer_${layer}_experts`)!;
      assert.equal(ids.shape, [tokens.length, sizes.used]);
      assert.equal([...ids.data], chosen.flat());
      assert.equal([...file.get(`layer_${layer}_weights`)!.data], applied.flat());
      assert.equal(file.get(`layer_${layer}_share`)!.shape, [sizes.experts]);
    }
    assert.is((await operate(model, body)).result.routing, undefined);
    const refused = (layers: number[]) =>
      operate(model, { ...body, layers, routing: true }).then(
        () => assert.unreachable(),
        (error: Error) => error.message,
      );
    assert.is(
      await refused([0, 1]),
      "routing: block 0 has no readable router; the model has one in blocks 1, 2.",
    );
  } finally {
    await model.close();
  }
});

test("a model without experts is refused", async () => {
  const model = await Model.open(demoModelPath);
  try {
    await operate(model, { prompt: "No experts", routing: true }).then(
      () => assert.unreachable(),
      (error: Error) =>
        assert.is(error.message, "The architecture 'qwen3' has no proven router: block 7 has no experts."),
    );
  } finally {
    await model.close();
  }
});

test.run();
