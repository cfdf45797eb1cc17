/** A recipe that measures forms of the embedded model, from a dictionary it trains to the pages. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { StudyPackage } from "../../../src/contracts/studies/index.js";
import { validate } from "../../../src/contracts/validate.js";
import { tapline } from "../../cli/run.js";
import { temporaryFolder } from "../../support/temporary.js";

const folder = temporaryFolder("quants-recipe");
const at = (name: string) => join(folder, name);

const countries = ["France", "Spain", "Italy", "Japan", "Egypt", "Kenya", "Austria", "Germany"];
const training = countries.map((name) => `The capital of ${name} is a city in ${name}`);
const held = countries.map((name) => `People in ${name} like their country`);
const read = (path: string) => ({ step: "forms", path });

const recipe = {
  ...{ schema_version: 1, title: "Features by bits", claim: "Fewer bits, fewer features.", differs: "Tiny." },
  paper: { title: "A paper", url: "https://example.org" },
  models: [{ id: "demo", tested: true }],
  data: { what: "Sentences of this test", licence: "MIT" },
  texts: { training: "training.txt", held },
  steps: [
    {
      ...{ id: "train", what: "train a dictionary", keep: "words" },
      request: {
        ...{
          operation: "sae",
          layers: [4],
          architecture: "topk",
          rows: "all",
          features: 32,
          k: 4,
          steps: 20,
        },
        examples: { train: "training", test: "held" },
      },
    },
    {
      ...{ id: "forms", what: "measure forms" },
      quants: {
        ...{ make: ["Q8_0"], round: [{ bits: 2 }, { bits: 8, group: 32 }], layers: [4], dictionary: "words" },
        ...{ texts: { texts: "held" }, prompts: [held[0]] },
      },
    },
  ],
  expected: [
    {
      ...{
        id: "worse",
        what: "fewer features correlate with 2 bits than with 8",
        low: 0.0001,
        source: "here",
      },
      value: {
        difference: [
          read("forms/name=RTN8x32/survival/correlated/value"),
          read("forms/name=RTN2/survival/correlated/value"),
        ],
      },
    },
    {
      ...{ id: "k", what: "Q8_0 is near the reference", high: 0.1, source: "here" },
      value: read("forms/name=Q8_0/divergence/value"),
    },
    {
      ...{ id: "graph", what: "graphs overlap", low: 0, high: 1, source: "by definition" },
      value: read("forms/name=RTN2/circuits/overlap/value"),
    },
  ],
};

test("a recipe's quants step gives figures, a page and a study", async () => {
  writeFileSync(at("training.txt"), training.join("\n"));
  writeFileSync(at("recipe.json"), JSON.stringify(recipe));
  const out = at("out");
  const { code, stdout, stderr } = await tapline(
    ["reproduce", at("recipe.json"), "--lab", "new", "--out", out, "--json", "--quiet"],
    { env: { TAPLINE_HOME: at("home") } },
  );
  assert.is(code, 0, stderr + stdout);
  assert.match(readFileSync(join(out, "forms.html"), "utf8"), /<figure id="circuits-by-prompt">/);
  const study = validate(StudyPackage, JSON.parse(readFileSync(join(out, "study.json"), "utf8")));
  assert.ok(study.entries.some(({ title }) => title === "Table of 3 forms"));
  assert.match(readFileSync(join(out, "index.html"), "utf8"), /forms\.html/);
  assert.equal(
    readdirSync(out).filter((name) => /work|gguf/.test(name)),
    [],
    "forms are removed",
  );
  assert.not.ok(existsSync(join(at("home"), "dictionaries", "words.json")));
});

test("a list of texts that is a missing file is reported", async () => {
  writeFileSync(at("recipe.json"), JSON.stringify({ ...recipe, texts: { training: "gone.txt", held } }));
  const { code, stderr } = await tapline(["reproduce", at("recipe.json")], {
    env: { TAPLINE_HOME: at("home") },
  });
  assert.is(code, 2, stderr);
  assert.match(stderr, /gone\.txt/);
});

test.run();
