import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type Config,
  checkSubmission,
  defaults,
  type InspectConfig,
  InvalidInput,
  limits,
  type PatchSweepConfig,
  promptPairs,
} from "../../src/contracts/index.js";
import { checkSaeSettings } from "../../src/operations/sae/contract.js";
import { fc } from "../support/fc.js";
import { saying } from "../support/saying.js";
import { anyBody, nearlyValid, validSubmission } from "./arbitrary.js";

const base = { operation: "inspect", model: "demo", prompt: "x" };
const examples = (count: number, label = true) =>
  Array.from({ length: count }, (_, index) => ({
    text: `text ${index}`,
    split: index % 4 < 2 ? "train" : "test",
    ...(label ? { label: index % 2 } : {}),
  }));

function sentence(body: unknown): string {
  try {
    checkSubmission(body);
  } catch (error) {
    assert.instance(error, InvalidInput);
    return (error as Error).message;
  }
  return "accepted";
}

test("a clamp's default strengths keep a projection within its bounds", () => {
  const body = {
    operation: "compare",
    model: "demo",
    prompt: "a",
    positive: "b",
    negative: "c",
    layers: [1],
  };
  const strengths = (more: object) =>
    (checkSubmission({ ...body, ...more }) as { strengths: number[] }).strengths;
  assert.equal(strengths({ intervention: "clamp", max: 1 }), [0, 0.5, 1]);
  assert.equal(strengths({ intervention: "clamp", max: 1, strengths: [0.25] }), [0.25]);
  assert.equal(strengths({ intervention: "steer" }), [0, 0.5, 1, 1.5]);
});

test("defaults are filled in, in every operation", () => {
  const common = {
    layers: [0],
    max_input_tokens: defaults.max_input_tokens,
    max_tokens: defaults.max_tokens,
    seed: 0,
  };
  assert.equal(checkSubmission(base), { ...base, ...common });
  assert.equal(checkSubmission({ ...base, operation: "compare" }), {
    ...base,
    ...common,
    operation: "compare",
    intervention: "scale",
    strengths: [0, 0.5, 1, 1.5],
  });
  const probe = { operation: "probe", model: "demo", examples: examples(8) };
  assert.equal(checkSubmission(probe), { ...probe, ...common });
  const sae = { operation: "sae", model: "demo", examples: examples(8, false) };
  assert.equal(checkSubmission(sae), { ...sae, ...common, features: 64, steps: 100 });
  assert.equal(defaults.layers, [0], "filling in shares nothing with the defaults");
  (checkSubmission(base) as InspectConfig).layers.push(7);
  assert.equal((checkSubmission(base) as InspectConfig).layers, [0]);
});

test("a saved config is a valid submission again", () => {
  for (const body of [base, { operation: "sae", model: "m", examples: examples(12) }]) {
    const config = checkSubmission(body);
    assert.equal(checkSubmission(JSON.parse(JSON.stringify(config))), config);
  }
});

