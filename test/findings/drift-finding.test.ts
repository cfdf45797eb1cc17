import { test } from "uvu";
import * as assert from "uvu/assert";
import type { DriftResult } from "../../src/contracts/index.js";
import { driftFinding } from "../../src/findings/drift-finding.js";

const behavior = "whether the models answer differently, only their answers show.";
const of = (values: Record<number, number>, around = 0.01, texts = 12) =>
  driftFinding({
    texts,
    layers: Object.entries(values).map(([layer, value]) => ({
      layer: Number(layer),
      cosine: { value, low: value - around, high: value + around },
    })) as DriftResult["layers"],
  });

test("a difference that sets in is told from its first layer", () => {
  assert.equal(of({ 0: 0.99, 1: 0.98, 2: 0.97, 3: 0.8, 4: 0.7 }), {
    says: "Up to layer 2 the two models' block outputs are closer (cosine 0.97 to 0.99); from layer 3 on, they differ more (cosine 0.7 to 0.8).",
    controls: `The 95 % intervals over 12 texts at these layers and at the others do not overlap, so the choice of texts does not explain the difference; ${behavior}`,
  });
});

test("a difference that ends is told up to its last layer", () => {
  assert.is(
    of({ 0: 0.6, 1: 0.7, 2: 0.95, 3: 0.97 }).says,
    "Up to layer 1 the two models' block outputs differ more (cosine 0.6 to 0.7); from layer 2 on, they are closer (cosine 0.95 to 0.97).",
  );
});

test("layers in the middle that are alike are named together", () => {
  assert.is(
    of({ 0: 0.99, 1: 0.7, 2: 0.71, 3: 0.98 }).says,
    "The two models' block outputs differ most at layers 1 to 2 (cosine 0.7 to 0.71); elsewhere they are closer (cosine 0.98 to 0.99).",
  );
});

test("intervals that overlap leave the choice of texts open", () => {
  assert.match(
    of({ 0: 0.95, 1: 0.8 }, 0.1).controls,
    /at these layers and at the others overlap, so the choice of texts may explain the difference;/,
  );
});

test("a plateau has no layer that differs most", () => {
  assert.equal(of({ 0: 0.8, 2: 0.81, 4: 0.805 }), {
    says: "The two models' block outputs differ about equally at every layer measured (cosine 0.8 to 0.81).",
    controls: `The 95 % intervals over 12 texts reach from 0.79 to 0.82; ${behavior}`,
  });
});

test("models that hardly differ are told so", () => {
  assert.is(
    of({ 0: 0.9999, 1: 0.9995 }, 0).says,
    "The two models' block outputs hardly differ at any layer measured (cosine 0.9995 to 0.9999).",
  );
  assert.is(of({ 7: 0.8 }).says, "The two models' block outputs differ at layer 7 (cosine 0.8).");
});

test.run();
