/** Scores of continuations on a served model, from the ends of sequences and from whole passes. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { commonStart, continuationScore, scoreEnds, scoreText } from "../../src/card/forward.js";
import { ServingModel } from "../../src/client/index.js";
import { startServer, type TestServer } from "../inference/support/serving.js";

let server: TestServer;
test.before(async () => {
  server = await startServer({ threads: 1 });
});
test.after(() => server.close());

test("scores from the ends of sequences equal those of whole passes", async () => {
  const serving = new ServingModel(server.url);
  const context = "Question: What is the capital of France?\nAnswer:";
  const texts = [" Paris", " Tokyo, the largest city", " I don't know"].map((choice) => context + choice);
  const tokens = Float32Array.from(await serving.tokenize(context));
  const sequences = await Promise.all(texts.map((text) => serving.tokenize(text)));
  assert.ok(new Set(sequences.map(({ length }) => length)).size > 1);
  const ends = 1 + Math.max(...sequences.map((ids) => ids.length - commonStart(ids, tokens)));
  for (const edits of [[], [{ kind: "ablate" as const, layer: 4, strength: 0.3 }]]) {
    const scored = await scoreEnds(serving, sequences, ends, { edits }, undefined);
    for (const [index, text] of texts.entries()) {
      const whole = await scoreText(serving, text, { edits }, undefined);
      assert.equal([...whole.tokens], sequences[index]);
      const expected = continuationScore(whole, tokens);
      const found = continuationScore(scored[index] as (typeof scored)[number], tokens);
      assert.ok(Math.abs(found - expected) < 1e-4, `${found}, not ${expected}`);
    }
  }
});

test.run();