test("each fault is one sentence with the limit and the actual value", () => {
  const cases: [unknown, string][] = [
    [null, "The body must be a JSON object."],
    [[], "The body must be a JSON object."],
    ["x", "The body must be a JSON object."],
    [
      {},
      "operation is required; one of inspect, compare, probe, sae, features, extract, drift, patch_sweep, explain, graph.",
    ],
    [
      { operation: "train" },
      'operation: must be one of inspect, compare, probe, sae, features, extract, drift, patch_sweep, explain, graph, got "train".',
    ],
    [
      { operation: {} },
      "operation: must be one of inspect, compare, probe, sae, features, extract, drift, patch_sweep, explain, graph, got an object.",
    ],
    [{ operation: "inspect", model: "m" }, "prompt or tokens is required."],
    [{ ...base, tokens: [1] }, "tokens: cannot be combined with prompt: give one of the two."],
    [{ operation: "inspect" }, "model is required."],
    [{ ...base, model: "" }, "model: must not be empty."],
    [{ ...base, model: 3 }, "model: must be a string, got 3."],
    [{ ...base, prompt: "" }, "prompt: must not be empty."],
    [{ ...base, layers: [] }, "layers: at least 1 index, got 0."],
    [{ ...base, layers: [0, 1, 2, 3, 4, 5, 6, 7, 8] }, "layers: at most 8 indices, got 9."],
    [{ ...base, layers: [256] }, "layers[0]: at most 255, got 256."],
    [{ ...base, layers: [1, -1] }, "layers[1]: at least 0, got -1."],
    [{ ...base, layers: [1.5] }, "layers[0]: must be an integer, got 1.5."],
    [{ ...base, layers: [2 ** 60] }, `layers[0]: at most 255, got ${2 ** 60}.`],
    [{ ...base, layers: ["0"] }, 'layers[0]: must be an integer, got "0".'],
    [{ ...base, layers: [3, 1, 3] }, "layers: 3 appears twice."],
    [{ ...base, layers: 3 }, "layers: must be an array, got 3."],
    [{ ...base, max_input_tokens: 0 }, "max_input_tokens: at least 1, got 0."],
    [{ ...base, max_input_tokens: 1025 }, "max_input_tokens: at most 1024, got 1025."],
    [{ ...base, max_tokens: 129 }, "max_tokens: at most 128, got 129."],
    [{ ...base, seed: 2147483648 }, "seed: at most 2147483647, got 2147483648."],
    [{ ...base, seed: null }, "seed: must be an integer, got null."],
    [
      { ...base, prompt: "\ud800" },
      "prompt: must be well-formed Unicode; it contains an unpaired surrogate.",
    ],
  ];
  for (const [body, expected] of cases) assert.is(sentence(body), expected);
  assert.match(sentence({ ...base, bogus: 1 }), 'unknown field "bogus"; accepted are operation, model, ');
  assert.match(sentence({ ...base, strengths: [1] }), 'unknown field "strengths"');
  assert.match(
    sentence(JSON.parse(`{"__proto__":1,"operation":"inspect","model":"m","prompt":"p"}`)),
    "__proto__",
  );
});

