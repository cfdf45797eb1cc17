import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { checkSubmission, type ExplainResult, UserError } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { type Context, Model } from "../../src/native/index.js";
import type { Findings } from "../../src/operations/run.js";
import { runOperation } from "../../src/operations/runs.js";
import { tinyVocabulary, writeTinyModel } from "../inference/support/tiny-models.js";
import { demo } from "../native/demo-model.js";
import { type Harness, openHarness } from "./harness.js";
import { readNpz } from "./npz-reader.js";

const hidden = 128;
const asked = {
  ...{ operation: "explain", model: demo, prompt: "The capital of France is", layer: 5 },
  ...{ template: "The capital of Japan is", marker: " Japan", description_tokens: 8 },
};

let folder: string;
let model: Model;
let context: Context;
let lab: Harness;
test.before(async () => {
  folder = mkdtempSync(join(tmpdir(), "tapline-explain-"));
  lab = await openHarness();
  process.env.TAPLINE_HOME = lab.home;
  model = await Model.open(demo, { gpuLayers: 0 });
  context = await model.createContext({ threads: 1, nCtx: 128 });
});
test.after(async () => {
  await lab.close();
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Ran {
  result: Findings<ExplainResult>;
  arrays: ReturnType<typeof readNpz>;
}

/** The operation in this process. */
async function run(more: object = {}): Promise<Ran> {
  const config = checkSubmission({ ...asked, ...more });
  const own = await Model.open(config.model);
  const place = mkdtempSync(join(folder, "artifacts-"));
  try {
    const result = (await runOperation({
      ...{ config, model: own, artifacts: new Artifacts(place), progress: () => {}, clock: new StageClock() },
      openOther: (id) => Model.open(id),
    })) as Findings<ExplainResult>;
    return { result, arrays: readNpz(readFileSync(join(place, "rows.npz"))) };
  } finally {
    await own.close();
  }
}

/** The model's answer when a row replaces the template's marker: patched by the tap at the first block's input. */
async function saidTo(row: Float32Array, most = 8): Promise<string> {
  const tokens = await model.tokenize(asked.template);
  const [marker] = await model.tokenize(asked.marker, { special: false });
  const place = tokens.indexOf(marker as number);
  const edits = [
    { layer: 0, point: "block_in" as const, positions: [[place, place]] as const, scale: 0, vector: row },
  ];
  await context.reset();
  const points = ["block_in"] as const;
  let { next } = await context.advance({ tokens, layers: [0], points, edits, nextTopK: 1 });
  const said: number[] = [];
  for (;;) {
    const token = next!.tokenIds[0] as number;
    if (model.info.endOfGeneration.includes(token)) break;
    said.push(token);
    if (said.length === most) break;
    ({ next } = await context.advance({ tokens: Int32Array.of(token), layers: [], nextTopK: 1 }));
  }
  return model.detokenize(Int32Array.from(said));
}

const rowOf = ({ arrays }: Ran, name: string, i: number) =>
  Float32Array.from(arrays.get(name)!.data.slice(i * hidden, (i + 1) * hidden));

test("explained rows are the block's, and the words are the model's answer to them", async () => {
  const ran = await run({ positions: [-1, 3] });
  const { explained, layer, length, unfilled, verbaliser } = ran.result;
  assert.equal([layer, length, verbaliser.token_scale], [5, null, 1]);
  const tokens = await model.tokenize(asked.prompt);
  await context.reset();
  const { layers } = await context.advance({ tokens, layers: [5] });
  const places = [tokens.length - 1, 3];
  assert.equal([...ran.arrays.get("positions")!.data], places);
  for (const [i, position] of places.entries()) {
    const row = layers[0]!.states!.data.slice(position * hidden, (position + 1) * hidden);
    const found = explained[i]!;
    assert.is(found.position, position);
    assert.is(found.token_id, tokens[position]);
    assert.is(found.token, (await model.pieces(tokens.slice(position, position + 1)))[0]);
    assert.ok(Math.abs(found.norm / Math.hypot(...row) - 1) < 1e-3);
    const kept = rowOf(ran, "rows", i);
    assert.ok(kept.every((value, at) => Math.abs(value - row[at]!) < 1e-2 * found.norm));
    assert.is(found.descriptions.length, 1);
    assert.is(found.descriptions[0]!.text, await saidTo(kept));
    const other = rowOf(ran, "shuffled", i);
    assert.equal([...other].sort(), [...kept].sort(), "the same numbers");
    assert.not.equal([...other], [...kept]);
    assert.is(found.shuffled![0]!.text, await saidTo(other));
  }
  // Without a row the model answers the template itself.
  const plain = await model.tokenize(asked.template);
  const embedding = await context.explain({
    ...{ before: plain.slice(0, -1), after: plain.slice(-1), fillings: [{}], maxTokens: 8 },
  });
  assert.is(unfilled![0]!.text, await model.detokenize(embedding[0]!.answers[0]!.tokens));
  assert.match(unfilled![0]!.text, /^ Tokyo/);
});

test("a separate verbalizer gives the same as the model; rows scale; controls are optional", async () => {
  const own = await run({ length: 7, positions: [-1] });
  const other = await run({ length: 7, positions: [-1], verbaliser: demo });
  assert.equal(other.result, own.result);
  assert.is(own.result.length, 7);
  const row = rowOf(own, "rows", 0);
  const scaled = row.map((value) => (value * 7) / Math.hypot(...row));
  assert.is(own.result.explained[0]!.descriptions[0]!.text, await saidTo(scaled));
  assert.ok(Math.abs(Math.hypot(...rowOf(own, "shuffled", 0)) - 7) < 1e-5);
  const bare = await run({ controls: false });
  assert.is(bare.result.unfilled, undefined);
  assert.is(bare.result.explained[0]!.shuffled, undefined);
  assert.not.ok(bare.arrays.has("shuffled"));
});

test("samples are drawn from the seed, with the same draws for each row", async () => {
  const drawn = { samples: 4, temperature: 1.5, positions: [-1, -2] };
  const [one, again, other] = [await run(drawn), await run(drawn), await run({ ...drawn, seed: 1 })];
  const texts = ({ result }: Ran) => result.explained.map((row) => row.descriptions.map(({ text }) => text));
  assert.equal(again.result, one.result);
  assert.not.equal(texts(other), texts(one));
  assert.ok(new Set(texts(one).flat()).size > 2);
  const alone = await run({ ...drawn, positions: [-2] });
  assert.equal(texts(alone)[0], texts(one)[1], "whatever else is asked for");
});

test("invalid requests are refused in one sentence", async () => {
  const tiny = join(folder, "tiny.gguf");
  await writeTinyModel(tiny);
  const refused = async (more: object, says: RegExp) => {
    const error = await run(more).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.instance(error, UserError);
    assert.match((error as Error).message, says);
  };
  await refused(
    { verbaliser: tiny },
    /^Activations of .* have 128 values, .* have 32; both must have the same size\.$/,
  );
  await refused(
    { marker: "apan", template: "The capital of Japan is" },
    /^(marker must be exactly one|The marker)/,
  );
  await refused(
    { marker: "capital of" },
    /^marker must be exactly one token of the verbaliser; "capital of" gives/,
  );
  await refused(
    { positions: [5, 40] },
    /^positions: 40 does not exist; the prompt has \d tokens, 0 to \d\.$/,
  );
  await refused({ layer: 8 }, /^layers: 8 does not exist; the model has 8 blocks/);
  await refused({ description_tokens: 510 }, /description up to 510; the model was trained on at most 512/);
  await refused({ max_input_tokens: 2 }, /^prompt has \d tokens; max_input_tokens allows 2/);
});

test("a chat template starts with one BOS token, whether or not it spells it", async () => {
  const path = join(folder, "bos.gguf");
  const types = new Int32Array(tinyVocabulary).fill(1);
  const bos = tinyVocabulary - 2;
  types[bos] = 3; // a control token
  await writeTinyModel(path, {
    metadata: {
      "tokenizer.ggml.add_bos_token": true,
      "tokenizer.ggml.bos_token_id": bos,
      "tokenizer.ggml.token_type": types,
    },
  });
  const spelled = `Ġw${bos - 256}`;
  const tiny = { model: path, prompt: "abc", layer: 1, marker: "X" };
  const plain = await run({ ...tiny, template: "What X?" });
  assert.is(plain.result.verbaliser.prompt_tokens, 1 + "What X?".length);
  assert.equal((await run({ ...tiny, template: `${spelled}What X?` })).result, plain.result);
  const twice = await run({ ...tiny, template: `${spelled}${spelled}What X?` });
  assert.is(twice.result.verbaliser.prompt_tokens, 2 + "What X?".length, "spelled twice, it is used twice");
});

test("a Lab runs it and records the verbalizer", async () => {
  const { id } = await lab.submit({ ...asked, model: "demo", verbaliser: "demo", positions: [-1] });
  const job = await lab.finished(id);
  assert.is(job.error, undefined);
  const result = job.result as ExplainResult;
  assert.equal(result.artifacts, ["rows.npz"]);
  assert.equal(result.provenance.layers, [5]);
  const { provenance: _, artifacts: __, ...rest } = result;
  assert.equal(rest, (await run({ positions: [-1] })).result);
});

test.run();
