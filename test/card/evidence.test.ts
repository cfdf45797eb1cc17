/** A card as a study package. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { cardEvidence } from "../../src/card/evidence.js";
import { signed } from "../../src/card/signed.js";
import type { Card } from "../../src/contracts/card.js";
import { StudyPackage } from "../../src/contracts/studies/index.js";
import { validate } from "../../src/contracts/validate.js";
import { assemble, emptyWords } from "../../src/study/index.js";
import { command } from "../cli/in-process.js";
import { temporaryFolder } from "../support/temporary.js";

const measure = (value: number, change?: number) => ({
  ...{ value, low: value - 0.125, high: value + 0.125, n: 4 },
  ...(change !== undefined && { change: { value: change, low: change - 0.125, high: change + 0.125 } }),
});
const given: Omit<Card, "sha256"> = {
  ...{ kind: "tapline card", schema_version: 1, tapline: "0.3.0", created: 1_700_000_000, seconds: 60 },
  model: { id: "toy", fingerprint: "f".repeat(64), architecture: "llama", quantization: "Q8_0" },
  profile: {
    ...{ name: "polite", description: "Says please.", uses: [] },
    tapline: { interventions: [{ kind: "steer", layer: 2, vector: "kind", strength: 0.5 }] },
  },
  settings: {
    ...{ strengths: [1], random: 1, seed: 3, answer_tokens: 32, data: { texts: "a".repeat(64) }, given: {} },
    target: { judged: "/home/ada/private/judged.jsonl" },
  },
  arms: [
    { kind: "base", factor: 0, measures: { target: measure(0.25), cross_entropy: measure(2) } },
    {
      kind: "profile",
      factor: 1,
      measures: { target: measure(0.75, 0.5), cross_entropy: measure(2.5, 0.5) },
    },
    {
      kind: "random",
      factor: 1,
      seed: 3,
      measures: { target: measure(0.25, 0), cross_entropy: measure(2.5, 0.5) },
    },
  ],
  notes: ["The profile's readings are not part of the card."],
};
const card = signed(given);

test("a card becomes a valid package with its finding, figures and JSON", () => {
  const evidence = cardEvidence(card);
  assert.equal(evidence.model, { name: "toy", revision: "f".repeat(64), runtime: "tapline 0.3.0" });
  const words = {
    ...emptyWords,
    title: "t",
    question: "q",
    method: "m",
    limitations: "l",
    license: "CC0-1.0",
  };
  const { study } = assemble(words, [evidence]);
  validate(StudyPackage, study);
  const [asked, result, json] = study.entries;
  assert.equal([asked?.title, asked?.prompt, asked?.settings?.seed], ["card: toy@polite", "Says please.", 3]);
  assert.is(result?.parent, asked?.id);
  const answer = result?.answer ?? "";
  assert.match(
    answer,
    /With polite, the share of answers that match the judged set rises from 25\.0 % to 75\.0 %/,
  );
  assert.match(
    answer,
    "| strength × 1 | 75.0 % (62.5 % to 87.5 %) | 2.500 nats (2.375 nats to 2.625 nats) |",
  );
  assert.match(answer, "The profile's readings are not part of the card.");
  assert.is(json?.title, "card.json");
  const { settings, ...rest } = JSON.parse(json?.note ?? "") as Card;
  const { settings: own, ...others } = card;
  assert.equal(rest, others);
  // A study does not disclose where a file was on the author's machine.
  assert.equal(settings, { ...own, target: { judged: "judged.jsonl" } });
  assert.not.match(JSON.stringify(study), "/home/ada");
  assert.is(study.omissions.length, 1);
});

test("the command packages a card's folder and refuses a changed card", async () => {
  const folder = join(temporaryFolder("card-evidence"), "card");
  mkdirSync(folder);
  const write = (value: object) => writeFileSync(join(folder, "card.json"), JSON.stringify(value));
  write(card);
  const out = join(folder, "study.json");
  const text = ["--title", "t", "--question", "q", "--limitations", "l", "--license", "CC0-1.0", "--no-edit"];
  const made = await command(["study", "package", "--card", folder, ...text, "--out", out]);
  assert.is(made.code, 0, made.stderr);
  const study = JSON.parse(readFileSync(out, "utf8"));
  assert.equal([study.entries.length, study.model.name], [3, "toy"]);
  assert.match(study.method, "Effect and cost of the profile polite");
  write({ ...card, seconds: 1 });
  const changed = await command(["study", "package", "--card", folder, ...text]);
  assert.is(changed.code, 2);
  assert.match(changed.stderr, "was changed after it was written");
  const none = await command(["study", "package", ...text]);
  assert.match(none.stderr, "At least one job (--job), request (--execution) or card (--card) is required.");
});

test.run();
