import { test } from "uvu";
import * as assert from "uvu/assert";
import { mergeStreamEvent } from "../../src/contracts/stream-event.js";

interface Reply {
  tokens?: unknown[];
  pair_of?: number;
  interventions?: object[];
}

test("merged stream events keep all tokens and the original events", () => {
  const parts: Reply[] = [
    { pair_of: 0 },
    { tokens: [1] },
    { tokens: [2, 3] },
    { interventions: [{}] },
    { tokens: [] },
  ];
  const before = structuredClone(parts);
  let told: Reply | undefined;
  for (const part of parts) told = mergeStreamEvent(told, part);
  assert.equal(told, { pair_of: 0, tokens: [1, 2, 3], interventions: [{}] });
  assert.equal(parts, before);
  assert.equal(mergeStreamEvent<Reply>(undefined, { pair_of: 1 }), { pair_of: 1 });
});

test("a long answer is told in one list, not in a copy of it for each token", () => {
  const told = mergeStreamEvent<Reply>(undefined, { tokens: [0] });
  const { tokens } = told;
  for (let token = 1; token < 1000; ++token) mergeStreamEvent(told, { tokens: [token] });
  assert.is(told.tokens, tokens);
  assert.is(tokens?.length, 1000);
});

test.run();
