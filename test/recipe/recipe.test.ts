import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { readRecipe } from "../../src/cli/commands/reproduce.js";
import { Lab } from "../../src/client/index.js";
import type { Result } from "../../src/contracts/index.js";
import type { Quantity, Reading } from "../../src/contracts/recipe.js";
import { StudyPackage } from "../../src/contracts/studies/index.js";
import { validate } from "../../src/contracts/validate.js";
import { startLab } from "../../src/lab/index.js";
import { checkRecipe } from "../../src/recipe/check.js";
import { contrasted } from "../../src/recipe/contrast.js";
import { measure } from "../../src/recipe/measure.js";
import {
  type ContrastTask,
  chooseModel,
  type LabTask,
  modelText,
  outcomesOf,
  tasksOf,
  withPicked,
} from "../../src/recipe/outcome.js";
import { command } from "../cli/in-process.js";
import { compiledWorker } from "../support/program.js";
import { saying } from "../support/saying.js";

const root = mkdtempSync(join(tmpdir(), "tapline-recipe-"));
test.after(() => rmSync(root, { recursive: true, force: true }));

const own = fileURLToPath(new URL("../../recipes", import.meta.url));

/** Only the fields that are read below. */
const results = new Map([
  [
    "steer",
    {
      trials: [
        { strength: -1, probability: 0.25, output: "It was bad." },
        { strength: 2, probability: 0.5, output: "It was good." },
        { strength: 2, probability: 1, output: "So good" },
      ],
      note: "as text",
      layers: [{ layer: 7, predictions: [[], [{ token: " a/b", probability: 0.75 }]] }],
    } as unknown as Result,
  ],
]);

function seen(path: string, more: Partial<Reading> = {}): number {
  return measure({ step: "steer", path, ...more }, results);
}

test("readings: fields, indices, all, entries of a value, quoted texts", () => {
  assert.is(seen("trials/0/probability"), 0.25);
  assert.is(seen("trials/-1/probability"), 1);
  assert.is(seen("trials/strength=2/probability"), 0.75);
  assert.is(seen("trials/strength=-1/probability"), 0.25);
  assert.is(seen("trials/strength=2&output=So good/probability"), 1);
  assert.is(seen("trials/strength=-1&output=So good/probability", { otherwise: 7 }), 7);
  assert.is(seen("trials/*/probability", { take: "min" }), 0.25);
  assert.is(seen("trials/*/probability", { take: "max" }), 1);
  assert.is(seen("trials/*/output", { contains: "good" }), 2 / 3);
  assert.is(seen('layers/layer=7/predictions/-1/"token= a/b"/probability'), 0.75);
  assert.is(seen("layers/layer=7/predictions/-1/token= c/probability", { otherwise: 0 }), 0);
  const read = (path: string) => ({ step: "steer", path });
  const difference: Quantity = { difference: [read("trials/1/probability"), read("trials/0/probability")] };
  assert.is(measure(difference, results), 0.25);
  // Of steps, each counted once however many numbers it holds: (1 + 0.25) / 2.
  const several: Quantity = {
    mean: [
      { ...read("trials/*/probability"), take: "max" },
      { ...read("trials/*/probability"), take: "min" },
    ],
  };
  assert.is(measure(several, results), 0.625);
  assert.throws(() => measure({ mean: [read("trials/3/probability")] }, results), /has no value/);
  // -ln 0.25 = 2 ln 2; the mean over strength 2 of -ln 0.5 and -ln 1 is ln 2 / 2.
  const nats = (path: string) => ({ ...read(path), surprise: true });
  assert.ok(Math.abs(measure(nats("trials/0/probability"), results) - 2 * Math.LN2) < 1e-12);
  const cost: Quantity = {
    difference: [{ mean: [nats("trials/0/probability")] }, nats("trials/strength=2/probability")],
  };
  assert.ok(Math.abs(measure(cost, results) - 1.5 * Math.LN2) < 1e-12);
});

test("a reading that finds nothing, or no number, is a sentence and not a figure", () => {
  assert.throws(() => seen("trials/strength=3/probability"), /step steer has no value at trials\/strength=3/);
  assert.throws(() => seen("trials/9/probability"), /has no value/);
  assert.throws(
    () => seen("note"),
    /The result of step steer has "as text" at note, which is not a number\./,
  );
  assert.throws(() => seen("trials/0/probability", { contains: "x" }), /has 0\.25 at trials\/0\/probability/);
});

