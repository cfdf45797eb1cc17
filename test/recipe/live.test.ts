import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { StudyPackage } from "../../src/contracts/studies/index.js";
import { validate } from "../../src/contracts/validate.js";
import { checkRecipe } from "../../src/recipe/check.js";
import { livePage } from "../../src/recipe/live-page.js";
import { measure } from "../../src/recipe/measure.js";
import { chooseModel, tasksOf } from "../../src/recipe/outcome.js";
import { command } from "../cli/in-process.js";
import { startServer } from "../inference/support/serving.js";

const root = mkdtempSync(join(tmpdir(), "tapline-live-recipe-"));
test.after(() => rmSync(root, { recursive: true, force: true }));

const question = (country: string) => `The capital of ${country} is`;
const invented = ["Brovia", "Quenland", "Tarsovia", "Melgria", "Zondia", "Plavenia"].map(question);
const real = ["France", "Germany", "Spain", "Italy", "Portugal", "Poland"].map(question);

const steer = (vector: string) => ({
  temperature: 0,
  max_tokens: 4,
  tapline: { interventions: [{ kind: "steer", vector, strength: 2, strength_unit: "vector" }] },
});
const each = [{ prompt: question("Sweden") }, { prompt: question("Austria") }];
const text = "responses/*/choices/*/text";

const recipe = {
  schema_version: 1,
  title: "Steered",
  paper: { title: "A paper", url: "https://example.org" },
  claim: "A direction makes known capitals unknown.",
  differs: "Everything.",
  models: [
    { id: "demo", tested: true },
    { id: "owner/name", tested: false, layers: { direction: [3], probe: [2] } },
  ],
  data: { what: "Sentences.", licence: "MIT" },
  steps: [
    {
      id: "direction",
      what: "the direction",
      live: { vector: { name: "unknown", positive: invented, negative: real, layers: [5] } },
    },
    { id: "random", what: "one as long", live: { random: { name: "noise", like: "unknown", seed: 1 } } },
    {
      id: "probe",
      what: "a probe",
      live: { probe: { name: "doubt", positive: invented, negative: real, layer: 5 } },
    },
    { id: "steered", what: "steered", live: { post: "/v1/completions", body: steer("unknown"), each } },
    {
      id: "noise",
      what: "along the random one",
      live: { post: "/v1/completions", body: steer("noise"), each },
    },
    {
      id: "stopped",
      what: "ended by the probe",
      live: {
        post: "/v1/completions",
        body: {
          prompt: question("Gorland"),
          max_tokens: 4,
          temperature: 0,
          tapline: { watch: { probes: ["doubt"] }, stop_when: { probe: "doubt", above: 0.5 } },
        },
      },
    },
  ],
  expected: [
    {
      id: "unknown",
      what: "capitals called unknown",
      value: { step: "steered", path: text, contains: "unknown" },
      low: 1,
      source: "the claim",
    },
    {
      id: "noise",
      what: "the same along a random vector",
      value: { step: "noise", path: text, contains: "unknown" },
      high: 0,
      source: "no direction",
      control: true,
    },
    {
      id: "never",
      what: "answers that both give",
      value: {
        same: [
          { step: "steered", path: text },
          { step: "noise", path: text },
        ],
      },
      low: 0.5,
      source: "nothing: it cannot hold",
    },
    {
      id: "stopped",
      what: "score of the token that ended the answer",
      value: {
        step: "stopped",
        path: "responses/0/choices/finish_reason=monitor/tapline/tokens/-1/probes/doubt",
      },
      low: 0.5,
      source: "the condition",
    },
  ],
};
type Step = { id: string; live: Record<string, unknown> & { body: Record<string, unknown>; each: object[] } };
const changed = (change: (steps: Step[], whole: typeof recipe) => void) => () => {
  const copy = structuredClone(recipe);
  change(copy.steps as unknown as Step[], copy);
  checkRecipe(copy);
};

test("mistakes in a live step are reported before it runs", () => {
  assert.not.throws(changed(() => {}));
  for (const [wrong, told] of [
    [
      (steps: Step[]) => Object.assign(steps[0]!, { request: { operation: "inspect" } }),
      /Step direction: must have exactly one of request, live, contrast and quants, got request and live/,
    ],
    [(steps: Step[]) => Object.assign(steps[0]!, { live: {} }), /got none/],
    [(steps: Step[]) => Object.assign(steps[0]!.live, { probe: {} }), /got vector and probe/],
    [(steps: Step[]) => Object.assign(steps[0]!.live, { each: [] }), /each cannot be combined/],
    [(steps: Step[]) => Object.assign(steps[0]!.live.vector!, { layers: [-1] }), /Step direction: .*layers/],
    [(steps: Step[]) => steps.shift(), /Step random: no earlier step makes a vector unknown/],
    [
      (steps: Step[]) => Object.assign(steps[1]!.live.random!, { name: "unknown" }),
      /made by an earlier step/,
    ],
    [(steps: Step[]) => steps.splice(2, 1), /Step stopped: body: no earlier step makes a probe doubt/],
    [
      (steps: Step[]) => Object.assign(steps[3]!.live.body, { temprature: 0 }),
      /each\[0\]: temprature is not a field/,
    ],
    [
      (steps: Step[]) => Object.assign(steps[3]!.live.each[1]!, { stream: true }),
      /each\[1\] must not set stream/,
    ],
    [(steps: Step[]) => Object.assign(steps[3]!.live.body, { model: "demo" }), /must not set model/],
    [
      (steps: Step[]) => Object.assign(steps[3]!.live.body.tapline!, { steer: 1 }),
      /Step steered: each\[0\]: .*steer/,
    ],
    [
      (_: Step[], whole: typeof recipe) => Object.assign(whole.models[1]!.layers!, { steered: [1] }),
      /layers for steered, whose layers are those of its vectors and probes/,
    ],
    [
      (_: Step[], whole: typeof recipe) => Object.assign(whole.models[1]!.layers!, { probe: [1, 2] }),
      /2 layers for probe; a probe needs exactly one/,
    ],
  ] as const) {
    assert.throws(changed(wrong), told);
  }
});

