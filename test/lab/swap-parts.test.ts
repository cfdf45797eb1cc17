/** Two tokens' coordinates exchanged, by hand: planes of two directions, what a row is moved to, what that did. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { CompareConfig } from "../../src/contracts/index.js";
import { randomVector } from "../../src/library/index.js";
import type { AdvanceRequest, Context, Edit, EditEffect } from "../../src/native/index.js";
import { controlPlan, swapChange, swapOf, swapPlans } from "../../src/operations/compare/run-swap.js";
import { refusal } from "../support/refusal.js";
import { signal, toy } from "./toy.js";

const { model } = toy({}, { nEmbd: 3, nLayer: 4 });

/** The directions of the first token and the second. */
function contextOf(a: number[], b: number[], rows: number[] = []) {
  const asked: (AdvanceRequest | "reset")[] = [];
  let token = 0;
  return {
    asked,
    context: {
      logitDirection: async () => ({ direction: Float64Array.from(token++ === 0 ? a : b), constant: 0 }),
      reset: async () => void asked.push("reset"),
      advance: async (request: AdvanceRequest) => {
        asked.push(request);
        return {
          layers: request.layers.map((layer) => ({
            states: {
              shape: [3, 3],
              data: Float32Array.from(rows, (value) => value + (layer === 3 ? 1 : 0)),
            },
          })),
        };
      },
    } as unknown as Context,
  };
}

const config = {
  ...{ operation: "compare", intervention: "swap", swap: [" x", " y"], layers: [1, 3], strengths: [0, 1] },
  positions: [[1, 2]],
} as unknown as CompareConfig;

test("two directions span a plane: axes of length 1, and their common share", async () => {
  const { context } = contextOf([2, 0, 0], [1, 0, 3]);
  const { planes, tokens, lens } = await swapOf(config, model, context);
  assert.equal([tokens.length, new Set(tokens).size, lens], [2, 2, undefined]);
  assert.equal(
    planes.map(({ layer, axes, along, second }) => [layer, axes.map((axis) => [...axis]), along, second]),
    [1, 3].map((layer) => [
      layer,
      [
        [1, 0, 0],
        [0, 0, 1],
      ],
      2,
      [1, 3],
    ]),
  );
  // The separation is measured in the second one's length, whatever either length is.
  const spans = async (a: number[], b: number[]) => swapOf(config, model, contextOf(a, b).context);
  await spans([2, 0, 0], [0.001, 0.001, 0]);
  await spans([1, 0, 0], [99, 1, 0]);
  const same = "swap: at block 1 the two tokens have nearly the same direction.";
  for (const [a, b] of [
    [
      [2, 0, 0],
      [101, 1, 0],
    ],
    [
      [2, 0, 0],
      [4, 0, 0],
    ],
    [
      [0, 0, 0],
      [4, 0, 1],
    ],
  ] as const) {
    assert.is(await refusal(() => spans([...a], [...b])), same);
  }
  assert.is(
    await refusal(() => swapOf({ ...config, swap: [" x", " x"] }, model, context)),
    "swap: the two texts encode to the same token.",
  );
  assert.is(
    await refusal(() => swapOf({ ...config, swap: [" x", " y z"] }, model, context)),
    'swap[1] must encode to exactly one token; " y z" yields 2: " y" " z".',
  );
});

test("a row is kept with both coordinates exchanged, at every place", async () => {
  // Rows of three tokens, of which two are changed.
  const rows = [0, 0, 0, 3, 7, 6, 1, 5, 0];
  const { context, asked } = contextOf([2, 0, 0], [1, 0, 3], rows);
  const swap = await swapOf(config, model, context);
  const plans = await swapPlans(config, context, Int32Array.of(7, 8, 9), swap, signal);
  assert.equal(asked, ["reset", { tokens: Int32Array.of(7, 8, 9), layers: [1, 3], signal }]);
  // x = 2 a + b, z = 3 b: the row (3, 6) has b = 2 and a = 0.5, and becomes (2 * 2 + 0.5, 3 * 0.5). At block 3 all is one more.
  const wanted = [
    { layer: 1, position: 1, to: [4.5, 1.5] },
    { layer: 1, position: 2, to: [0.5, 1.5] },
    { layer: 3, position: 1, to: [2 * (7 / 3) + 5 / 6, 2.5] },
    { layer: 3, position: 2, to: [2 / 3 + 5 / 6, 2.5] },
  ];
  const near = (a: number, b: number, what: string) =>
    assert.ok(Math.abs(a - b) < 1e-12, `${what}: ${a} for ${b}`);
  assert.is(plans.length, 2);
  for (const [i, strength] of [0, 1].entries()) {
    const held = plans[i]!;
    assert.is(held.length, 8);
    for (const [place, { layer, position, to }] of wanted.entries()) {
      for (const axis of [0, 1]) {
        const { min, max, vector, ...edit } = held[2 * place + axis]!;
        assert.equal(edit, {
          layer,
          positions: [[position, position]],
          kind: "clamp",
          unit: "unit",
          strength,
        });
        assert.equal([...vector!], axis === 0 ? [1, 0, 0] : [0, 0, 1]);
        near(min!, to[axis]!, `place ${place}, axis ${axis}`);
        assert.is(max, min);
      }
    }
  }
  assert.is((await swapPlans(config, context, Int32Array.of(7, 8, 9), swap, undefined)).length, 2);
});

test("a control has the swap's length at each place, and one direction per block", () => {
  const axis = (layer: number, position: number, vector: number[]): Edit => ({
    ...{
      layer,
      positions: [[position, position]],
      kind: "clamp",
      unit: "unit",
      vector: Float32Array.from(vector),
    },
  });
  const edits = [2, 4].flatMap((layer) => [axis(layer, 7, [1, 0, 0]), axis(layer, 7, [0, 1, 0])]);
  const of = (changeLength: number) => ({ rows: 1, rowLength: 9, changeLength });
  // 3 and 4 along two axes are 5 together; the next block was changed by 1.
  const control = controlPlan(edits, [of(3), of(4), of(1), of(0)], 5);
  for (const [i, [layer, strength]] of (
    [
      [2, 5],
      [4, 1],
    ] as const
  ).entries()) {
    const { vector, ...edit } = control[i]!;
    assert.equal(edit, { layer, positions: [[7, 7]], unit: "unit", strength });
    assert.equal([...vector!], [...randomVector(3, 1, 5 + layer)]);
  }
  assert.is(control.length, 2);
});

test("a plan's edits report changes per place and means over all rows", () => {
  const effect = (rows: number, changeLength: number, rowLength: number): EditEffect =>
    ({ rows, changeLength, rowLength }) as EditEffect;
  const at = (layer: number, position: number) =>
    ({ layer, positions: [[position, position]] }) as unknown as Edit;
  const edits = [at(1, 0), at(1, 0), at(1, 2), at(3, 0)];
  const effects = [effect(1, 3, 10), effect(1, 4, 11), effect(1, 2, 20), effect(2, 6, 40)];
  // 5 of one row, 2 of one, 6 of two; rows of 10, 20 and 40.
  assert.equal(swapChange(effects, edits), {
    rows: 4,
    changeLength: (5 + 2 + 12) / 4,
    rowLength: (10 + 20 + 80) / 4,
  });
  assert.equal(swapChange([effect(0, 0, 0)], [at(1, 0)]), { rows: 0, changeLength: 0, rowLength: 0 });
});

test.run();