const good = {
  schema_version: 1,
  title: "A title",
  paper: { title: "A paper", url: "https://example.org" },
  claim: "Paris comes late.",
  differs: "Everything.",
  models: [
    { id: "demo", tested: true },
    {
      id: "owner/name",
      revision: "abc",
      tested: false,
      layers: { look: [3] },
      expected: { late: { low: 0.5, source: "the paper" } },
    },
  ],
  data: { what: "One sentence.", licence: "MIT" },
  steps: [
    {
      id: "look",
      what: "the last block",
      request: { operation: "inspect", prompt: "The capital of France is", layers: [7] },
    },
  ],
  expected: [
    {
      id: "late",
      what: "probability of Paris",
      value: { step: "look", path: "layers/0/predictions/-1/token= Paris/probability", otherwise: 0 },
      low: 0.9,
      source: "the model's card",
    },
  ],
};
const changed = (change: (recipe: typeof good & Record<string, unknown>) => void) => {
  const recipe = structuredClone(good);
  change(recipe);
  return () => checkRecipe(recipe);
};

test("mistakes in a recipe are reported before it runs", () => {
  assert.not.throws(changed(() => {}));
  assert.throws(
    changed((r) => Object.assign(r, { extra: 1 })),
    /extra/,
  );
  assert.throws(
    changed((r) => Object.assign(r.steps[0]!.request, { layers: [300] })),
    /Step look: .*layers/,
  );
  assert.throws(
    changed((r) => Object.assign(r.steps[0]!.request, { model: "demo" })),
    /must not name a model/,
  );
  assert.throws(
    changed((r) => r.steps.push(r.steps[0]!)),
    /steps are called look/,
  );
  assert.throws(
    changed((r) => r.expected.push(r.expected[0]!)),
    /expected values are called late/,
  );
  assert.throws(
    changed((r) => Object.assign(r.expected[0]!, { low: undefined })),
    /needs low or high: without either it cannot fail\./,
  );
  assert.throws(
    changed((r) => Object.assign(r.expected[0]!, { high: 0.1 })),
    /low must not exceed high, got 0\.9 and 0\.1\./,
  );
  assert.throws(
    changed((r) => Object.assign(r.expected[0]!.value, { step: "other" })),
    /step other/,
  );
  assert.throws(
    changed((r) => Object.assign(r.models[1]!, { layers: { other: [1] } })),
    /has layers for other, which is not a step\./,
  );
  assert.throws(
    changed((r) => Object.assign(r.models[1]!, { expected: { other: { low: 1, source: "x" } } })),
    /has a range for other, which is not among the expected values\./,
  );
});

test("a model's own layers, revision and ranges replace the recipe's", () => {
  const recipe = checkRecipe(good);
  const other = chooseModel(recipe, "owner/name");
  const [request] = tasksOf(recipe, other) as LabTask[];
  assert.equal(request!.settings, { prompt: "The capital of France is", layers: [3], revision: "abc" });
  assert.equal((tasksOf(recipe, chooseModel(recipe, undefined)) as LabTask[])[0]!.settings, {
    prompt: "The capital of France is",
    layers: [7],
  });
  const result = { layers: [{ predictions: [[{ token: " Paris", probability: 0.6 }]] }] };
  const found = new Map([["look", result as unknown as Result]]);
  assert.is(outcomesOf(recipe, other, found)[0]!.held, true);
  assert.is(outcomesOf(recipe, chooseModel(recipe, "demo"), found)[0]!.held, false);
  assert.equal(chooseModel(recipe, "unknown"), { id: "unknown", tested: false });
});

test("a step may use a form of the model, and a run may name another file", () => {
  const several = {
    ...structuredClone(good),
    models: [{ id: "demo", tested: true, variants: { small: { id: "owner/name:Q4_K_M", revision: "abc" } } }],
  };
  Object.assign(several.steps[0]!, { variant: "small" });
  const recipe = checkRecipe(several);
  const [task] = tasksOf(recipe, chooseModel(recipe, undefined)) as LabTask[];
  assert.equal([task!.model, task!.settings.revision], ["owner/name:Q4_K_M", "abc"]);
  const own = chooseModel(recipe, undefined, { small: "/home/me/a.gguf" });
  assert.is(modelText(recipe, own), "small: a.gguf");
  assert.is(modelText(checkRecipe(good), own), "demo");
  const [named] = tasksOf(recipe, own) as LabTask[];
  assert.equal([named!.model, named!.settings.revision], ["/home/me/a.gguf", undefined]);
  assert.throws(() => tasksOf(recipe, chooseModel(recipe, "/b.gguf")), saying("--variant small="));
  assert.throws(
    changed((r) => Object.assign(r.steps[0]!, { variant: "small" })),
    /Step look runs on small, which is not a variant of model demo/,
  );
});