test("compare: the required fields of each intervention", () => {
  const compare = { ...base, operation: "compare" };
  const swap = { intervention: "swap", swap: ["a", "b"] };
  const steer = { intervention: "steer", positive: "a", negative: "b" };
  const clamp = { ...steer, intervention: "clamp", max: 1 };
  const cases: [object, string][] = [
    [
      { intervention: "noise" },
      'intervention: must be scale, ablate, patch, steer, project_out, clamp or swap, got "noise".',
    ],
    [{ intervention: "patch" }, "donor_prompt is required for patch."],
    [{ intervention: "steer" }, "positive is required for steer."],
    [{ intervention: "steer", positive: "a" }, "negative is required for steer."],
    [
      { intervention: "steer", positive: "a", negative: "a" },
      "negative: must differ from positive: two equal texts define no direction.",
    ],
    [{ intervention: "project_out", positive: "a" }, "negative is required for project_out."],
    [{ intervention: "steer", positives: ["a"] }, "negatives is required with positives."],
    [
      { intervention: "steer", positives: ["a"], negatives: ["b", "a"] },
      "negatives[1]: is also in positives.",
    ],
    [
      { intervention: "steer", positives: ["a"], negatives: ["b"], positive: "c" },
      "positive: cannot be combined with positives and negatives.",
    ],
    [
      { intervention: "steer", positives: Array(257).fill("a"), negatives: ["b"] },
      "positives: at most 256 texts, got 257.",
    ],
    [
      { positives: ["a"], negatives: ["b"] },
      "positives: belongs to steer, project_out and clamp, not to scale.",
    ],
    [
      { controls: true },
      "controls: are available for patch, steer, project_out, clamp and swap, not for scale.",
    ],
    [{ prompt: undefined }, "prompt or prompts is required."],
    [{ intervention: "ablate", min: 1 }, "min: belongs to clamp, not to ablate."],
    [{ ...clamp, max: undefined }, "min or max is required for clamp."],
    [{ ...clamp, min: 2 }, "min: must not exceed max, got 2 and 1."],
    [{ ...clamp, max: 1_000_001 }, "max: at most 1000000, got 1000001."],
    [{ strength_unit: "vector" }, "strength_unit: vector applies to steer and clamp, not to scale."],
    [{ strength_unit: "mile" }, 'strength_unit: must be unit, vector or row_norm, got "mile".'],
    [{ ...steer, strengths: [-6] }, "strengths[0]: at least -5, got -6."],
    [{ ...steer, strength_unit: "vector", strengths: [1, 101] }, "strengths[1]: at most 100, got 101."],
    [{ ...steer, strength_unit: "row_norm", strengths: [10.5] }, "strengths[0]: at most 10, got 10.5."],
    [
      { ...clamp, strength_unit: "vector", strengths: [1, 1.5] },
      "strengths[1]: at most 1 for clamp, whose strength is the share of the correction; got 1.5.",
    ],
    [
      { ...clamp, strengths: [-0.5] },
      "strengths[0]: at least 0 for clamp, whose strength is the share of the correction; got -0.5.",
    ],
    [{ positions: [[3, 2]] }, "positions[0]: must not start after its end, got 3 and 2."],
    [{ positions: [[3, 0]] }, "positions[0]: must not start after its end, got 3 and 0."],
    [{ positions: [[-1, -2]] }, "positions[0]: must not start after its end, got -1 and -2."],
    [
      { intervention: "steer", feature: ["gemma", 7], positive: "a" },
      "positive: cannot be combined with feature.",
    ],
    [
      { intervention: "steer", feature: [7, "gemma"] },
      "feature: must be a dictionary's name followed by a feature's index.",
    ],
    ...(["gemma", 7] as const).map((word): [object, string] => [
      { intervention: "steer", feature: [word, word] },
      "feature: must be a dictionary's name followed by a feature's index.",
    ]),
    ...(["positive", "negative"] as const).map((side): [object, string] => [
      { intervention: "clamp", max: 1, feature: ["gemma", 7], [side]: "a" },
      `${side}: cannot be combined with feature.`,
    ]),
    ...(["positives", "negatives"] as const).map((side): [object, string] => [
      { intervention: "project_out", feature: ["gemma", 7], [side]: ["a"] },
      `${side}: cannot be combined with feature.`,
    ]),
    [
      { intervention: "clamp", max: 1, feature: ["gemma", 7], strength_unit: "unit" },
      "strength_unit: does not apply to clamping a feature: min and max bound its activation.",
    ],
    [{ feature: ["gemma", 7] }, "feature: belongs to steer, project_out and clamp, not to scale."],
    [{ intervention: "steer", negatives: ["a"] }, "positives is required with negatives."],
    [
      { intervention: "ablate", controls: true },
      "controls: are available for patch, steer, project_out, clamp and swap, not for ablate.",
    ],
    [{ intervention: "swap" }, "swap is required for swap."],
    [{ swap: ["a", "b"] }, "swap: belongs to swap, not to scale."],
    [{ lens: "demo" }, "lens: belongs to swap, not to scale."],
    [{ ...swap, swap: ["a"] }, "swap: at least 2 entries, got 1."],
    [{ ...swap, swap: ["a", "b", "c"] }, "swap: at most 2 entries, got 3."],
    ...["all", "generated"].map((positions): [object, string] => [
      { ...swap, positions },
      `positions: must be last, prompt or ranges for a swap, which edits prompt tokens only; got ${positions}.`,
    ]),
    ...["block_in", "attn_out", "mid", "ffn_out", "head_out"].map((point): [object, string] => [
      { ...swap, point },
      "point: cannot be set for a swap: a lens reads block outputs only.",
    ]),
    [
      { ...swap, positive: "a", positives: ["a"] },
      "positives: belongs to steer, project_out and clamp, not to swap.",
    ],
    [{ ...swap, min: 1 }, "min: belongs to clamp, not to swap."],
    [{ ...swap, strengths: [5.5] }, "strengths[0]: at most 5, got 5.5."],
    [{ heads: [0] }, "heads: requires point head_out."],
    [{ heads: [0], point: "attn_out" }, "heads: requires point head_out."],
    ...["steer", "project_out", "clamp"].map((intervention): [object, string] => [
      {
        intervention,
        positive: "a",
        negative: "b",
        max: intervention === "clamp" ? 1 : undefined,
        point: "head_out",
      },
      `point: head_out is for scale, ablate and patch, not for ${intervention}.`,
    ]),
    [{ positions: Array(17).fill([0, 1]) }, "positions: at most 16 entries, got 17."],
    [{ strengths: [] }, "strengths: at least 1 number, got 0."],
    [{ strengths: Array(10).fill(1) }, "strengths: at most 9 numbers, got 10."],
    [{ strengths: [5.1] }, "strengths[0]: at most 5, got 5.1."],
    [{ strengths: [JSON.parse("1e999")] }, "strengths[0]: must be a number, got Infinity."],
    [{ prompts: Array(33).fill("p") }, "prompts: at most 32 prompts, got 33."],
    [{ prompts: [""] }, "prompts[0]: must not be empty."],
    [{ target_token: "" }, "target_token: must not be empty."],
  ];
  for (const [more, expected] of cases) assert.is(sentence({ ...compare, ...more }), expected);
  for (const accepted of [
    { intervention: "patch", donor_prompt: "d" },
    swap,
    { ...swap, controls: true, lens: "demo", point: "block_out", strengths: [-5, 5], layers: [4, 5] },
    ...["last", "prompt", [[0, 3]]].map((positions) => ({ ...swap, positions })),
    ...["scale", "ablate"].map((intervention) => ({ intervention, point: "head_out", heads: [0, 255] })),
    { intervention: "patch", donor_prompt: "d", point: "head_out" },
    { intervention: "steer", positive: "a", negative: "b" },
    { ...steer, strength_unit: "vector", strengths: [-100, 100], positions: "all", controls: true },
    {
      ...steer,
      positions: [
        [0, 3],
        [-2, -1],
        [4, -1],
      ],
      strength_unit: "row_norm",
      strengths: [10],
    },
    { ...steer, positions: [[0, -1]] },
    {
      ...steer,
      positions: [
        [2, 2],
        [-1, -1],
      ],
    },
    { intervention: "patch", donor_prompt: "d", controls: true },
    { ...clamp, min: 1 },
    { intervention: "steer", feature: ["gemma", 7], strength_unit: "unit" },
    { intervention: "clamp", max: 1, feature: ["gemma", 7] },
    { intervention: "project_out", positives: ["a", "b"], negatives: ["c"] },
    clamp,
    { ...clamp, min: -1, strength_unit: "row_norm" },
    { strength_unit: "unit", positions: "generated", controls: false },
    { strengths: [-5, 5, 5], prompts: ["a", "a"], target_token: " Paris" },
  ]) {
    assert.is(sentence({ ...compare, ...accepted }), "accepted");
  }
  for (const positions of ["first", 3, [[1]], [[0, 1, 2]], [[0, 1.5]], [0, 1], [], null, [[0, 4096]]]) {
    assert.match(sentence({ ...compare, positions }), /^positions/);
  }
  const { prompt: _prompt, ...without } = compare;
  assert.is(sentence({ ...without, prompts: ["a"] }), "accepted");
});

