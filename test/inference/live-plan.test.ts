/** What a `tapline` object becomes before the engine has it: every plan by hand, on a library of a few vectors. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { LiveRequest } from "../../src/contracts/live.js";
import { UserError } from "../../src/contracts/user-error.js";
import type { HttpError } from "../../src/http/index.js";
import type { LiveLibrary } from "../../src/inference/live/library.js";
import { livePlan } from "../../src/inference/live/plan.js";

const model = { id: "m", fingerprint: "f", nEmbd: 2, nLayer: 4 };
const weights: Record<string, Float64Array> = {
  truth: Float64Array.of(1, 2),
  calm: Float64Array.of(3, 4),
};
const at = (layer: number) => Float32Array.of(layer, 1);
const place = { dictionary: { path: "d" } as never, index: 7 };
let looked: unknown[][] = [];
test.before.each(() => {
  looked = [];
});

const absent = (what: string) => {
  throw new UserError(`There is no ${what}.`);
};
const library = {
  model,
  vectors: {
    layers: async (name: string) => (name === "nobody" ? absent("vector named nobody") : [1, 3]),
    layer: async (name: string, layer: number, of: unknown) => {
      looked.push(["vector", name, layer, of]);
      if (layer === 2) absent("layer 2");
      return { vector: at(layer), sha256: `${name}${layer}` };
    },
  },
  probes: {
    folded: async (name: string, of: unknown) => {
      looked.push(["probe", name, of]);
      const weight = weights[name] ?? absent(`probe named ${name}`);
      return { layer: name === "truth" ? 1 : 2, weight, bias: -0.5 };
    },
  },
  dictionaries: {
    get: async () => ({ layer: 3 }),
    direction: async (...given: unknown[]) => {
      looked.push(["feature", ...given]);
      return { vector: at(9), sha256: "hash", feature: place };
    },
  },
} as unknown as LiveLibrary;

const plan = (request: unknown, chat = false) => livePlan(request as LiveRequest, library, chat);
const one = (...interventions: object[]) => plan({ interventions });
const refusal = (request: unknown, chat = false) =>
  plan(request, chat).then(
    () => "taken",
    ({ status, param, message }: HttpError) => {
      assert.is(status, 400, message);
      return `${param} | ${message}`;
    },
  );
const labelled = async (...interventions: object[]) =>
  (await one(...interventions)).labels!.map((label) => JSON.parse(label));

test("an empty request has an empty plan", async () => {
  assert.equal(await plan({}), {
    ...{ edits: [], gates: [], labels: [], conditions: [], stop: -1, probes: [], pair: false },
  });
  assert.is((await plan({ pair: true })).pair, true);
  assert.is((await plan({ pair: false })).pair, false);
});

test("an intervention at the layers that it names, or at those that its vector has", async () => {
  const steer = { kind: "steer", vector: "v" };
  for (const [more, layers] of [
    [{}, [1, 3]],
    [{ layer: 3 }, [3]],
    [{ layer: 0 }, [0]],
    [{ layers: [3, 0] }, [3, 0]],
  ] as const) {
    const { edits, gates, labels } = await one({ ...steer, ...more });
    assert.equal(
      edits!.map(({ layer, vector }) => [layer, vector]),
      layers.map((layer) => [layer, at(layer)]),
    );
    assert.equal([gates, labels!.length], [layers.map(() => -1), layers.length]);
  }
  assert.equal(looked[0], ["vector", "v", 1, model]);
  looked = [];
  const { edits } = await one({ kind: "steer", vector: { feature: ["d", 7] } });
  assert.equal(edits, [{ layer: 3, positions: "all", vector: at(9), strength: 1, unit: "unit" }]);
  assert.equal(looked, [["feature", "d", 7, 3, model, undefined]]);
  looked = [];
  await one({ kind: "steer", vector: { feature: ["d", 7] }, point: "mid" });
  assert.equal(looked, [["feature", "d", 7, 3, model, "mid"]], "a dictionary of another point is refused");
});

test("a minimal intervention uses the defaults, and the answer names them", async () => {
  assert.equal(await labelled({ kind: "steer", vector: "v", layer: 1 }), [
    {
      kind: "steer",
      layer: 1,
      vector: "v",
      sha256: "v1",
      strength: 1,
      strength_unit: "unit",
      positions: "all",
    },
  ]);
  assert.equal(
    await labelled({
      kind: "steer",
      vector: "v",
      layer: 1,
      strength: 0,
      strength_unit: "row_norm",
      positions: "last",
    }),
    [
      {
        kind: "steer",
        layer: 1,
        vector: "v",
        sha256: "v1",
        strength: 0,
        strength_unit: "row_norm",
        positions: "last",
      },
    ],
  );
  assert.equal(await labelled({ kind: "scale", layer: 2, strength: 0.5 }), [
    { kind: "scale", layer: 2, strength: 0.5, positions: "all" },
  ]);
  assert.equal(await labelled({ kind: "ablate", layer: 2 }), [
    { kind: "ablate", layer: 2, strength: 1, positions: "all" },
  ]);
  // A donor goes in as it is, and a feature is held at an activation: neither has a unit.
  assert.equal(await labelled({ kind: "patch", vector: "v", layer: 1 }), [
    { kind: "patch", layer: 1, vector: "v", sha256: "v1", strength: 1, positions: "all" },
  ]);
  const held = { kind: "clamp", vector: { feature: ["d", 7] }, min: 0, max: 4 };
  assert.equal(await labelled(held), [
    {
      ...{
        kind: "clamp",
        layer: 3,
        vector: { feature: ["d", 7] },
        sha256: "hash",
        strength: 1,
        min: 0,
        max: 4,
      },
      positions: "all",
    },
  ]);
  assert.equal((await one(held)).edits, [
    {
      ...{ layer: 3, positions: "all", vector: at(9), kind: "hold", feature: place, strength: 1 },
      ...{ min: 0, max: 4 },
    },
  ]);
  assert.equal(await labelled({ kind: "clamp", vector: "v", layer: 1, max: -1 }), [
    {
      ...{ kind: "clamp", layer: 1, vector: "v", sha256: "v1", strength: 1, max: -1, strength_unit: "unit" },
      positions: "all",
    },
  ]);
  assert.equal(await labelled({ kind: "project_out", vector: "v", layer: 1, positions: [[0, 2]] }), [
    {
      kind: "project_out",
      layer: 1,
      vector: "v",
      sha256: "v1",
      strength: 1,
      strength_unit: "unit",
      positions: [[0, 2]],
    },
  ]);
});

test("conditions are separate, probes read once, and edits wait for theirs", async () => {
  const { conditions, gates, probes, stop, edits } = await plan({
    interventions: [
      { kind: "ablate", layers: [0, 2], when: { probe: "truth", above: 0, for: 3 } },
      { kind: "ablate", layer: 1 },
      { kind: "ablate", layer: 1, when: { probe: "calm", below: 0.25 } },
    ],
    stop_when: { probe: "truth", below: 0.75, for: 2 },
    watch: { probes: ["calm"] },
  });
  assert.equal(conditions, [
    { probe: 0, bound: 0, above: true, tokens: 3 },
    { probe: 1, bound: 0.25, above: false, tokens: 1 },
    { probe: 0, bound: 0.75, above: false, tokens: 2 },
  ]);
  assert.equal([gates, stop, edits!.length], [[0, 0, -1, 1], 2, 4]);
  assert.equal(probes, [
    { name: "truth", layer: 1, weight: weights.truth!, bias: -0.5 },
    { name: "calm", layer: 2, weight: weights.calm!, bias: -0.5 },
  ]);
  assert.equal(looked, [
    ["probe", "truth", model],
    ["probe", "calm", model],
  ]);
  const both = "exactly one of above and below is required.";
  const ablate = { kind: "ablate", layer: 0 };
  for (const [request, sentence] of [
    [{ stop_when: { probe: "truth" } }, `tapline.stop_when | tapline.stop_when: ${both}`],
    [{ stop_when: { probe: "truth", above: 0, below: 0 } }, `tapline.stop_when | tapline.stop_when: ${both}`],
    [
      { interventions: [ablate, { ...ablate, when: { probe: "truth" } }] },
      `tapline.interventions[1].when | tapline.interventions[1].when: ${both}`,
    ],
    [
      { interventions: [{ ...ablate, when: { probe: "x", above: 1 } }] },
      "tapline.interventions[0].when.probe | tapline.interventions[0].when.probe: There is no probe named x.",
    ],
    [
      { stop_when: { probe: "x", above: 1 } },
      "tapline.stop_when.probe | tapline.stop_when.probe: There is no probe named x.",
    ],
  ] as const) {
    assert.is(await refusal(request), sentence);
  }
});

test("a missing or superfluous field of an intervention is refused by name", async () => {
  const path = "tapline.interventions[0]";
  const unit = (kind: string) =>
    `.strength_unit | ${path}.strength_unit: not supported for ${kind}, only for steer and clamp.`;
  const meaningless = `.strength_unit | ${path}.strength_unit is not supported when clamping a feature: min and max bound its activation.`;
  const alone = (kind: string) => `.min | ${path}: min and max are supported for clamp, not for ${kind}.`;
  const needs = (kind: string) => [{ kind, layer: 0 }, `.vector | ${path}.vector is required for ${kind}.`];
  const takesNone = (kind: string) => [
    { kind, layer: 0, vector: "v", strength: 1 },
    `.vector | ${path}.vector: ${kind} takes no vector.`,
  ];
  const v = { vector: "v", layer: 0 };
  const f = { vector: { feature: ["d", 7] } };
  const order = `.vector | ${path}.vector.feature must be [dictionary, index], in this order.`;
  const none = (layer: number) => `layer ${layer} does not exist; the model has layers 0 to 3.`;
  for (const [intervention, sentence] of [
    ...["steer", "patch", "project_out", "clamp"].map(needs),
    ...["scale", "ablate"].map(takesNone),
    [
      { kind: "ablate", layer: 0, layers: [0] },
      `.layers | ${path}: layer and layers are mutually exclusive.`,
    ],
    [{ kind: "scale", layer: 0 }, `.strength | ${path}.strength is required for scale.`],
    [{ kind: "scale", layer: 0, strength: 1, strength_unit: "unit" }, unit("scale")],
    [{ kind: "ablate", layer: 0, strength_unit: "unit" }, unit("ablate")],
    [{ kind: "patch", ...v, strength_unit: "unit" }, unit("patch")],
    [{ kind: "project_out", ...v, strength_unit: "unit" }, unit("project_out")],
    [{ kind: "clamp", ...f, max: 1, strength_unit: "unit" }, meaningless],
    [{ kind: "steer", ...v, min: 0 }, alone("steer")],
    [{ kind: "ablate", layer: 0, max: 0 }, alone("ablate")],
    ...[-0.5, 1.5].map((strength): [object, string] => [
      { kind: "clamp", ...v, max: 1, strength },
      `.strength | ${path}.strength: must be from 0 to 1 for clamp (the share of the correction), got ${strength}.`,
    ]),
    [{ kind: "clamp", ...v }, `.min | ${path}: a clamp needs min or max.`],
    [{ kind: "clamp", ...v, min: 2, max: 1 }, `.min | ${path}: min (2) must not exceed max (1).`],
    [{ kind: "ablate" }, `.layer | ${path}: layer or layers is required.`],
    [{ kind: "ablate", layer: 4 }, `.layer | ${path}.layer: ${none(4)}`],
    [{ kind: "ablate", layers: [3, 5] }, `.layers | ${path}.layers: ${none(5)}`],
    [{ kind: "steer", vector: { feature: [7, "d"] } }, order],
    [{ kind: "steer", vector: { feature: ["d", "e"] } }, order],
    [{ kind: "steer", layer: 0, vector: { feature: [7, 7] } }, order],
    [{ kind: "steer", vector: "nobody" }, `.vector | ${path}.vector: There is no vector named nobody.`],
    [{ kind: "steer", vector: "v", layer: 2 }, `.vector | ${path}.vector: There is no layer 2.`],
  ] as [object, string][]) {
    assert.is(await refusal({ interventions: [intervention] }), `${path}${sentence}`);
  }
  for (const intervention of [
    { kind: "clamp", ...v, min: 1, max: 1, strength_unit: "vector" },
    { kind: "clamp", ...v, min: 1 },
    { kind: "clamp", ...v, min: 1, strength: 0.5 },
    { kind: "steer", ...f, strength_unit: "vector" },
    { kind: "scale", layer: 3, strength: 0 },
  ]) {
    assert.is(await refusal({ interventions: [intervention] }), "taken", JSON.stringify(intervention));
  }
});

test("thinking and answer are parts of a chat's answer, and of nothing else's", async () => {
  const ablate = { kind: "ablate", layer: 0 };
  for (const positions of ["thinking", "answer"]) {
    const told = (path: string) => `${path} | ${path}: ${positions} is available only in chats.`;
    const watch = { layers: [0], norms: true, positions };
    const interventions = [ablate, { ...ablate, positions }];
    assert.is(await refusal({ watch }), told("tapline.watch.positions"));
    assert.is(await refusal({ interventions }), told("tapline.interventions[1].positions"));
    assert.equal((await plan({ watch, interventions }, true)).watch?.positions, positions);
  }
  assert.is(await refusal({ watch: { layers: [0], norms: true, positions: "generated" } }), "taken");
});

test("a watch reads generated tokens by default, and only what was requested", async () => {
  const watch = async (asked: object) => (await plan({ watch: asked })).watch;
  const usual = { layers: [], positions: "generated", norms: false, probes: false, projections: [] };
  assert.equal(await watch({ layers: [0, 3], norms: true }), { ...usual, layers: [0, 3], norms: true });
  assert.equal(await watch({ layers: [1], lens: 3, positions: "all" }), {
    ...{ ...usual, layers: [1], lensTop: 3, positions: "all" },
  });
  assert.equal(await watch({ layers: [1], states: true }), { ...usual, layers: [1] });
  const { probes, watch: scored } = await plan({ watch: { probes: ["calm", "truth"] } });
  assert.equal(scored, { ...usual, probes: true });
  assert.equal(
    probes!.map(({ name }) => name),
    ["calm", "truth"],
  );
  const projected = (name: string, layer: number) => ({ name, layer, vector: at(layer) });
  assert.equal((await watch({ projections: ["v"] }))?.projections, [
    projected("v@1", 1),
    projected("v@3", 3),
  ]);
  assert.equal((await watch({ projections: ["v", "w"], layers: [3, 0] }))?.projections, [
    projected("v", 3),
    projected("w", 3),
  ]);
  assert.equal(looked.at(-1), ["vector", "w", 3, model]);
});

test("an empty watch, or one of missing layers, is refused", async () => {
  const path = "tapline.watch";
  const layers = `${path}.layers | ${path}.layers is required for norms, lens and states.`;
  for (const [watch, sentence] of [
    [{}, `${path} | ${path}: one of norms, lens, states, probes, projections and features is required.`],
    [
      { layers: [0], norms: false },
      `${path} | ${path}: one of norms, lens, states, probes, projections and features is required.`,
    ],
    [{ norms: true }, layers],
    [{ lens: 1 }, layers],
    [{ states: true, probes: ["truth"] }, layers],
    [
      { layers: [0, 4], norms: true },
      `${path}.layers | ${path}.layers: layer 4 does not exist; the model has layers 0 to 3.`,
    ],
    [{ probes: ["x"] }, `${path}.probes | ${path}.probes: There is no probe named x.`],
    [
      { projections: ["nobody"] },
      `${path}.projections | ${path}.projections: There is no vector named nobody.`,
    ],
    [
      { projections: ["v"], layers: [0, 2] },
      `${path}.projections | ${path}.projections: v has layers 1, 3, but none of them is watched.`,
    ],
  ] as const) {
    assert.is(await refusal({ watch }), sentence);
  }
});

test("errors other than the library's refusals are passed on as faults", async () => {
  const broken = { ...library, vectors: { layers: async () => Promise.reject(new TypeError("A fault.")) } };
  const error = await livePlan(
    { interventions: [{ kind: "steer", vector: "v" }] },
    broken as unknown as LiveLibrary,
    false,
  ).catch((fault: unknown) => fault);
  assert.equal([error instanceof TypeError, (error as Error).message], [true, "A fault."]);
});

test.run();