/** A recipe that trains a dictionary, picks a feature of it and steers with that. */
const finding = {
  ...structuredClone(good),
  models: [{ id: "demo", tested: true, quantised: { q8: "Q8_0" } }],
  steps: [
    {
      id: "train",
      what: "a dictionary",
      keep: "words",
      request: {
        ...{ operation: "sae", layers: [5], architecture: "topk", k: 4, rows: "all" },
        examples: Array.from({ length: 8 }, (_, i) => ({
          text: `text ${i}`,
          split: i < 4 ? "train" : "test",
        })),
      },
    },
    {
      id: "read",
      what: "what fires",
      request: { operation: "features", dictionary: "words", texts: ["a", "b", "c"], top: 5 },
    },
    { id: "pick", what: "the feature", contrast: { step: "read", texts: "0:1", against: "1:3" } },
    {
      id: "again",
      what: "the same feature",
      contrast: { step: "read", texts: "1:2", against: "2:3", feature: { picked: "pick" } },
    },
    {
      id: "steer",
      what: "steering with it",
      request: {
        ...{ operation: "compare", prompt: "a", layers: [5], intervention: "steer", strengths: [1] },
        feature: ["words", { picked: "pick" }],
      },
    },
    {
      id: "drift",
      what: "in eight bits",
      request: {
        ...{ operation: "drift", layers: [5], dictionary: "words", other: { variant: "q8" } },
        examples: [{ text: "a" }, { text: "b" }],
      },
    },
  ],
  expected: [
    { id: "apart", what: "AUROC", value: { step: "again", path: "auroc" }, low: 0.5, source: "a guess" },
  ],
};

test("a trained item is available to later steps, as is a chosen feature", () => {
  const recipe = checkRecipe(finding);
  const model = chooseModel(recipe, undefined);
  assert.is(modelText(recipe, model), "demo, q8: demo in Q8_0");
  const tasks = tasksOf(recipe, { ...model, variants: { q8: { id: "/tmp/q8.gguf" } } });
  assert.equal((tasks[0] as LabTask).keep, { name: "words", kind: "dictionary", layers: [5] });
  assert.is((tasks[5] as LabTask).settings.other, "/tmp/q8.gguf");
  assert.equal([(tasks[2] as ContrastTask).top, (tasks[3] as ContrastTask).top], [5, 5]);
  const steered = withPicked((tasks[4] as LabTask).settings, new Map([["pick", { feature: 17 }]]));
  assert.equal(steered.feature, ["words", 17]);
  assert.throws(() => tasksOf(recipe, { id: "/b.gguf", tested: false }), /--variant q8=/);
  // Forms in fewer bits are made of any model; those of the hub are one model's own.
  assert.equal(chooseModel(recipe, "/b.gguf").quantised, { q8: "Q8_0" });
});

test("the names in a recipe refer to its own earlier steps", () => {
  const labelled = [
    { text: "a", label: 0 },
    { text: "b", label: 1 },
  ];
  type Steps = Array<Record<string, never> & { request?: Record<string, unknown> }>;
  const cases: Array<[(steps: Steps) => unknown, RegExp]> = [
    [(steps) => steps.splice(0, 1), /Step read: no earlier step saves a dictionary words\./],
    [(steps) => steps.splice(2, 1), /Step again: no earlier step pick picks a feature\./],
    [(steps) => steps.splice(2, 2), /Step steer: no earlier step pick picks a feature\./],
    [
      (steps) => Object.assign(steps[2]!, { contrast: { step: "train", texts: ":", against: ":" } }),
      /reads train, which is not an earlier features step/,
    ],
    [
      (steps) => Object.assign(steps[1]!, { keep: "x" }),
      /keep applies only to sae and probe, not to features/,
    ],
    [
      (steps) => Object.assign(steps[0]!.request!, { layers: [4, 5] }),
      /Step read: no earlier step saves a dictionary words\./, // a set: words-4, words-5
    ],
    [(steps) => Object.assign(steps[5]!.request!, { other: "/a.gguf" }), /other must be {"variant": NAME}/],
    [
      (steps) => Object.assign(steps[5]!.request!, { other: { variant: "q4" } }),
      /Step drift runs on q4, which is not a variant of model demo\./,
    ],
    [
      (steps) => Object.assign(steps[5]!.request!, { vector: "v", examples: labelled }),
      /must not name a vector: no Lab request makes one\./,
    ],
    [
      (steps) => Object.assign(steps[5]!.request!, { probe: "words", examples: labelled }),
      /no earlier step saves a probe words/,
    ],
    [(steps) => Object.assign(steps[2]!, { variant: "q8" }), /variant requires request\./],
  ];
  for (const [change, told] of cases) {
    const recipe = structuredClone(finding);
    change(recipe.steps as never);
    assert.throws(() => checkRecipe(recipe), told);
  }
  const both = structuredClone(finding);
  Object.assign(both.models[0]!, { variants: { q8: { id: "demo" } } });
  assert.throws(() => checkRecipe(both), /Model demo has the variant q8 in both variants and quantised\./);
});