test("a model's own layers reach the vectors and probes of live steps", () => {
  const checked = checkRecipe(recipe);
  const [direction, , probe] = tasksOf(checked, chooseModel(checked, "owner/name"));
  assert.equal((direction as unknown as (typeof recipe.steps)[0]).live.vector?.layers, [3]);
  assert.is((probe as unknown as (typeof recipe.steps)[0]).live.probe?.layer, 2);
});

test("readings: ranges of a list, one of several texts, how often two agree", () => {
  const results = new Map<string, unknown>([
    ["a", { list: [1, 2, 3, 4], texts: ["red car", "blue car", "green boat"] }],
    ["b", { list: [1, 5, 3], texts: ["red car", "a boat", "green boat"] }],
  ]);
  const read = (step: string, path: string, more: object = {}) => ({ step, path, ...more });
  assert.is(measure(read("a", "list/0:-1", { take: "max" }), results), 3);
  assert.is(measure(read("a", "list/2:", { take: "min" }), results), 3);
  assert.is(measure(read("a", "texts/*", { contains: ["red", "boat"] }), results), 2 / 3);
  const same = (one: object, other: object) => measure({ same: [one, other] } as never, results);
  assert.is(same(read("a", "texts/*"), read("b", "texts/*")), 2 / 3);
  assert.is(same(read("a", "list/:3"), read("b", "list/*")), 2 / 3);
  assert.is(same(read("a", "texts/*", { contains: "car" }), read("b", "texts/*", { contains: "a" })), 2 / 3);
  assert.throws(() => same(read("a", "list/*"), read("b", "list/*")), /got 4 at .* and 3 at/);
  assert.throws(() => same(read("a", "nothing"), read("b", "nothing")), /got 0 at .* and 0 at/);
});

test("a live step's page shades tokens by score and escapes the model's text", () => {
  const live = { post: "/v1/completions" as const, body: { prompt: "<b>" } };
  const tokens = [
    { token: " <i>", probes: { doubt: 0.456 } },
    { token: "!", probes: { doubt: null } },
  ];
  const choices = [{ text: " <i>!", finish_reason: "monitor", tapline: { tokens } }];
  const page = livePage("a step", "a model", live, { responses: [{ choices }] });
  assert.match(page, '<span class="token" style="--score: 0.32"> &lt;i&gt;<sub>0.46</sub></span>!');
  assert.match(page, "<td>monitor</td>");
  assert.not.match(page, "<i>");
  assert.not.match(page, "<b>");
});

test("live steps: figures, pages, the study, and nothing left on somebody's server", async () => {
  const server = await startServer({ home: join(root, "home"), parallel: 2 });
  try {
    const file = join(root, "recipe.json");
    writeFileSync(file, JSON.stringify(recipe));
    const out = join(root, "out");
    const words = ["reproduce", file, "--url", server.url, "--out", out, "--json", "--quiet"];
    const ran = await command(words);
    assert.is(ran.code, 1, ran.stderr);
    const { model, figures } = JSON.parse(ran.stdout);
    assert.is(model, "demo");
    assert.equal(
      figures.map((figure: { id: string; held: boolean }) => [figure.id, figure.held]),
      [
        ["unknown", true],
        ["noise", true],
        ["never", false],
        ["stopped", true],
      ],
    );
    assert.equal(
      readdirSync(out).sort(),
      [...recipe.steps.map(({ id }) => `${id}.html`), "index.html", "study.json"].sort(),
    );
    assert.match(readFileSync(join(out, "steered.html"), "utf8"), "steer at block 5");
    const study = validate(StudyPackage, JSON.parse(readFileSync(join(out, "study.json"), "utf8")));
    assert.match(study.method, "2 answers of /v1/completions: steered.");
    assert.ok(study.entries.some(({ answer }) => answer?.includes(`${question("Sweden")} |  unknown`)));
    assert.equal((await server.get("/lab/vectors")).body, { vectors: [] });
    assert.equal((await server.get("/lab/probes")).body, { probes: [] });

    const own = { name: "unknown", positive: invented, negative: real, layers: [2] };
    assert.is((await server.post("/lab/vectors", own)).status, 201);
    const refused = await command(words);
    assert.is(refused.code, 1);
    assert.match(refused.stderr, "The server already has a vector unknown");
    assert.equal((await server.get("/lab/vectors/unknown")).body.layers[0].layer, 2);
    const twice = await command([...words, "--model", "demo"]);
    assert.is(twice.code, 2);
    assert.match(twice.stderr, "--url and --model cannot be combined");
    const without = await command([
      "reproduce",
      "induction",
      "--url",
      server.url,
      "--out",
      join(root, "none"),
    ]);
    assert.is(without.code, 2);
    assert.match(without.stderr, "only for recipes with live steps");
  } finally {
    await server.close();
  }
});

test.run();
