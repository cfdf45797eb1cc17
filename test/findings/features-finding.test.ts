import { test } from "uvu";
import * as assert from "uvu/assert";
import type { FeaturesResult, SaeResult } from "../../src/contracts/index.js";
import { dictionaryWarnings, featuresFinding, trainedWarnings } from "../../src/findings/features.js";

const found = (fidelity: object, point?: string) =>
  featuresFinding({
    ...{ dictionary: { name: "d", features: 100 }, layer: 5 },
    ...(point !== undefined && { point }),
    fidelity: { tokens: 50, explained_variance: 0.999, l0: 8, ...fidelity },
  } as unknown as FeaturesResult);
const loss = (reconstructed: number) => ({
  cross_entropy: { clean: 2, reconstructed, ablated: 12 },
  loss_recovered: (12 - reconstructed) / 10,
});

test("a dictionary that recovers the loss fits", () => {
  assert.equal(found(loss(2.5)), {
    says: "The dictionary d fits these texts: with block 5's output replaced by its reconstruction, 95 % of the loss is recovered.",
    controls:
      "The reconstruction costs 0.5 nats per token, zeros in its place 10, so the features hold most of what the model reads there; whether it uses one of them, steering shows.",
  });
});

test("explained variance makes no dictionary fit", () => {
  assert.match(
    found(loss(8)).says,
    /^The dictionary d does not fit these texts: .* 40 % of the loss is recovered\.$/,
  );
  assert.match(
    found(loss(5), "mid").says,
    /^The dictionary d fits these texts in part: with mid of block 5 replaced/,
  );
  assert.match(found(loss(8)).controls, /miss part of what the model reads there: do not conclude from/);
});

test("without a loss, whether the dictionary fits is open", () => {
  assert.equal(found({ cross_entropy: null, loss_recovered: null }), {
    says: "Whether the dictionary d fits these texts is open: they have no next token to predict.",
    controls: "Try longer or other texts. The explained variance (99.9 %) alone does not settle it.",
  });
});

test("features that are active nearly everywhere are warned of", () => {
  const features = [0.95, 0.9, 0.2].map((frequency) => ({ frequency }));
  assert.equal(dictionaryWarnings(features, { unit: "token" }), [
    "2 of the 3 strongest features are active on 90 % of the tokens or more: they say little about any one token.",
  ]);
  assert.equal(
    dictionaryWarnings(
      [0.95, 0.89, 0.2].map((frequency) => ({ frequency })),
      { unit: "token" },
    ),
    [],
  );
  assert.equal(dictionaryWarnings([], { unit: "token" }), []);
});

test("a trained dictionary that is mostly dead is warned of", () => {
  const trained = (dead_fraction: number) =>
    trainedWarnings({ layer: 3, dead_fraction, features: [] } as unknown as SaeResult["reports"][number]);
  assert.equal(trained(0.75), [
    "Layer 3: 75 % of the features are dead: they are active on no held-out text.",
  ]);
  assert.equal(trained(0.25), []);
});

test.run();
