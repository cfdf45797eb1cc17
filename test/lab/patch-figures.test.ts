import { test } from "uvu";
import * as assert from "uvu/assert";
import type { PatchSweepConfig } from "../../src/contracts/index.js";
import { alignedPositions } from "../../src/contracts/names.js";
import { drawnInterval, pairDraws } from "../../src/findings/uncertainty.js";
import type { PatchSweep } from "../../src/native/index.js";
import {
  describePatches,
  type Grid,
  type Pair,
  sweptPair,
} from "../../src/operations/patch_sweep/run-figures.js";
import { wordModel } from "./word-model.js";

const config = {
  ...{ operation: "patch_sweep", direction: "denoise", points: ["block_out"], seed: 3, controls: false },
} as unknown as PatchSweepConfig;
const grid: Grid = {
  ...{ layers: [1], points: ["block_out"], positions: [0, -1], widths: [2] },
  places: [{ layer: 1, point: "block_out" }] as Grid["places"],
};
const prompt = (...tokens: number[]) => ({
  tokens: Int32Array.from(tokens),
  positions: [0, tokens.length - 1],
});
const pair = (more: object = {}): Pair => ({ clean: prompt(1, 2), corrupted: prompt(3, 2), ...more });
const sweep = (clean: number, corrupted: number, patched: number[], more: object = {}) =>
  ({
    ...{ clean, corrupted, restored: clean - 0.5, target: 7, foil: 8 },
    ...{ computedSites: 2, computedTokens: 5, restoredTokens: 1 },
    ...{
      patched: Float64Array.from(patched),
      changeLength: Float64Array.of(1, 2),
      rowLength: Float64Array.of(10, 20),
    },
    ...more,
  }) as unknown as PatchSweep;
const told = async (
  of: Partial<PatchSweepConfig>,
  sweeps: PatchSweep[],
  pairs = sweeps.map(() => pair()),
  own: Grid = grid,
) => {
  const swept = sweeps.map((sweep, n) => sweptPair(wordModel(), pairs[n] as Pair, sweep, []));
  return describePatches({ ...config, ...of }, own, await Promise.all(swept), "");
};

test("a sweep's figures are means over pairs and shares of the mean gap", async () => {
  const sweeps = [
    sweep(4, 0, [1, 4]),
    sweep(2, -2, [0, 3], { changeLength: Float64Array.of(Number.NaN, 4) }),
  ];
  const found = await told({}, sweeps);
  const { sites, pairs, note, ...rest } = found;
  assert.equal(rest, {
    ...{ direction: "denoise", layers: [1], points: ["block_out"], positions: [0, -1] },
    ...{ clean: 3, corrupted: -1, restored: 2.5, computed_sites: 4, computed_tokens: 10 },
  });
  assert.equal(pairs[0], {
    clean: { tokens: ["#1", "#2"], token_ids: [1, 2], logit_difference: 4 },
    corrupted: { tokens: ["#3", "#2"], token_ids: [3, 2], logit_difference: 0 },
    ...{ restored: 3.5, target_token: "#7", target_token_id: 7, foil_token: "#8", foil_token_id: 8 },
  });
  const [first, last] = sites as [(typeof sites)[0], (typeof sites)[0]];
  const { change_interval, recovery_interval, ...plain } = first;
  // From -1 on the way of 4: to 0.5, and to 3.5.
  assert.equal(plain, {
    ...{ layer: 1, point: "block_out", position: 0, logit_difference: 0.5, change: 1.5, recovery: 0.375 },
    ...{ change_length: null, row_length: 10 },
  });
  assert.equal(
    [last.position, last.change, last.recovery, last.change_length, last.row_length],
    [-1, 4.5, 1.125, 3, 20],
  );
  // Changes of 1 and 2: draws of two give 1, 1.5 or 2, a quarter each end.
  assert.equal(
    [change_interval, recovery_interval],
    [
      { low: 1, high: 2 },
      { low: 0.25, high: 0.5 },
    ],
  );
  assert.match(
    note,
    /^Each site patches one block output of the clean run into the corrupted run, at one token; later/,
  );
  assert.match(note, /A site that restores the answer is sufficient for it, but not necessarily required\.$/);

  const noised = await told({ direction: "noise" }, sweeps);
  assert.equal([noised.sites[0]!.change, noised.sites[0]!.recovery], [-2.5, 0.625]);
  // Changes of -3 and -2 on ways of -4: a way down is one as well.
  assert.equal(
    [noised.sites[0]!.change_interval, noised.sites[0]!.recovery_interval],
    [
      { low: -3, high: -2 },
      { low: 0.5, high: 0.75 },
    ],
  );
  assert.match(
    noised.note,
    /of the corrupted run into the clean run.* is necessary for it, but not necessarily sufficient\.$/,
  );
});

