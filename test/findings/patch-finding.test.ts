import { test } from "uvu";
import * as assert from "uvu/assert";
import { patchFinding } from "../../src/findings/patch-finding.js";
import type { Sweep } from "../../src/findings/patch-sweep.js";

const tokens = ["The", " capital", " of", " France", " is"];

/**
 * A sweep of the last four tokens whose runs are 10 apart: recoveries by layer, one number per token.
 * @param random what random changes move the difference by
 */
function sweep(
  recoveries: Record<number, number[]>,
  { random, more = {} }: { random?: number; more?: Partial<Sweep> } = {},
): Sweep {
  const prompt = (all: string[], logit_difference: number) => ({
    tokens: all,
    token_ids: all.map((_, index) => index),
    logit_difference,
  });
  return {
    direction: "denoise",
    layers: Object.keys(recoveries).map(Number),
    positions: [1, 2, 3, 4],
    clean: 6,
    corrupted: -4,
    restored: -4,
    pairs: [
      {
        clean: prompt(tokens, 6),
        corrupted: prompt(tokens.with(3, " Spain"), -4),
        restored: -4,
        ...{ target_token: " Paris", target_token_id: 1, foil_token: " Madrid", foil_token_id: 2 },
      },
    ],
    sites: Object.entries(recoveries).flatMap(([layer, values]) =>
      values.map((recovery, index) => ({
        ...{ layer: Number(layer), position: index + 1, recovery, change: 10 * recovery },
        ...{ logit_difference: -4 + 10 * recovery, change_length: 3, row_length: 12 },
        ...(random !== undefined && {
          control: { logit_difference: -4 + random, change: random, recovery: random / 10 },
        }),
      })),
    ),
    ...more,
  } as Sweep;
}

const handOver = {
  0: [0, 0, 1, 0],
  1: [0, 0, 0.98, 0],
  2: [0, 0.1, 0.9, 0.2],
  3: [0, 0.1, 0.2, 0.8],
  4: [0, 0, 0, 0.95],
  5: [0, 0, 0, 1],
};

test("a hand-over names both tokens and the layers at which each decides", () => {
  assert.equal(patchFinding(sweep(handOver, { random: 0.2 })), {
    says: "Up to layer 2 the answer depends on “·France”; from layer 3 on, on the last token, “·is”.",
    controls:
      "Patching there moves the logit difference 80 % to 100 % of the way; norm-matched random changes move it at most 2 % of the way, so what is patched matters, not the size of the change.",
  });
});

test("layers that were not measured are named, never skipped", () => {
  const { 0: first, 2: second, 5: last } = handOver;
  assert.is(
    patchFinding(sweep({ 0: first, 2: second, 5: last })).says,
    "At the measured layers up to 2 the answer depends on “·France”; at layer 5 (layers 3 to 4 were not measured), on the last token, “·is”.",
  );
});

test("layers after the hand-over that were not measured are not claimed", () => {
  const { 0: first, 3: second, 5: last } = handOver;
  assert.is(
    patchFinding(sweep({ 0: first, 3: second, 5: last })).says,
    "At layer 0 the answer depends on “·France”; at the measured layers from 3 on (layers 1 to 2 were not measured), on the last token, “·is”.",
  );
});

test("a gap between two tokens is a stretch without a single site", () => {
  const gap = { ...handOver, 2: [0, 0.3, 0.4, 0.3] };
  assert.is(
    patchFinding(sweep(gap)).says,
    "Up to layer 1 the answer depends on “·France”; at layer 2 no single site moves it half of the way; from layer 3 on, on the last token, “·is”.",
  );
});

test("random changes that do as much leave the effect open", () => {
  assert.match(
    patchFinding(sweep(handOver, { random: 5 })).controls,
    /random changes move it at most 50 % of the way, so any change of this size may do the same\.$/,
  );
});

test("without random controls, the finding says what stays open", () => {
  assert.is(
    patchFinding(sweep(handOver)).controls,
    "Patching there moves the logit difference 80 % to 100 % of the way; without random controls, it is open whether any change of this size would do the same.",
  );
});

test("a run that does not repeat itself makes its effects unreliable", () => {
  assert.match(
    patchFinding(sweep(handOver, { random: 0.2, more: { restored: -3 } })).controls,
    /but so does patching back the run's own activation, 10 % of the way: these effects are not reliable\.$/,
  );
});

test("the last layer's last token is the answer, and no finding", () => {
  const trivial = { 0: [0, 0.3, 0, 0], 1: [0, 0.31, 0, 0.1], 2: [0, 0.1, 0, 1] };
  assert.is(
    patchFinding(sweep(trivial)).says,
    "No single site moves the answer half of the way; the largest effect is that of “·of” at layers 0 to 1.",
  );
});

test("prompts with identical activations have nothing to patch", () => {
  const none = sweep(handOver);
  none.sites = none.sites.map((site) => ({ ...site, change_length: 0, recovery: 0, change: 0 }));
  assert.match(patchFinding(none).says, /^No site can change anything/);
});

test.run();
