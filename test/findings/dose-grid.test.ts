import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Trial } from "../../src/findings/dose.js";
import { gridFinding } from "../../src/findings/dose-grid.js";

/** A layer's trials: change by strength, and the change by a random vector. */
const layer = (at: number, ...doses: [strength: number, delta: number, random?: number][]) => ({
  layer: at,
  trials: doses.map(([strength, delta, random]) => ({
    ...{ strength, delta, layer: at, prompt: "p" },
    ...(random !== undefined && { control: { delta: random } }),
  })) as unknown as Trial[],
});

test("the layer that steers is the one measured to, beside random vectors", () => {
  const grid = [
    layer(8, [1, 0.05, 0.02], [2, 0.1, 0.08]),
    layer(4, [1, 0.2, 0.01], [2, 0.5, 0.02]),
    layer(12, [2, 0.1]),
  ];
  assert.is(
    gridFinding(grid),
    "The direction changes the probability most at layer 4: by 50 points at strength 2, random vectors by 2 points at most.",
  );
});

test("layers that steer alike are named together", () => {
  assert.is(
    gridFinding([
      layer(0, [1, 0, 0]),
      layer(1, [1, -0.48, 0.01]),
      layer(2, [2, -0.5, 0.03]),
      layer(3, [1, 0.1, 0]),
    ]),
    "The direction changes the probability most at layers 1 to 2: by 48 to 50 points at strength 1 to 2, random vectors by 3 points at most.",
  );
});

test("what random vectors do half as well is not steering", () => {
  const none =
    "At no layer measured does the direction change the probability clearly more than random vectors do.";
  assert.is(gridFinding([layer(4, [1, 0.4, 0.3]), layer(8, [1, 0.005, 0])]), none);
  assert.is(
    gridFinding([layer(4, [1, 0.9, 0.6]), layer(8, [1, 0.2, 0.01])]),
    "The direction changes the probability most at layer 8: by 20 points at strength 1, random vectors by 1 point at most.",
  );
});

test("a strength at which every vector breaks the answer does not hide a smaller one that steers", () => {
  assert.is(
    gridFinding([
      layer(5, [0.2, -0.1, -0.02], [0.4, -0.89, -0.18], [0.8, -0.98, -0.95]),
      layer(6, [0.4, -0.25, -0.2], [0.8, -0.98, -0.93]),
    ]),
    "The direction changes the probability most at layer 5: by 89 points at strength 0.4, random vectors by 18 points at most.",
  );
});

test("nothing measured says nothing", () => {
  assert.is(gridFinding([]), "");
  assert.is(gridFinding([layer(4)]), "");
});

test.run();
