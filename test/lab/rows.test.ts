import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkSubmission, type ExtractConfig, type ProbeConfig } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { exampleFeatures } from "../../src/lab/rows/example-features.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { demoModelPath } from "../../src/models/resolve.js";
import { type Context, Model } from "../../src/native/index.js";
import { extract } from "../../src/operations/extract/run.js";
import { probe } from "../../src/operations/probe/run.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-rows-"));
let model: Model;
let context: Context;
test.before(async () => {
  model = await Model.open(demoModelPath);
  context = await model.createContext({ threads: 1, nCtx: 128, nBatch: 128 });
});
test.after(async () => {
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

const layers = [3, 7];
/** A prompt's last word continues in the third response. */
const pairs = [
  ["The capital of France is", " Paris."],
  ["The capital of Japan is", " Tokyo, and it is large."],
  ["The language of the country of Par", "is is French."],
  ["When Mary and John went to the store,", " John gave a drink to Mary."],
] as const;
const examples = [...pairs, ...pairs].map(([prompt, text], i) => ({
  prompt: i < pairs.length ? prompt : `Then: ${prompt}`,
  text,
  label: i % 2,
  split: i < pairs.length ? "train" : "test",
}));

function input<C>(config: object, place = mkdtempSync(join(folder, "job-"))) {
  const openOther = () => Promise.reject(new Error("One model is enough."));
  return {
    ...{ config: checkSubmission({ model: "demo", layers, ...config }) as C, model, openOther },
    ...{ artifacts: new Artifacts(place), clock: new StageClock(), progress: () => {} },
  };
}

/** The mean of rows from `start` on, in float64, of a pass that knows nothing of rows. */
async function meanOf(text: string, layer: number, start: number): Promise<number[]> {
  const tokens = await model.tokenize(text, { special: true, parseSpecial: false });
  await context.reset();
  const found = await context.advance({ tokens, layers: [layer] });
  const { data } = found.layers[0]!.states!;
  const width = model.info.nEmbd;
  const sums = new Array<number>(width).fill(0);
  for (let token = start; token < tokens.length; token++)
    for (let i = 0; i < width; i++) sums[i]! += data[token * width + i]! / (tokens.length - start);
  return sums;
}

/** How many tokens of the whole text are the prompt's, found by the letters: the pieces that lie within it. */
async function promptTokens(prompt: string, text: string): Promise<number> {
  const tokens = await model.tokenize(prompt + text, { special: true, parseSpecial: false });
  const pieces = await model.pieces(tokens);
  let letters = 0;
  let count = 0;
  for (const piece of pieces) {
    const own = model.info.addBos && count === 0 ? 0 : piece.length;
    if (letters + own > prompt.length) break;
    letters += own;
    count++;
  }
  return count;
}

function close(ours: ArrayLike<number>, expected: ArrayLike<number>, what: string) {
  assert.is(ours.length, expected.length);
  let difference = 0;
  let size = 0;
  for (let i = 0; i < expected.length; i++) {
    difference += (ours[i]! - expected[i]!) ** 2;
    size += expected[i]! ** 2;
  }
  // K and V in F16, in another batch.
  assert.ok(Math.sqrt(difference / size) < 2e-3, `${what}: ${Math.sqrt(difference / size)}`);
}

test("a response's row averages the tokens after its prompt, a text's all", async () => {
  const width = model.info.nEmbd;
  const response = await exampleFeatures(
    input<ProbeConfig>({ operation: "probe", examples, rows: "response" }),
  );
  const bare = examples.map(({ prompt, text, ...rest }) => ({ text: prompt + text, ...rest }));
  const mean = await exampleFeatures(
    input<ProbeConfig>({ operation: "probe", examples: bare, rows: "mean" }),
  );
  const last = await exampleFeatures(input<ProbeConfig>({ operation: "probe", examples: bare }));
  for (const layer of layers) {
    for (const [i, { prompt, text }] of examples.entries()) {
      const row = (of: typeof mean) => of.byLayer.get(layer)!.subarray(i * width, (i + 1) * width);
      const start = await promptTokens(prompt, text);
      assert.ok(start > 1);
      close(row(response), await meanOf(prompt + text, layer, start), `response ${i}, layer ${layer}`);
      close(row(mean), await meanOf(prompt + text, layer, model.info.addBos ? 1 : 0), `mean ${i}`);
      const all = await model.tokenize(prompt + text, { special: true, parseSpecial: false });
      close(row(last), await meanOf(prompt + text, layer, all.length - 1), `last ${i}`);
    }
  }
});

test("an extraction has the same rows, from examples and from a file's entries", async () => {
  const features = await exampleFeatures(
    input<ProbeConfig>({ operation: "probe", examples, rows: "response" }),
  );
  const shared = { operation: "extract", rows: "response" };
  const place = mkdtempSync(join(folder, "extraction-"));
  const given = await extract(input<ExtractConfig>({ ...shared, examples }, place));
  assert.equal([given.rows, given.row_count, given.texts], ["response", examples.length, examples.length]);
  const path = join(folder, "data.jsonl");
  writeFileSync(path, examples.map(({ prompt, text }) => JSON.stringify({ prompt, text })).join("\n"));
  const other = mkdtempSync(join(folder, "extraction-"));
  await extract(input<ExtractConfig>({ ...shared, data: path }, other));
  const [one, two] = [place, other].map((each) => readFileSync(join(each, "shard-00000.safetensors")));
  assert.ok(one!.equals(two!), "both hold the same bytes");
  const index = JSON.parse(readFileSync(join(place, "index.json"), "utf8"));
  for (const layer of layers) {
    const values = features.byLayer.get(layer)!;
    const at = index.shards[0].offsets[`layer_${layer}`];
    const bytes = one!.subarray(at, at + values.byteLength);
    close(
      new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length)),
      values,
      "rows",
    );
  }
});

test("a probe of responses is labelled so, and invalid requests are refused", async () => {
  const result = await probe(input<ProbeConfig>({ operation: "probe", examples, rows: "response" }));
  assert.is(result.rows, "response");
  assert.is(result.reports.length, layers.length);
  const refused = (config: object) => {
    try {
      checkSubmission({ model: "demo", layers, ...config });
    } catch (error) {
      return (error as Error).message;
    }
    return String(assert.unreachable());
  };
  assert.match(
    refused({
      operation: "probe",
      examples: examples.map(({ prompt: _, ...rest }) => rest),
      rows: "response",
    }),
    /examples\[0\]\.prompt is required for rows response\./,
  );
  assert.match(
    refused({ operation: "probe", examples, rows: "mean" }),
    /examples\[0\]\.prompt: is for rows response, not for mean\./,
  );
  const empty = examples.map((example) => ({ ...example }));
  const path = join(folder, "without.jsonl");
  writeFileSync(path, `${JSON.stringify({ text: "alone" })}\n`);
  const sentence = (error: Error) => error.message;
  assert.is(
    await extract(input<ExtractConfig>({ operation: "extract", rows: "response", data: path })).then(
      () => "accepted",
      sentence,
    ),
    "Text 0 of without.jsonl has no prompt, which rows response requires.",
  );
  const long = { operation: "extract", rows: "response", too_long: "cut", max_input_tokens: 3 };
  assert.match(
    await extract(input<ExtractConfig>({ ...long, examples: empty })).then(() => "accepted", sentence),
    /^Text 0 of examples has \d tokens before its response; none of it is within the 3 kept tokens\.$/,
  );
});

test.run();