test("probe: splits, classes, duplicates", () => {
  const probe = (list: unknown) => sentence({ operation: "probe", model: "m", examples: list });
  assert.is(probe(examples(8)), "accepted");
  assert.is(probe(examples(512)), "accepted");
  assert.is(probe(examples(513)), "examples: at most 512 examples, got 513.");
  assert.is(probe(examples(7)), "examples: at least 8 examples, got 7.");
  const skewed = examples(16).map((example, index) => ({ ...example, split: index < 13 ? "train" : "test" }));
  assert.is(probe(skewed), "examples: at least 4 with split test, got 3.");
  const oneClass = examples(8).map((example) =>
    example.split === "test" ? { ...example, label: 1 } : example,
  );
  assert.is(probe(oneClass), "examples: both classes must occur in each split; test has no label 0.");
  const leaked = examples(8).map((example, index) =>
    index === 6 ? { ...example, text: "text 0" } : example,
  );
  assert.is(probe(leaked), "examples[6].text: occurs in both splits; held-out texts must be new.");
  const twice = examples(9).map((example, index) => (index === 8 ? { ...example, text: "text 0" } : example));
  assert.is(probe(twice), "accepted", "the same text twice in one split is the user's business");
  assert.is(
    probe([...examples(8), { text: "x", label: 2, split: "test" }]),
    "examples[8].label: must be 0 or 1, got 2.",
  );
  assert.match(probe([...examples(8), { text: "x", split: "test" }]), "examples[8]: label is required.");
  assert.match(
    probe([...examples(8), { text: "x", label: 1, split: "dev" }]),
    "examples[8].split: must be train or test",
  );
  assert.is(sentence({ operation: "probe", model: "m" }), "examples is required.");
});

