import { test } from "uvu";
import * as assert from "uvu/assert";
import type { CompareResult } from "../../src/contracts/index.js";
import { doseFinding } from "../../src/findings/dose.js";

/** Trials of one prompt from a baseline of 10 %: probability by strength, and that with a random vector. */
function trials(
  doses: readonly (readonly [strength: number, probability: number, random?: number])[],
  prompt = "p",
): CompareResult["trials"] {
  return doses.map(([strength, probability, random]) => ({
    ...{ prompt, strength, probability, layer: 5, target_token: " Paris", target_token_id: 3 },
    ...{ baseline_probability: 0.1, delta: probability - 0.1, baseline: "", output: "" },
    ...(random !== undefined && { control: { probability: random, delta: random - 0.1, output: "" } }),
  })) as unknown as CompareResult["trials"];
}
const steered = (...of: CompareResult["trials"]) => doseFinding({ intervention: "steer", trials: of });

test("an effect that stays is told from the strength at which it begins", () => {
  assert.equal(
    steered(
      ...trials([
        [0, 0.1, 0.1],
        [1, 0.105, 0.1],
        [2, 0.5, 0.11],
        [4, 0.9, 0.12],
      ]),
    ),
    {
      says: "Adding the steering direction to layer 5 raises the probability of “·Paris” from 10 % to 50 % at strength 2 and 90 % at 4.",
      controls:
        "A norm-matched random vector changes it by 1 to 2 points there, so the effect comes from the direction, not from the size of the change.",
    },
  );
});

test("an effect that is lost at large strengths is told with its end", () => {
  assert.is(
    steered(
      ...trials([
        [0, 0.1],
        [1, 0.8],
        [2, 0.1],
      ]),
    ).says,
    "Adding the steering direction to layer 5 raises the probability of “·Paris” from 10 % to 80 % at strength 1; at strength 2 it is 10 %.",
  );
});

test("a random vector that does as much leaves no effect of the direction", () => {
  assert.is(
    steered(
      ...trials([
        [0, 0.1, 0.1],
        [1, 0.5, 0.4],
      ]),
    ).controls,
    "A norm-matched random vector changes it by 30 points there, so the effect may be that of any change of this size, not of the direction.",
  );
});

test("a random vector that does as much at one strength leaves the others", () => {
  assert.is(
    steered(
      ...trials([
        [0, 0.1, 0.1],
        [1, 0.5, 0.12],
        [2, 0.9, 0.6],
      ]),
    ).controls,
    "A norm-matched random vector changes it by 2 points at strength 1, so the effect there comes from the direction; at strength 2 it does as much (50 points).",
  );
});

test("no effect is told as such, with what random vectors do", () => {
  assert.equal(
    steered(
      ...trials([
        [0, 0.1, 0.1],
        [1, 0.104, 0.13],
      ]),
    ),
    {
      says: "Adding the steering direction to layer 5 hardly changes the probability of “·Paris”: at most 0.4 points at the strengths tried, from 10 %.",
      controls: "A norm-matched random vector changes it by at most 3 points.",
    },
  );
});

test("several prompts are told by their mean", () => {
  const two = [...trials([[1, 0.5]]), ...trials([[1, 0.9]], "q")];
  assert.match(
    steered(...two).says,
    /raises the mean probability of “·Paris” over 2 prompts from 10 % to 70 % at strength 1\.$/,
  );
});

test("an intervention without a vector says that it has no random control", () => {
  const { controls } = doseFinding({
    intervention: "ablate",
    trials: trials([
      [0, 0.1],
      [1, 0.9],
    ]),
  });
  assert.match(controls, /has no random control: compare other layers before you conclude/);
});

test.run();