test("a contrast picks the feature that separates two groups, or fails", () => {
  // Activations of features 1, 2 and 3 at the last token of each of four texts.
  const rows = [
    { 1: 4, 2: 1 },
    { 1: 2, 3: 9 },
    { 1: 1, 3: 9 },
    { 2: 1, 3: 1 },
  ];
  const texts = rows.map((own) => ({
    tokens: ["x", "y"],
    token_ids: [0, 1],
    top: [[], Object.entries(own).map(([feature, activation]) => ({ feature: Number(feature), activation }))],
  }));
  const asked = { step: "read", texts: "0:2", against: "2:" };
  // Feature 1: means 3 and 0.5; 2: 0.5 and 0.5; 3: 4.5 and 5.
  assert.equal(contrasted(asked, { texts }, 3), {
    feature: 1,
    mean: { texts: 3, against: 0.5 },
    active: { texts: 1, against: 0.5 },
    auroc: 1,
  });
  // Pairs (0, 9), (0, 1), (9, 9), (9, 1): two are greater or equal, one of these by half.
  assert.equal(contrasted({ ...asked, feature: 3 }, { texts }, 3).auroc, 1.5 / 4);
  assert.is(contrasted({ ...asked, feature: 7 }, { texts }, 3).auroc, 0.5);
  // Means count, however many texts a group has.
  const alike = [{ 1: 1, 2: 1 }, { 1: 1 }, { 1: 1 }, { 1: 1 }, { 1: 1 }].map((own) => ({
    tokens: ["x"],
    token_ids: [0],
    top: [Object.entries(own).map(([feature, activation]) => ({ feature: Number(feature), activation }))],
  }));
  // Feature 1 is 1 everywhere; 2 is a quarter on average in the first four.
  assert.is(contrasted({ ...asked, texts: ":4", against: "4:", token: 0 }, { texts: alike }, 3).feature, 2);
  assert.throws(() => contrasted(asked, { texts }, 2), /lists 2 features per token, and all are active/);
  assert.throws(
    () => contrasted({ ...asked, texts: "9:" }, { texts }, 3),
    /has 4 texts; the range 9: selects none\./,
  );
  assert.throws(() => contrasted({ ...asked, token: 0 }, { texts }, 3), /No feature is more active/);
  assert.throws(() => contrasted({ ...asked, token: 5 }, { texts }, 3), /has 2 tokens; there is no token 5/);
});

test("lists of texts fill the requests that name them, and can be replaced", () => {
  const compare = { operation: "compare", prompt: "a", prompts: { texts: "stems" }, layers: [7] };
  const listed = { ...structuredClone(good), texts: { stems: ["One is", "Two is"] } };
  listed.steps.push({ id: "both", what: "two", request: compare as never });
  const promptsOf = (given?: Record<string, string[]>) => {
    const recipe = checkRecipe(listed, given);
    return [(recipe.steps[1]!.request as { prompts?: string[] }).prompts, recipe.differs];
  };
  assert.equal(promptsOf(), [["One is", "Two is"], "Everything."]);
  assert.equal(promptsOf({ stems: ["Mine"] }), [
    ["Mine"],
    "Everything. Texts replaced for this run: stems (1).",
  ]);
  assert.throws(
    () => promptsOf({ others: ["Mine"] }),
    saying("The recipe has no texts others; it has stems."),
  );
  assert.throws(
    () => checkRecipe({ ...listed, texts: undefined }),
    /Step both: the recipe has no texts stems/,
  );
});

test("every recipe that ships with tapline is valid, and has a control", async () => {
  const names = readdirSync(own);
  assert.ok(names.length >= 3);
  for (const name of names) {
    const { recipe } = await readRecipe(name);
    assert.ok(
      recipe.expected.some(({ control }) => control),
      `${name} has no control`,
    );
  }
});

