import { limits } from "../../src/contracts/limits.js";
import { fc } from "../support/fc.js";

const text = fc.string({ minLength: 1, maxLength: 40, unit: "grapheme" });
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const common = {
  model: fc.oneof(fc.constant("demo"), text),
  revision: optional(text),
  layers: optional(fc.uniqueArray(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 8 })),
  max_input_tokens: optional(fc.integer({ min: 1, max: 1024 })),
  max_tokens: optional(fc.integer({ min: 1, max: 128 })),
  seed: optional(fc.integer({ min: 0, max: 2147483647 })),
};

function withoutAbsent(record: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}

const inspect = fc.record({ operation: fc.constant("inspect"), ...common, prompt: text });

const compare = fc.record({
  operation: fc.constant("compare"),
  ...common,
  prompt: text,
  intervention: optional(fc.constantFrom("scale", "ablate")),
  strengths: optional(
    fc.array(
      fc.double({ min: -5, max: 5, noNaN: true }).map((strength) => strength + 0),
      {
        minLength: 1,
        maxLength: 9,
      },
    ),
  ),
  target_token: optional(text),
  prompts: optional(fc.array(text, { minLength: 1, maxLength: 32 })),
  donor_prompt: optional(text),
});

const positions = optional(
  fc.oneof(
    fc.constantFrom("last", "all", "prompt", "generated"),
    fc.array(fc.tuple(fc.integer({ min: 0, max: 4095 }), fc.integer({ min: -4095, max: -1 })), {
      minLength: 1,
      maxLength: 16,
    }),
  ),
);
const along = fc
  .tuple(
    compare,
    fc.record({
      intervention: fc.constantFrom("steer", "project_out", "clamp"),
      positives: fc.array(text, { minLength: 1, maxLength: 256 }).map((all) => all.map((one) => `+${one}`)),
      negatives: fc.array(text, { minLength: 1, maxLength: 256 }).map((all) => all.map((one) => `-${one}`)),
      positions,
      controls: optional(fc.boolean()),
    }),
    fc.double({ min: -1e6, max: 1e6, noNaN: true }),
  )
  .map(([body, more, min]) => ({
    ...body,
    ...more,
    ...(more.intervention === "clamp" ? { min: min + 0 } : {}),
    ...(more.intervention === "clamp" && body.strengths
      ? { strengths: body.strengths.map((strength) => Math.abs(strength) / limits.strength) }
      : {}),
  }));

const patch = compare.chain((body) =>
  text.map((donor) => ({ ...body, intervention: "patch", donor_prompt: donor })),
);
const steer = compare.chain((body) =>
  text.map((side) => ({ ...body, intervention: "steer", positive: side, negative: `${side} not` })),
);

const examples = fc.integer({ min: 8, max: 30 }).map((count) =>
  Array.from({ length: count }, (_, index) => ({
    text: `example ${index}`,
    label: index % 2,
    split: index % 4 < 2 ? "train" : "test",
  })),
);

const probe = fc.record({ operation: fc.constant("probe"), ...common, examples });
const sae = fc.record({
  operation: fc.constant("sae"),
  ...common,
  examples,
  features: optional(fc.integer({ min: 8, max: 512 })),
  steps: optional(fc.integer({ min: 1, max: 500 })),
});

const { layers: _layers, max_tokens: _maxTokens, ...commonOfPatches } = common;
const patchSweep = fc.record({
  operation: fc.constant("patch_sweep"),
  ...commonOfPatches,
  clean: text,
  corrupted: text,
  layers: optional(fc.uniqueArray(fc.integer({ min: 0, max: 255 }), { minLength: 1, maxLength: 256 })),
  positions: optional(fc.uniqueArray(fc.integer({ min: -4095, max: 4095 }), { minLength: 1, maxLength: 40 })),
  direction: optional(fc.constantFrom("denoise", "noise")),
  controls: optional(fc.boolean()),
});

const graph = fc.record({
  operation: fc.constant("graph"),
  ...{ model: common.model, revision: common.revision, seed: common.seed },
  ...{
    prompt: text,
    position: optional(fc.integer({ min: -4095, max: 4095 })),
    target_token: optional(text),
  },
  ...{
    nodes: optional(fc.integer({ min: 1, max: 7500 })),
    measured: optional(fc.integer({ min: 0, max: 500 })),
  },
  ...{ first_token: optional(fc.boolean()), node_threshold: optional(fc.constantFrom(0, 0.8, 1)) },
});

const explain = fc.record({
  operation: fc.constant("explain"),
  ...commonOfPatches,
  prompt: text,
  layer: fc.integer({ min: 0, max: 255 }),
  positions: optional(fc.uniqueArray(fc.integer({ min: -4095, max: 4095 }), { minLength: 1, maxLength: 16 })),
  verbaliser: optional(text),
  template: fc.constant("What is ㈎?"),
  marker: fc.constant("㈎"),
  length: optional(fc.double({ min: 0.001, max: 1e7, noNaN: true })),
  temperature: optional(fc.double({ min: 0, max: 2, noNaN: true }).map((value) => value + 0)),
  description_tokens: optional(fc.integer({ min: 1, max: 512 })),
  controls: optional(fc.boolean()),
});

/** Bodies that the contract accepts. */
export const validSubmission: fc.Arbitrary<Record<string, unknown>> = fc
  .oneof(inspect, compare, patch, steer, along, probe, sae, patchSweep, explain, graph)
  .map((body) => JSON.parse(JSON.stringify(withoutAbsent(body))));

const odd: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, "", 0, -1, 1.5, 1e308, 2 ** 53, [], {}, [[]], "\ud83d", "\u0000", [
    null,
  ]),
  fc.jsonValue({ maxDepth: 3 }),
  fc.array(fc.integer(), { maxLength: 600 }),
);

/** Valid bodies with one field replaced, removed or added. */
export const nearlyValid: fc.Arbitrary<unknown> = fc
  .tuple(validSubmission, fc.nat(), odd, fc.constantFrom("replace", "remove", "add", "none"), fc.string())
  .map(([body, pick, value, change, name]) => {
    const keys = Object.keys(body);
    const key = keys[pick % keys.length] as string;
    const copy = { ...body };
    if (change === "replace") copy[key] = value;
    if (change === "remove") delete copy[key];
    if (change === "add") Object.defineProperty(copy, name, { value, enumerable: true, configurable: true });
    return copy;
  });

/** Any JSON at all, often with the shape of a submission. */
export const anyBody: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue(),
  fc.record({
    operation: fc.constantFrom(
      "inspect",
      "compare",
      "probe",
      "sae",
      "features",
      "extract",
      "drift",
      "patch_sweep",
      "explain",
    ),
    extra: fc.jsonValue(),
  }),
  fc.record({
    operation: fc.constantFrom(
      "inspect",
      "compare",
      "probe",
      "sae",
      "features",
      "extract",
      "drift",
      "patch_sweep",
      "explain",
    ),
    model: odd,
    prompt: odd,
    layers: odd,
    examples: odd,
  }),
);