test("drift: separation needs both classes; k is bounded by the features", () => {
  const drift = (labels: (0 | 1 | undefined)[], more: object = {}) =>
    sentence({
      ...{ operation: "drift", model: "m", other: "n", ...more },
      examples: labels.map((label, index) => ({
        text: `t${index}`,
        ...(label === undefined ? {} : { label }),
      })),
    });
  assert.is(drift([undefined, undefined]), "accepted");
  assert.is(drift([0, 0]), "accepted");
  for (const field of ["probe", "vector"]) {
    const with_ = { [field]: "p" };
    assert.is(drift([0, 1], with_), "accepted");
    assert.is(drift([0, undefined, 1], with_), `examples[1].label is required with ${field}.`);
    assert.is(drift([undefined, 1], with_), `examples[0].label is required with ${field}.`);
    assert.is(drift([1, 1], with_), `examples: must contain both classes with ${field}; none has label 0.`);
    assert.is(drift([0, 0], with_), `examples: must contain both classes with ${field}; none has label 1.`);
  }
  assert.throws(
    () => checkSaeSettings({ architecture: "topk", k: 1 } as never),
    saying("k: must be at most the number of features (0), got 1."),
  );
});

test("inspect follows one token; features read one prompt or texts", () => {
  const both = { ...base, target_token: " Paris", follow_answer: true };
  assert.is(
    sentence(both),
    "follow_answer: cannot be combined with target_token: they track different tokens.",
  );
  assert.is(sentence({ ...both, follow_answer: false }), "accepted");
  assert.is(sentence({ ...base, follow_answer: true }), "accepted");
  const features = { operation: "features", model: "demo", dictionary: "gemma" };
  assert.is(sentence({ ...features, prompt: "a" }), "accepted");
  assert.is(sentence({ ...features, texts: ["a"] }), "accepted");
  for (const neither of [{}, { prompt: "a", texts: ["a"] }]) {
    assert.is(sentence({ ...features, ...neither }), "prompt or texts is required, but not both.");
  }
  const pages = { ...features, texts: ["a"], pages: [1] };
  assert.is(sentence({ ...pages, labels: "https://example.org/labels" }), "accepted");
  assert.is(sentence({ ...pages, labels: "/labels.jsonl" }), "accepted");
  assert.match(sentence({ ...pages, labels: "labels.jsonl" }), /^labels: must be an absolute path/);
  const unpaged = sentence({ ...features, texts: ["a"], labels: "https://example.org/labels" });
  assert.is(unpaged, "labels: requires pages.");
});