test("reproduce: figures, files and the exit code, from a local file", async () => {
  const lab = await startLab({ port: 0, home: join(root, "home"), backend: "cpu", ...compiledWorker });
  const client = new Lab(lab.url);
  try {
    const file = join(root, "recipe.json");
    const mixed = structuredClone(good);
    mixed.expected.push({ ...mixed.expected[0]!, id: "never", what: "more than there is", low: 1.5 });
    writeFileSync(file, JSON.stringify(mixed));
    const out = join(root, "out");
    const ran = await command(["reproduce", file, "--lab", lab.url, "--out", out, "--json", "--quiet"]);
    assert.is(ran.code, 1, ran.stderr);
    const { held, figures } = JSON.parse(ran.stdout);
    assert.is(held, false);
    assert.equal(
      figures.map((figure: { id: string; held: boolean }) => [figure.id, figure.held]),
      [
        ["late", true],
        ["never", false],
      ],
    );
    assert.ok(figures[0].seen > 0.9 && figures[0].seen <= 1);
    assert.equal(readdirSync(out).sort(), ["index.html", "look.html", "study.json"]);
    const page = readFileSync(join(out, "index.html"), "utf8");
    assert.match(page, "1 of 2 values are outside their expected ranges.");
    const study = validate(StudyPackage, JSON.parse(readFileSync(join(out, "study.json"), "utf8")));
    const [, block] = /```reproduction\n(.*?)\n```/s.exec(study.method) as unknown as [string, string];
    assert.is(JSON.parse(block).expected[1].held, false);

    writeFileSync(file, JSON.stringify(good));
    const again = await command(["reproduce", file, "--lab", lab.url, "--out", out, "--quiet"]);
    assert.is(again.code, 0, again.stderr);
    assert.match(again.stdout, "All 1 values are in range.");

    // A step's saved item is there for the next one, and gone when the recipe ends, however it ends.
    const keeping = {
      ...structuredClone(finding),
      steps: finding.steps.slice(0, 3),
      expected: good.expected,
    };
    Object.assign(keeping.steps[0]!.request as object, { features: 16, steps: 20 });
    Object.assign(keeping.steps[1]!.request as object, { texts: ["text 1", "other words", "one more"] });
    const picked = { step: "pick", path: "active/texts" };
    keeping.expected = [{ ...good.expected[0]!, value: picked } as never];
    writeFileSync(file, JSON.stringify(keeping));
    const kept = await command(["reproduce", file, "--lab", lab.url, "--out", join(root, "kept"), "--quiet"]);
    assert.is(kept.code, 0, kept.stderr);
    assert.match(readFileSync(join(root, "kept", "pick.html"), "utf8"), /Feature \d+, picked/);
    assert.equal(await client.dictionaries(), []);
    Object.assign(keeping.steps[1]!.request as object, { texts: ["text 1"] }); // the contrast finds too few
    writeFileSync(file, JSON.stringify(keeping));
    const failed = await command(["reproduce", file, "--lab", lab.url, "--out", join(root, "no"), "--quiet"]);
    assert.match(failed.stderr, /Step read has 1 texts; the range 1:3 selects none/);
    assert.equal(await client.dictionaries(), []);

    // A name that somebody has is refused before anything runs.
    const rows = join(root, "kept-rows");
    mkdirSync(rows);
    const trained = (await client.jobs()).find(({ operation }) => operation === "sae");
    const from = await client.artifact(
      trained!.id,
      "sae-layer-5.safetensors",
      join(rows, "sae-layer-5.safetensors"),
    );
    await client.artifact(trained!.id, "sae-normalization-5.npz", join(rows, "sae-normalization-5.npz"));
    await client.addDictionary("words", from);
    const before = (await client.jobs()).length;
    const taken = await command(["reproduce", file, "--lab", lab.url, "--out", join(root, "no"), "--quiet"]);
    assert.match(taken.stderr, /already has a dictionary words, which the recipe would overwrite\./);
    assert.is((await client.jobs()).length, before);
    assert.equal(
      (await client.dictionaries()).map(({ name }) => name),
      ["words"],
    );
  } finally {
    await lab.close();
  }
});

test("reproduce: exits with 2 for files that are not recipes", async () => {
  const nothing = await command(["reproduce", "no-such-recipe"]);
  assert.is(nothing.code, 2);
  assert.match(nothing.stderr, /There is no recipe no-such-recipe/);
  const file = join(root, "wrong.json");
  writeFileSync(file, JSON.stringify({ ...good, steps: [] }));
  const wrong = await command(["reproduce", file]);
  assert.is(wrong.code, 2);
  assert.match(wrong.stderr, /is not a valid recipe: .*steps/);
  const listed = await command(["reproduce", "--list", "--json"]);
  assert.equal(
    JSON.parse(listed.stdout)
      .map(({ name }: { name: string }) => name)
      .sort(),
    readdirSync(own).sort(),
  );
});

test.run();
