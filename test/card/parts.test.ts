/** Cards whose texts, questions and prompts are divided between servers: merged, they have the figures of one server. */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { bundledData } from "../../src/card/data/index.js";
import { cardOf, hasCardParts, mergeCard, writeCardPart } from "../../src/card/parts.js";
import { type CardRequest, measureItems } from "../../src/card/run.js";
import { isIntact } from "../../src/card/signed.js";
import { judgedLines, targetOf } from "../../src/card/target.js";
import { ServingModel } from "../../src/client/index.js";
import type { Card, CardTarget } from "../../src/contracts/card.js";
import { hasParts } from "../../src/lab/parts/part-file.js";
import { command } from "../cli/in-process.js";
import { startServer, type TestServer } from "../inference/support/serving.js";
import { refusal } from "../support/refusal.js";
import { temporaryFolder } from "../support/temporary.js";

let server: TestServer;
let serving: ServingModel;
test.before(async () => {
  process.env.TAPLINE_HOME = temporaryFolder("card-parts");
  server = await startServer({ threads: 1 });
  serving = new ServingModel(server.url);
  const row = Float32Array.from({ length: 128 }, (_, index) => Number(index === 3));
  await serving.putVector("some", { 4: row });
  const tapline = { interventions: [{ kind: "steer" as const, layer: 4, vector: "some", strength: 8 }] };
  await serving.putProfile("kind", { tapline });
});
test.after(() => server.close());

const lines = ["France", "Japan", "Italy"].map((country) =>
  JSON.stringify({
    prompt: `What is the capital of ${country}?`,
    contains: country === "Japan" ? "Tokyo" : "o",
  }),
);
const judged: CardTarget = { judged: "judged.jsonl" };
const few = {
  texts: bundledData.texts.slice(0, 3),
  questions: bundledData.questions.slice(0, 5),
  prompts: bundledData.prompts.slice(0, 4),
  formats: bundledData.formats.slice(0, 1),
};
const request = (more: Partial<CardRequest> = {}): CardRequest => ({
  ...{ profile: "kind", strengths: [1], random: 1, seed: 3, answerTokens: 8, target: judged },
  ...{ data: few, given: {}, ...more },
});

const measured = (own: CardRequest, part: [number, number]) =>
  measureItems(
    serving,
    own,
    { measure: targetOf(serving, judged, judgedLines(lines.join("\n"), "x")) },
    part,
  );

/** Everything that does not depend on the time. */
function figures({ arms, created, seconds, sha256, ...rest }: Card) {
  return JSON.stringify({
    ...rest,
    arms: arms.map(({ measures: { tokens_per_second, ...measures }, ...arm }) => ({ ...arm, measures })),
  });
}

test("a card in parts, merged, has the figures of one server to the bit", async () => {
  const whole = cardOf([await measured(request(), [0, 1])]);
  assert.equal(
    whole.arms.map(({ kind }) => kind),
    ["base", "zero", "profile", "random"],
  );
  const { target, changed_answers, cross_entropy } = whole.arms[2]?.measures ?? {};
  assert.equal([target?.n, changed_answers?.n, cross_entropy?.n], [3, 4, 3]);
  assert.ok((cross_entropy?.change?.value ?? 0) > 0, "the profile has an effect");
  // Four parts: one of them has neither a text nor a judged prompt, three no answer format.
  for (const order of [
    [1, 0],
    [3, 1, 0, 2],
  ]) {
    const folder = temporaryFolder("card-parts-of");
    for (const part of order) {
      await writeCardPart(folder, [part, order.length], await measured(request(), [part, order.length]));
    }
    assert.ok(await hasCardParts(folder));
    const { card, parts } = await mergeCard(folder);
    assert.is(parts, order.length);
    assert.ok(figures(card) === figures(whole), `${order.length} parts`);
    assert.ok(isIntact(card));
    assert.equal(
      card.arms.map(({ measures }) => measures.tokens_per_second?.n),
      [7, undefined, 7, undefined],
      "the first part measures speed",
    );
  }
});

test("missing parts are named, and parts of other cards are refused", async () => {
  const folder = temporaryFolder("card-parts-odd");
  assert.not(await hasCardParts(folder));
  const own = request({ data: { ...few, texts: few.texts.slice(0, 2) } });
  await writeCardPart(folder, [1, 2], await measured(own, [1, 2]));
  assert.is(await refusal(() => mergeCard(folder)), `${folder} lacks 1 of 2 parts: part-0-of-2.json.`);
  await writeCardPart(folder, [0, 2], await measured(request({ ...own, seed: 4 }), [0, 2]));
  assert.match(
    await refusal(() => mergeCard(folder)),
    /^part-1-of-2\.json \([0-9a-f]{8}\) belongs to another card than part-0-of-2\.json \([0-9a-f]{8}\): the two differ in settings\.$/,
  );
  const path = join(folder, "part-0-of-2.json");
  writeFileSync(path, readFileSync(path, "utf8").slice(0, -20));
  assert.is(await refusal(() => mergeCard(folder)), `${path} is not a part of a card: it is not JSON.`);
  rmSync(path);
  assert.ok(await hasParts(folder), "in the form that experiments have");
});

test("the command line measures parts and merges them", async () => {
  const folder = temporaryFolder("card-parts-command");
  const [parts, out] = [join(folder, "parts"), join(folder, "card")];
  const file = join(folder, "few.txt");
  writeFileSync(file, few.texts.map((text) => text.replaceAll("\n", " ")).join("\n"));
  const words = [
    "card",
    "kind",
    "--url",
    server.url,
    "--strengths",
    "1",
    "--random",
    "0",
    "--max-tokens",
    "4",
  ];
  words.push("--texts", file, "--prompts", file, "--contains", "a", "--quiet");
  for (const part of ["0/2", "1/2"]) {
    const { code, stderr } = await command([...words, "--shard", part, "--out", parts]);
    assert.is(code, 0, stderr);
  }
  const { code, stdout, stderr } = await command(["merge", parts, "--out", out]);
  assert.is(code, 0, stderr);
  assert.match(stdout, join(out, "card.html"));
  const card = JSON.parse(readFileSync(join(out, "card.json"), "utf8")) as Card;
  assert.ok(isIntact(card));
  assert.equal(card.arms[0]?.measures.cross_entropy?.n, few.texts.length);
  for (const [shard, said] of [
    ["2/2", "--shard must be i/n with i from 0 to n - 1, got 2/2."],
    ["x", "Write the part and the number of parts, such as 0/8."],
  ] as const) {
    const refused = await command([...words, "--shard", shard, "--out", parts]);
    assert.is(refused.code, 2);
    assert.match(refused.stderr, said);
  }
});

test.run();