test("patch_sweep: two prompts or pairs, any layers, positions from either end", () => {
  const capitals = { clean: "a", corrupted: "b" };
  const patch = (body: object) => sentence({ operation: "patch_sweep", model: "demo", ...body });
  assert.equal(checkSubmission({ operation: "patch_sweep", model: "demo", ...capitals }), {
    operation: "patch_sweep",
    model: "demo",
    ...capitals,
    max_input_tokens: 256,
    seed: 0,
    direction: "denoise",
    controls: true,
    points: ["block_out"],
  });
  // Settings of the whole apply to each pair unless it has its own.
  const whole = { operation: "patch_sweep", model: "demo", target_token: "x", foil_token: "y" };
  const own = { ...capitals, target_token: "z" };
  const swept = checkSubmission({ ...whole, pairs: [capitals, own] }) as PatchSweepConfig;
  assert.equal(promptPairs(swept), [
    { ...capitals, target_token: "x", foil_token: "y" },
    { ...own, foil_token: "y" },
  ]);
  const single = checkSubmission({ ...whole, ...capitals }) as PatchSweepConfig;
  assert.equal(promptPairs(single), [{ ...capitals, target_token: "x", foil_token: "y" }]);
  const bare = checkSubmission({
    operation: "patch_sweep",
    model: "demo",
    pairs: [capitals],
  }) as PatchSweepConfig;
  assert.equal(promptPairs(bare), [capitals]);
  const points = ["attn_out", "ffn_out", "mid", "block_in", "block_out"];
  assert.is(patch({ ...capitals, points }), "accepted");
  const odd =
    'points[0]: must be block_in, head_out, attn_out, mid, ffn_in, ffn_out or block_out, got "head_in".';
  assert.is(patch({ ...capitals, points: ["head_in"] }), odd);
  assert.is(patch({ ...capitals, points: [] }), "points: at least 1 entry, got 0.");
  assert.is(patch({ ...capitals, points: ["attn_out", "head_out"], heads: [0, 3] }), "accepted");
  assert.is(patch({ ...capitals, heads: [0] }), "heads: requires point head_out.");
  assert.is(patch({ ...capitals, points: ["head_out"], heads: [1, 1] }), "heads: 1 appears twice.");
  assert.is(patch({ ...capitals, positions: "aligned" }), "accepted");
  assert.is(patch({ ...capitals, positions: [2, 2] }), "positions: 2 appears twice.");
  assert.is(
    patch({ ...capitals, positions: "last" }),
    'positions: must be "aligned" or an array, got "last".',
  );
  const examples = Array.from({ length: 8 }, (_, i) => ({
    ...{ text: `text ${i}`, label: i % 2, split: i < 4 ? "train" : "test" },
  }));
  for (const operation of ["probe", "sae", "extract"]) {
    const body = { operation, model: "demo", examples };
    assert.is(sentence({ ...body, point: "mid" }), "accepted");
    assert.is(
      sentence({ ...body, point: "head_out" }),
      'point: must be block_in, attn_out, mid, ffn_in, ffn_out or block_out, got "head_out".',
    );
  }
  const inside = { operation: "inspect", model: "demo", prompt: "a" };
  assert.is(sentence({ ...inside, points: points.slice(0, 4), decompose: true }), "accepted");
  assert.is(
    sentence({ ...inside, points: ["block_out"] }),
    'points[0]: must be block_in, attn_out, mid, ffn_in or ffn_out, got "block_out".',
  );
  assert.is(patch({ ...capitals, layers: [...Array(256).keys()], positions: [0, -1] }), "accepted");
  assert.is(patch({ pairs: Array(64).fill(capitals), target_token: " x" }), "accepted");
  assert.is(patch({ clean: "a" }), "corrupted is required with clean.");
  assert.is(patch({ corrupted: "a" }), "clean and corrupted are required, unless pairs is given.");
  assert.is(patch({ ...capitals, pairs: [capitals] }), "clean: cannot be combined with pairs.");
  assert.is(
    patch({ ...capitals, target_token: "x", foil_token: "x" }),
    "foil_token: must differ from target_token.",
  );
  assert.is(
    patch({ pairs: [capitals, { ...capitals, foil_token: "x" }], target_token: "x" }),
    "pairs[1].foil_token: must differ from target_token.",
  );
  assert.is(patch({ pairs: Array(65).fill(capitals) }), "pairs: at most 64 entries, got 65.");
  assert.match(patch({ ...capitals, max_tokens: 3 }), /^unknown field "max_tokens"/);
  assert.is(patch({ ...capitals, direction: "both" }), 'direction: must be denoise or noise, got "both".');
});

