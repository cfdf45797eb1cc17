/** What sweeps and patch sweeps ask of the addon, and how many cells of its memory they take, on an addon that computes nothing. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { patchCells, patchPlaces, sweepCells } from "../../src/native/index.js";
import { nativeRefusal as refused } from "../support/refusal.js";
import { answers, aroundModels, asked, last, opened } from "./stand-in-model.js";

aroundModels();

test("sweeps: each plan's edits in the addon's form, as many tokens as are asked for", async () => {
  const { context } = await opened();
  const prompts = [Int32Array.of(1)];
  const targets = Int32Array.of(-1);
  answers.sweep = () => ["trial"];
  const plans = [
    [
      { layer: 1, scale: 2 },
      { layer: 2, strength: 3, vector: Float32Array.of(1, 0, 0) },
    ],
    [],
  ];
  assert.equal(await context.sweep({ prompts, plans, targets, maxTokens: 0 }), ["trial"]);
  const [name, { plans: given, ...rest }] = last() as [
    string,
    { plans: { scale: number; strength: number }[][] },
  ];
  assert.equal([name, rest], ["sweep", { prompts, targets, maxTokens: 0 }]);
  assert.equal(
    given.map((plan) => plan.map(({ scale, strength }) => [scale, strength])),
    [
      [
        [2, 1],
        [1, 3],
      ],
      [],
    ],
  );
  const most = "maxTokens must be an integer from 0 to 2147483647";
  for (const [more, sentence] of [
    [{ maxTokens: -1 }, `${most}, got -1.`],
    [{ maxTokens: undefined }, `${most}, got null.`],
    [{ targets: [1] }, "Token ids must be an Int32Array."],
    [{ prompts: [[1]] }, "Token ids must be an Int32Array."],
    [
      { plans: [[{ layer: 0, vector: new Float32Array(4) }]] },
      "An edit's vector has 4 values; the hidden size is 3.",
    ],
  ] as const) {
    assert.is(
      await refused(() => context.sweep({ prompts, plans, maxTokens: 1, ...more } as never)),
      `INVALID_ARGUMENT: ${sentence}`,
    );
  }
  // The prompt, again for each plan that edits earlier than its last row, and every row's continuation.
  const last1 = [{ layer: 0 }];
  const lastToo = [{ layer: 0, positions: "last" as const }];
  const all = [{ layer: 0 }, { layer: 1, positions: "all" as const }];
  assert.is(sweepCells(10, [], 4), 10 + 4);
  assert.is(sweepCells(10, [last1, lastToo, []], 4), 10 + 4 * 4);
  assert.is(sweepCells(10, [last1, all, all], 5), 30 + 4 * 5);
});

test("patch sweeps: layer order, positions of both prompts, equal lengths", async () => {
  const { context } = await opened();
  const [clean, corrupted] = [Int32Array.of(1, 2), Int32Array.of(1, 3)];
  const good = { clean, corrupted, layers: [3, 1], positions: [0, 1] };
  answers.patchSweep = () => "swept";
  assert.is(
    await context.patchSweep({ ...good, denoise: false, target: 0, foil: 4 } as never),
    "swept" as never,
  );
  assert.equal(last(), [
    "patchSweep",
    {
      ...{ clean, corrupted, denoise: false, target: 0, foil: 4 },
      places: [
        { layer: 3, point: "block_out" },
        { layer: 1, point: "block_out" },
      ],
      ...{ cleanPositions: [0, 1], corruptedPositions: [0, 1] },
    },
  ]);
  const longer = Int32Array.of(1, 2, 3);
  await context.patchSweep({ ...good, corrupted: longer, corruptedPositions: [1, 2], points: ["mid"] });
  const other = last()[1] as { places: object[]; cleanPositions: number[]; corruptedPositions: number[] };
  assert.equal(
    [other.places[0], other.cleanPositions, other.corruptedPositions],
    [{ layer: 3, point: "mid" }, [0, 1], [1, 2]],
  );
  for (const [more, sentence] of [
    [
      { corrupted: longer },
      "The clean prompt has 2 tokens and the corrupted one 3; positions need prompts of equal length.",
    ],
    [{ layers: 1 }, "Layers must be an array of block indices."],
    [{ points: ["x"] }, /A point must be .* got "x"\./],
    [{ positions: [-1] }, "One of the positions must be an integer from 0 to 2147483647, got -1."],
    [{ positions: undefined }, "Positions must be an array of indices."],
    [{ heads: [0.5] }, "One of the heads must be an integer from 0 to 2147483647, got 0.5."],
    [
      { corruptedPositions: [undefined] },
      "One of the positions must be an integer from 0 to 2147483647, got null.",
    ],
    [{ target: -1 }, "target must be an integer from 0 to 2147483647, got -1."],
    [{ foil: -1 }, "foil must be an integer from 0 to 2147483647, got -1."],
    [{ clean: [1, 2] }, "Token ids must be an Int32Array."],
    [{ corrupted: [1, 2] }, "Token ids must be an Int32Array."],
    [{ points: ["head_out"] }, "Patching head_out needs heads."],
  ] as const) {
    const said = await refused(() => context.patchSweep({ ...good, ...more } as never));
    if (typeof sentence === "string") assert.is(said, `INVALID_ARGUMENT: ${sentence}`);
    else assert.match(said, sentence);
  }
  assert.equal(asked, []);
  assert.equal(patchPlaces({ layers: [2, 0], points: ["mid", "head_out"], heads: [5, 4] }), [
    { layer: 2, point: "mid" },
    { layer: 2, point: "head_out", head: 5 },
    { layer: 2, point: "head_out", head: 4 },
    { layer: 0, point: "mid" },
    { layer: 0, point: "head_out", head: 5 },
    { layer: 0, point: "head_out", head: 4 },
  ]);
  assert.is(
    await refused(() => patchPlaces({ layers: [0], points: ["head_out"], heads: [] })),
    "INVALID_ARGUMENT: Patching head_out needs heads.",
  );
  // The prompt itself, and a batch that holds it at least once.
  assert.equal([patchCells(10, 4), patchCells(10, 32)], [20, 42]);
});

test.run();
