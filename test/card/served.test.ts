/** Scores of continuations on a served model, from the ends of sequences and from whole passes. */
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { commonStart, continuationScore, scoreEnds, scoreText } from "../../src/card/forward.js";
import { RandomVectors } from "../../src/card/random-vectors.js";
import { ServingModel } from "../../src/client/index.js";
import { startServer, type TestServer } from "../inference/support/serving.js";
import { temporaryFolder } from "../support/temporary.js";

let server: TestServer;
test.before(async () => {
  process.env.TAPLINE_HOME = temporaryFolder("card-served");
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

test("a card removes the vectors of a killed card, and only those", async () => {
  const serving = new ServingModel(server.url);
  const dead = spawnSync(process.execPath, ["--version"]).pid;
  const machine = createHash("sha256").update(hostname()).digest("hex").slice(0, 6);
  const kept = [`card-${machine}-${process.ppid}-1-1`, `card-abcdef-${dead}-1-1`, `card-${dead}`, "polite"];
  const row = Float32Array.from({ length: 128 }, (_, index) => Number(index === 3));
  for (const name of [`card-${machine}-${dead}-1-1`, ...kept]) await serving.putVector(name, { 4: row });
  const tapline = { interventions: [{ kind: "steer" as const, layer: 4, vector: "polite", strength: 1 }] };
  await serving.putProfile("kind", { tapline });
  const randoms = await RandomVectors.make(
    serving,
    await serving.profile("kind"),
    { random: 2, seed: 0 },
    undefined,
  );
  assert.is(randoms.count, 2);
  const names = async () => (await serving.vectors()).map(({ name }) => name).sort();
  assert.is((await names()).length, kept.length + 2);
  await randoms.remove(serving);
  assert.equal(await names(), [...kept].sort());
});

test.run();