test("explain: a template that has the marker once, and samples that differ", () => {
  const body = {
    operation: "explain",
    model: "demo",
    prompt: "a",
    layer: 3,
    template: "What is X?",
    marker: "X",
  };
  const explain = (more: object) => sentence({ ...body, ...more });
  assert.equal(checkSubmission(body), {
    ...body,
    ...{ max_input_tokens: 256, seed: 0, positions: [-1], samples: 1, temperature: 0 },
    ...{ description_tokens: 128, controls: true },
  });
  assert.is(
    explain({ template: "What?" }),
    'template: must contain the marker "X" exactly once, got 0 times.',
  );
  assert.is(
    explain({ template: "X is X" }),
    'template: must contain the marker "X" exactly once, got 2 times.',
  );
  assert.is(
    explain({ samples: 2 }),
    "samples: must be 1 at temperature 0, where all descriptions are identical, got 2.",
  );
  assert.is(explain({ samples: 8, temperature: 2, description_tokens: 512, length: 80_000 }), "accepted");
  assert.is(explain({ verbaliser_revision: "main" }), "verbaliser_revision: requires verbaliser.");
  assert.is(explain({ verbaliser: "other", verbaliser_revision: "main" }), "accepted");
  assert.is(explain({ positions: [0, 0] }), "positions: 0 appears twice.");
  assert.is(explain({ positions: [...Array(17).keys()] }), "positions: at most 16 entries, got 17.");
  assert.is(explain({ length: 0 }), "length: must be above 0, got 0.");
  assert.match(explain({ layers: [3] }), /^unknown field "layers"/);
  const { marker: _marker, ...unmarked } = body;
  assert.is(sentence(unmarked), "marker is required.");
});

test("sae: labels are not needed; features and steps have limits", () => {
  const sae = (more: object) =>
    sentence({ operation: "sae", model: "m", examples: examples(8, false), ...more });
  assert.is(sae({}), "accepted");
  assert.is(sae({ examples: examples(8) }), "accepted");
  assert.is(sae({ features: 7 }), "features: at least 8, got 7.");
  assert.is(sae({ features: 513 }), "features: at most 512, got 513.");
  assert.is(sae({ steps: 0 }), "steps: at least 1, got 0.");
  assert.is(sae({ steps: 501 }), "steps: at most 500, got 501.");
  const leaked = examples(8, false).map((example, index) =>
    index === 7 ? { ...example, text: "text 1" } : example,
  );
  assert.is(
    sae({ examples: leaked }),
    "examples[7].text: occurs in both splits; held-out texts must be new.",
  );
});

test("sae: only the two top-k architectures have k, at most the feature count", () => {
  const sae = (more: object) =>
    sentence({ operation: "sae", model: "m", from: "/rows", features: 32, ...more });
  for (const architecture of ["topk", "batchtopk"]) {
    assert.is(sae({ architecture, k: 32 }), "accepted");
    assert.is(sae({ architecture, k: 33 }), "k: must be at most the number of features (32), got 33.");
  }
  assert.is(sae({ architecture: "jumprelu", k: 4 }), "k: applies to topk and batchtopk, not to jumprelu.");
  assert.is(sae({ k: 4 }), "k: applies to topk and batchtopk, not to relu.");
});

test("property: every valid submission is accepted, and its config is a fixed point", () => {
  fc.assert(
    fc.property(validSubmission, (body) => {
      const config = checkSubmission(body);
      assert.equal(checkSubmission(JSON.parse(JSON.stringify(config))), config);
      for (const [name, value] of Object.entries(body)) assert.equal(config[name as keyof Config], value);
    }),
    { numRuns: 1500 },
  );
});

test("property: any JSON is accepted or refused with one sentence", () => {
  let accepted = 0;
  let refused = 0;
  fc.assert(
    fc.property(fc.oneof(anyBody, nearlyValid), (body) => {
      const text = sentence(body);
      if (text === "accepted") accepted++;
      else refused++;
      assert.not.match(text, "\n");
      assert.ok(text === "accepted" || text.endsWith("."), text);
      assert.ok(text.length < 400, text);
    }),
    { numRuns: 5000 },
  );
  assert.ok(accepted > 100 && refused > 1000, `${accepted} accepted, ${refused} refused`);
});

test("every limit is a positive integer", () => {
  for (const [name, value] of Object.entries(limits)) assert.ok(Number.isInteger(value) && value > 0, name);
});

test.run();
