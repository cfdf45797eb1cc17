/** The data for machines in a package of `tapline quants`, and that the studies service reads it. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { validate } from "../../src/contracts/index.js";
import { labelledBlocks, QuantsBlock, StudyPackage } from "../../src/contracts/studies/index.js";
import type { Quants, QuantsFile, QuantsForm } from "../../src/quants/result.js";
import { quantsStudy } from "../../src/quants/study.js";
import { measurementsIn } from "../../src/studies/text/measurements.js";

const about = (value: number) => ({ value, low: value / 2, high: value * 2 });
const hash = (digit: string) => digit.repeat(64);

const file = (name: string, digit: string): QuantsFile => ({
  ...{
    name,
    file: `${name}.gguf`,
    fingerprint: hash(digit),
    quantization: name,
    bytes: 1000,
    bits_per_weight: 8.5,
  },
  types: [{ type: "Q8_0", tensors: 3, weights: 100 }],
  ...{ imatrix: null, memory: 5000, speed: { prompt: about(90), generation: about(20) } },
});

const form = (name: string, digit: string, change: Partial<QuantsForm> = {}): QuantsForm => ({
  ...file(name, digit),
  ...{ divergence: about(0.01), agreement: about(0.4), perplexity: about(9), perplexity_ratio: about(1) },
  drift: [0, 1].map((layer) => ({ layer, cosine: about(0.5), relative_difference: about(0.1 + layer) })),
  ...change,
});

const survival = (features: number, share: number): QuantsForm["survival"] => ({
  ...{ dictionary: "words", sha256: hash("d"), layer: 1, features, least: 3, dead: [], jaccard: null },
  ...{ surviving: about(share), died: about(share), recall: about(share), loss_recovered: null },
  ...{ correlation: about(share), correlated: about(share) },
});

const quants = (...forms: QuantsForm[]): Quants => ({
  ...{
    kind: "tapline quants",
    schema_version: 1,
    tapline: "0.3.0",
    created: 5,
    seconds: 5,
    sha256: hash("e"),
  },
  machine: { processor: "a processor", threads: 2, backend: "cpu", llama_cpp: "b1" },
  reference: { ...file("F16", "a"), architecture: "llama", perplexity: about(9) },
  forms,
  settings: {
    ...{
      texts: 2,
      tokens: 10,
      texts_sha256: hash("f"),
      examples: 0,
      prompts: 0,
      layers: [0, 1],
      seed: 0,
      resamples: 10,
    },
    ...{ rounds: 1, prompt_tokens: 8, generated_tokens: 4 },
  },
});

const read = (given: Quants) => {
  const bytes = quantsStudy(given, [], "CC0-1.0");
  return { bytes, study: validate(StudyPackage, JSON.parse(bytes.toString("utf8"))) };
};

test("the package lists the forms in a table, and as data that the service reads", () => {
  const given = quants(
    form("Q8_0", "b", { survival: survival(10, 0.4) }),
    form("Q4_0", "c", { survival: survival(0, Number.NaN) }),
  );
  const { bytes, study } = read(given);
  const blocks = labelledBlocks(study, "tapline-quants");
  assert.is(blocks.length, 1);
  validate(QuantsBlock, JSON.parse(blocks[0] as string));
  const table = study.entries.find(({ title }) => title === "Table of 2 forms")?.note ?? "";
  assert.match(table, /^\| Form \| Size \|.*\n\| --- \|.*\n\| F16 \|.*\n\| Q8_0 \|/);
  assert.equal(measurementsIn(bytes), {
    ...{ model: hash("a"), file: "F16.gguf", bytes: 1000, bits: 8.5, texts: hash("f"), result: hash("e") },
    forms: [
      {
        ...{ name: "Q8_0", file: "Q8_0.gguf", form: hash("b"), bytes: 1000, bits: 8.5 },
        ...{ divergence: about(0.01), agreement: about(0.4), drift: { ...about(1.1), layer: 1 } },
        survival: { ...about(0.4), dictionary: "words", sha256: hash("d"), layer: 1, least: 3 },
      },
      {
        ...{ name: "Q4_0", file: "Q4_0.gguf", form: hash("c"), bytes: 1000, bits: 8.5 },
        ...{
          divergence: about(0.01),
          agreement: about(0.4),
          drift: { ...about(1.1), layer: 1 },
          survival: null,
        },
      },
    ],
  });
});

test("long names are cut, and forms beyond the first hundred are an omission", () => {
  const many = Array.from({ length: 101 }, (_, at) =>
    form(at === 0 ? "n".repeat(400) : `Q${at}`, "b", { file: "some.gguf" }),
  );
  const { bytes, study } = read(quants(...many));
  const found = measurementsIn(bytes)?.forms ?? [];
  assert.equal([found.length, found[0]?.name, found.at(-1)?.name], [100, `${"n".repeat(299)}…`, "Q99"]);
  assert.ok(study.omissions.some((line) => line.startsWith("All but the first 100 of 101 forms")));
  assert.equal(read(quants(form("Q8_0", "b"))).study.omissions, []);
});

test.run();