test("intervals come from a thousand resamplings of the pairs, by the seed", async () => {
  // Twelve pairs, so that all draws differ.
  const changes = Array.from({ length: 12 }, (_, i) => Math.sin(i) + 2);
  const ways = changes.map((change, i) => change + 1 + Math.cos(i));
  const { sites } = await told(
    { seed: 9 },
    changes.map((change, i) => sweep(ways[i]!, 0, [change, 1])),
  );
  const draws = pairDraws(12, { resamples: 1000, seed: 9 });
  assert.equal(sites[0]!.change_interval, drawnInterval(draws, changes));
  assert.equal(sites[0]!.recovery_interval, drawnInterval(draws, changes, { values: ways, least: 1e-6 }));
});

test("a sweep of one pair has no intervals; equal runs have nothing to recover", async () => {
  const one = await told({}, [sweep(4, 0, [1, 4])]);
  assert.equal(Object.keys(one.sites[0]!), [
    "layer",
    "point",
    "position",
    "logit_difference",
    "change",
    "recovery",
    "change_length",
    "row_length",
  ]);
  const same = await told({}, [sweep(1, 1, [1, 2]), sweep(0, 0, [1, 2])]);
  assert.equal([same.sites[0]!.recovery, same.sites[0]!.recovery_interval], [null, undefined]);
  assert.match(
    same.note,
    /The two runs of 2 of 2 pairs have the same logit difference, so recovery is undefined\./,
  );
  assert.match(same.note, /In the clean run of 1 of 2 pairs, the foil's logit is at least the target's\./);
  const near = await told({}, [sweep(1, 1 - 1e-7, [1, 2])]);
  assert.match(near.note, /The two runs of the pair have the same logit difference/);
  assert.is((await told({}, [sweep(1, 1 - 1e-5, [1, 2])])).sites[0]!.recovery, 1);
});

test("a sweep labels each cell with its head, point, control or span", async () => {
  const places = [
    { layer: 1, point: "attn_out" },
    { layer: 1, point: "head_out", head: 3 },
  ] as Grid["places"];
  const own: Grid = { ...grid, points: ["attn_out", "head_out"], heads: [3], places, widths: [2, 1] };
  const more = {
    control: Float64Array.of(0, 1, 2, 3),
    changeLength: new Float64Array(4),
    rowLength: new Float64Array(4),
  };
  const spans = { ...prompt(1, 2), spans: ["a", "b c"] };
  const of = {
    points: ["attn_out", "head_out"],
    controls: true,
    positions: alignedPositions,
  } as unknown as Partial<PatchSweepConfig>;
  const found = await told(
    of,
    [sweep(4, 0, [1, 2, 3, 4], more)],
    [pair({ clean: spans, corrupted: spans })],
    own,
  );
  assert.equal(
    found.sites.map(({ point, head, position, change, control }) => [point, head, position, change, control]),
    [
      ["attn_out", undefined, 0, 1, { logit_difference: 0, change: 0, recovery: 0 }],
      ["attn_out", undefined, -1, 2, { logit_difference: 1, change: 1, recovery: 0.25 }],
      ["head_out", 3, 0, 3, { logit_difference: 2, change: 2, recovery: 0.5 }],
      ["head_out", 3, -1, 4, { logit_difference: 3, change: 3, recovery: 0.75 }],
    ],
  );
  assert.equal([found.heads, found.control_seed], [[3], 3]);
  assert.equal(found.pairs[0]!.clean.spans, [
    { text: "a", position: 0 },
    { text: "b c", position: 1 },
  ]);
  assert.match(
    found.note,
    /^Each site patches one block's attn_out, or one head's output \(head_out\) of the clean run .* at the last token of one span;/,
  );
  const points = async (...names: string[]) =>
    (await told({ points: names } as never, [sweep(1, 0, [1, 2])])).note.split(" of the clean")[0];
  assert.is(await points("head_out"), "Each site patches one head's output (head_out)");
  assert.is(await points("attn_out", "mid"), "Each site patches one block's attn_out, or its mid");
});

test.run();
