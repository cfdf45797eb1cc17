/** The refusals of a recipe, and the facts about it that are stored or reported. Nothing runs. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Recipe } from "../../src/contracts/recipe.js";
import { checkRecipe } from "../../src/recipe/check.js";
import {
  chooseModel,
  type LabTask,
  modelText,
  pickedBy,
  type QuantsTask,
  tasksOf,
  withPicked,
} from "../../src/recipe/outcome.js";
import { keptNames, variantsOf } from "../../src/recipe/steps.js";
import { type Base, base, check, refusal, told } from "./a-recipe.js";

const forms = { make: ["Q8_0"], texts: ["a", "b"], layers: [1] };

test("lists of texts become a quants step's texts, and examples of two splits", () => {
  const recipe = check((r) => {
    Object.assign(r, { texts: { some: ["a", "b", "c", "d"], others: ["e", "f", "g", "h"] } });
    const sae = { operation: "sae", layers: [3], examples: { train: "some", test: "others" } };
    r.steps[0] = { id: "one", what: "train", keep: "words", request: sae };
    r.steps[1] = {
      ...{ id: "two", what: "forms" },
      quants: { ...forms, dictionary: "words", texts: { texts: "others" } },
    };
    Object.assign(r.models[1]!, { layers: { two: [5] } });
  });
  const [train, measured] = tasksOf(recipe, recipe.models[1]!) as [LabTask, QuantsTask];
  const examples = train.settings.examples as { text: string; split: string }[];
  assert.equal(
    examples.map(({ text, split }) => text + split),
    ["atrain", "btrain", "ctrain", "dtrain", "etest", "ftest", "gtest", "htest"],
  );
  assert.equal(measured.quants.texts, ["e", "f", "g", "h"]);
  assert.equal([measured.model, measured.revision, measured.quants.layers], ["owner/name", "abc", [5]]);
});

test("a recipe's names are unique, its ranges can fail, its figures exist", () => {
  assert.is(told(() => {}).slice(0, 9), "accepted:");
  const cases: [(recipe: Base) => unknown, string][] = [
    [(r) => Object.assign(r.steps[1]!, { id: "one" }), "Two of the recipe's steps are called one."],
    [(r) => Object.assign(r.expected[1]!, { id: "a" }), "Two of the recipe's expected values are called a."],
    [
      (r) => Object.assign(r.expected[0]!, { low: undefined }),
      "a needs low or high: without either it cannot fail.",
    ],
    [(r) => Object.assign(r.expected[0]!, { high: 0.5 }), "a: low must not exceed high, got 1 and 0.5."],
    [
      (r) =>
        Object.assign(r.expected[1]!, {
          value: { difference: [{ step: "one", path: "x" }, { mean: [{ step: "gone", path: "x" }] }] },
        }),
      "b reads step gone, which is not in the recipe.",
    ],
    [
      (r) =>
        Object.assign(r.expected[1]!, {
          value: {
            same: [
              { step: "one", path: "x" },
              { step: "gone", path: "x" },
            ],
          },
        }),
      "b reads step gone, which is not in the recipe.",
    ],
    [
      (r) => {
        r.steps[1] = { id: "two", what: "forms", quants: { texts: ["a", "b"], layers: [1] } };
      },
      "Step two: needs forms: make or round.",
    ],
    [
      (r) => {
        r.steps[1] = { id: "two", what: "forms", quants: { ...forms, control: "c" } };
      },
      "Step two: control requires dictionary.",
    ],
    [
      (r) => {
        r.steps[1] = { id: "two", what: "forms", quants: { ...forms, dictionary: "words" } };
      },
      "Step two: no earlier step saves a dictionary words.",
    ],
    [
      (r) => Object.assign(r.steps[1]!, { quants: forms }),
      "Step two: must have exactly one of request, live, contrast and quants, got request and quants.",
    ],
    [
      (r) => {
        r.steps[1] = { id: "two", what: "forms", quants: { ...forms, texts: { texts: "gone" } } };
      },
      "Step two: the recipe has no texts gone.",
    ],
    [
      (r) => Object.assign(r.models[1]!, { layers: { three: [1] } }),
      "Model owner/name has layers for three, which is not a step.",
    ],
    [
      (r) => Object.assign(r.models[0]!, { expected: { c: { low: 1, source: "x" } } }),
      "Model demo has a range for c, which is not among the expected values.",
    ],
    [
      (r) => Object.assign(r.steps[1]!, { variant: "q4" }),
      "Step two runs on q4, which is not a variant of model demo.",
    ],
    [
      (r) => {
        Object.assign(r.steps[1]!, { variant: "q4" });
        Object.assign(r.models[0]!, { variants: { q4: { id: "x/y" } } });
      },
      "Step two runs on q4, which is not a variant of model owner/name.",
    ],
    [
      (r) =>
        Object.assign(r.models[1]!, {
          variants: { q4: { id: "x/y" } },
          quantised: { q8: "Q8_0", q4: "Q8_0" },
        }),
      "Model owner/name has the variant q4 in both variants and quantised.",
    ],
    [
      (r) => Object.assign(r.steps[0]!, { request: undefined }),
      "Step one: must have exactly one of request, live, contrast and quants, got none.",
    ],
    [
      (r) => Object.assign(r.steps[0]!.request as object, { revision: "x" }),
      "Step one: must not name a model; a recipe lists its models in models, for all steps.",
    ],
    [
      (r) => Object.assign(r.steps[1]!.request as object, { other_revision: "x" }),
      "Step two: must not name a model; a recipe lists its models in models, for all steps.",
    ],
  ];
  for (const [change, sentence] of cases)
    assert.is(
      told((recipe) => void change(recipe)),
      sentence,
    );
  // A range of one value can fail, and is one.
  assert.is(told((r) => void Object.assign(r.expected[0]!, { low: 1, high: 1 })).slice(0, 9), "accepted:");
});

test("a rounded form has bits or a format", () => {
  const rounded = (round: object) =>
    told((r) => {
      r.steps[1] = { id: "two", what: "forms", quants: { ...forms, round: [round] } };
    });
  assert.is(rounded({ format: "nf4" }).slice(0, 9), "accepted:");
  const either = "Step two: round: each entry must have exactly one of bits and format.";
  for (const [round, sentence] of [
    [{}, either],
    [{ bits: 4, format: "nf4" }, either],
    [{ format: "nf4", group: 32 }, "Step two: round: group requires bits."],
    [{ bits: 9 }, "steps[1].quants.round[0].bits: at most 8, got 9."],
    [{ format: "nf5" }, 'steps[1].quants.round[0].format: must be nf4, got "nf5".'],
  ] as const)
    assert.is(rounded(round), sentence);
});

const examples = Array.from({ length: 8 }, (_, at) => ({
  text: `text ${at}`,
  label: at % 2,
  split: at < 4 ? "train" : "test",
}));

test("a saved item has one layer in each model, and one kind for later steps", () => {
  const training = (r: Base) => {
    r.steps[0] = {
      id: "one",
      what: "first",
      keep: "p",
      request: { operation: "probe", layers: [3], examples },
    };
  };
  assert.is(told(training).slice(0, 9), "accepted:");
  const cases: [(recipe: Base) => unknown, string][] = [
    [
      (r) => Object.assign(r.models[1]!, { layers: { one: [1, 2] } }),
      "Model owner/name has 2 layers for one; a step with keep needs exactly one.",
    ],
    [
      (r) => r.steps.push({ ...r.steps[0], id: "three" }),
      "Step three: p was already saved by an earlier step.",
    ],
    [
      (r) => Object.assign(r.steps[0]!.request as object, { layers: undefined }),
      "Step one: keep requires exactly one entry in layers, got none.",
    ],
    [
      (r) =>
        r.steps.push({
          id: "three",
          what: "x",
          request: { operation: "features", dictionary: "p", texts: ["a"] },
        }),
      "Step three: no earlier step saves a dictionary p.",
    ],
    [
      (r) => r.steps.push({ id: "three", what: "x", contrast: { step: "two", texts: ":1", against: "1:" } }),
      "Step three: reads two, which is not an earlier features step.",
    ],
    [
      (r) =>
        r.steps.push({
          id: "three",
          what: "x",
          keep: "q",
          contrast: { step: "two", texts: ":1", against: "1:" },
        }),
      "Step three: keep requires request.",
    ],
    [
      (r) => Object.assign(r.steps[1]!, { keep: "q" }),
      "Step two: keep applies only to sae and probe, not to inspect.",
    ],
  ];
  for (const [change, sentence] of cases)
    assert.is(
      told((recipe) => {
        training(recipe);
        change(recipe);
      }),
      sentence,
    );
  const recipe = check(training);
  const [task] = tasksOf(recipe, { id: "demo", tested: true, layers: { one: [5] } }) as LabTask[];
  assert.equal(task?.keep, { name: "p", kind: "probe", layers: [5] });
  assert.equal(task?.settings, { layers: [5], examples });
});

test("a form of the model has its own revision, and so has the compared one", () => {
  const recipe = check((r) => {
    for (const model of r.models)
      model.variants = { small: { id: "x/small", revision: "s1" }, plain: { id: "x/plain" } };
    r.steps[0] = {
      ...{ id: "one", what: "first", variant: "plain" },
      request: {
        operation: "drift",
        layers: [3],
        examples: examples.map(({ text }) => ({ text })),
        other: { variant: "small" },
      },
    };
  });
  assert.equal(recipe.steps.map(variantsOf), [["plain", "small"], []]);
  const [one, two] = tasksOf(recipe, recipe.models[1]!) as [LabTask, LabTask];
  assert.equal(
    [one.model, one.settings.revision, one.settings.other, one.settings.other_revision],
    ["x/plain", undefined, "x/small", "s1"],
  );
  assert.equal([two.model, two.settings.revision, "other" in two.settings], ["owner/name", "abc", false]);
  assert.is(modelText(recipe, recipe.models[1]!), "plain: x/plain, small: x/small, owner/name");
  const own = chooseModel(recipe, "owner/name", { small: "/home/me/s.gguf" });
  assert.equal(own.variants, { small: { id: "/home/me/s.gguf" }, plain: { id: "x/plain" } });
  assert.is(modelText(recipe, { ...own, id: "/home/me/m.gguf" }), "plain: x/plain, small: s.gguf, m.gguf");
  assert.equal(chooseModel(recipe, undefined), recipe.models[0]);
  assert.is(
    refusal(() => tasksOf(recipe, { id: "other", tested: false })),
    "Step one needs the variant plain of the model: use --variant plain=….",
  );
  // A feature that an earlier step picked comes in by its number.
  const results = new Map<string, unknown>([["pick", { feature: 9 }]]);
  assert.is(pickedBy("pick", results), 9);
  assert.equal(withPicked({ feature: ["d", { picked: "pick" }], x: 1 }, results), {
    feature: ["d", 9],
    x: 1,
  });
});

test("lists of texts are the recipe's own, or another's, which is reported", () => {
  const listed = (given?: Record<string, string[]>): Recipe => {
    const recipe = { ...base(), texts: { stems: ["One is"], more: ["a", "b"] } };
    recipe.steps[0]!.request = {
      operation: "compare",
      prompt: "x",
      prompts: { texts: "stems" },
      layers: [7],
    };
    return checkRecipe(recipe, given);
  };
  const prompts = (recipe: Recipe) => (recipe.steps[0]!.request as { prompts?: string[] }).prompts;
  assert.equal([prompts(listed()), listed().differs], [["One is"], "Everything."]);
  const other = listed({ stems: ["x", "y", "z"], more: [] });
  assert.equal(
    [prompts(other), other.differs],
    [["x", "y", "z"], "Everything. Texts replaced for this run: stems (3), more (0)."],
  );
  assert.is(
    refusal(() => listed({ nothing: [] })),
    "The recipe has no texts nothing; it has stems, more.",
  );
  assert.is(
    refusal(() => checkRecipe(base(), { nothing: [] })),
    "The recipe has no texts nothing; it has none.",
  );
});

const graph = (transcoders: string) => ({ operation: "graph", prompt: "The capital", transcoders });
const sae = (layers: number[]) => ({
  operation: "sae",
  layers,
  target: "ffn_out",
  point: "ffn_in",
  examples,
});

test("dictionaries of several layers are saved as a set, and a recipe may name given ones", () => {
  const sets = (r: Base) => {
    Object.assign(r, { dictionaries: { given: { what: "A set." } } });
    r.steps[0] = { id: "one", what: "train", keep: "own", request: sae([2, 3]) };
    r.steps[1] = { id: "two", what: "graph", request: graph("own") };
  };
  assert.is(told(sets).slice(0, 9), "accepted:");
  const cases: [(recipe: Base) => unknown, string][] = [
    [(r) => Object.assign(r.steps[1]!, { request: graph("given") }), "accepted:"],
    [(r) => Object.assign(r.steps[1]!, { request: graph("own-2") }), "accepted:"],
    [
      (r) => Object.assign(r.steps[1]!, { request: graph("ow") }),
      "Step two: no earlier step saves transcoders ow.",
    ],
    [
      (r) => Object.assign(r.steps[1]!, { request: graph("own-4") }),
      "Step two: no earlier step saves transcoders own-4.",
    ],
    [
      (r) => r.steps.push({ id: "three", what: "train", keep: "own", request: sae([3, 4]) }),
      "Step three: own-3 was already saved by an earlier step.",
    ],
    [(r) => r.steps.push({ id: "three", what: "train", keep: "own", request: sae([4, 5]) }), "accepted:"],
    [
      (r) => r.steps.push({ id: "three", what: "train", keep: "given", request: sae([4]) }),
      "Step three: given was already saved by an earlier step.",
    ],
    [
      (r) => Object.assign(r.models[1]!, { layers: { one: [7] } }),
      "Model owner/name has 1 layers for one, which saves a set of several.",
    ],
    [(r) => Object.assign(r.models[1]!, { layers: { one: [7, 8, 9] } }), "accepted:"],
  ];
  for (const [change, sentence] of cases) {
    const said = told((recipe) => {
      sets(recipe);
      change(recipe);
    });
    assert.is(said.slice(0, sentence.length), sentence);
    if (sentence !== "accepted:") assert.is(said, sentence);
  }
  const recipe = check(sets);
  const [task] = tasksOf(recipe, { id: "demo", tested: true, layers: { one: [5, 6] } }) as LabTask[];
  assert.equal(task?.keep, { name: "own", kind: "dictionary", layers: [5, 6] });
  assert.equal(keptNames("own", [5, 6]), ["own-5", "own-6"]);
  assert.equal(keptNames("own", [5]), ["own"]);
});

test.run();
