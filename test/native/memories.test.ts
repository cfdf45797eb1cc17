/** Models that remember otherwise than the embedded one: a state that every token changes, and no memory at all. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Context, type Edit, Model } from "../../src/native/index.js";
import { apart, logitsOf, rejects, scratch } from "./demo-model.js";
import { hidden, writeBidirectional, writeHybrid, writeRecurrent } from "./memory-models.js";

const folder = scratch();

let recurrent: Model;
let bidirectional: Model;
test.before(async () => {
  recurrent = await Model.open(await writeRecurrent(folder));
  bidirectional = await Model.open(await writeBidirectional(folder));
});
test.after(async () => {
  await recurrent.close();
  await bidirectional.close();
});

const opened = (model: Model, options: object = {}) =>
  model.createContext({ threads: 1, nCtx: 256, ...options });
const layers = [0, 1];
const text = (length: number, seed = 0) =>
  Int32Array.from({ length }, (_, i) => 33 + ((i * 7 + i * i + 13 * seed) % 90));
const close = (found: ArrayLike<number>, expected: ArrayLike<number>, what: string) =>
  assert.ok(apart(found, expected) < 1e-4, `${what}: ${apart(found, expected)} apart`);

/** Every row of each layer, of a pass of its own. */
async function alone(context: Context, tokens: Int32Array, edits: Edit[] = []) {
  await context.reset();
  const { layers: found, logits } = await context.advance({ tokens, layers, logits: true, edits });
  return { states: found.map(({ states }) => states!.data), logits: logits! };
}

/** Texts of several lengths, more than one batch of them, packed as each is alone. */
async function checkPacked(context: Context) {
  // The second of three that are packed ends first.
  const sequences = [5, 2, 4, 9, 1, 7, 3].map((length, seed) => text(length, seed));
  const single: Awaited<ReturnType<typeof alone>>[] = [];
  for (const tokens of sequences) single.push(await alone(context, tokens));
  for (const rows of ["all", "last", "mean"] as const) {
    const packed = await context.features({ sequences, layers: [1, 0], rows });
    for (const layer of layers) {
      const expected = single.flatMap(({ states }) => {
        const each = Array.from({ length: states[layer]!.length / hidden }, (_, row) =>
          Array.from(states[layer]!.subarray(row * hidden, (row + 1) * hidden)),
        );
        if (rows === "last") return each.at(-1)!;
        if (rows === "all") return each.flat();
        return Array.from({ length: hidden }, (_, k) =>
          each.reduce((sum, row) => sum + row[k]! / each.length, 0),
        );
      });
      close(packed.get(layer)!.data, expected, `${rows} rows of block ${layer}`);
    }
  }
}

test("a state: texts that are packed are those of each alone", async () => {
  await checkPacked(await opened(recurrent, { nBatch: 12, maxSequences: 4 }));
});

test("a state: chunks give what one pass gives, with every row of the last block beside the answer", async () => {
  const context = await opened(recurrent);
  const tokens = text(11);
  const whole = await alone(context, tokens);
  await context.reset();
  const states: number[][] = [[], []];
  let logits: Float32Array | undefined;
  for (const [from, to] of [
    [0, 4],
    [4, 5],
    [5, 11],
  ] as const) {
    const part = await context.advance({ tokens: tokens.slice(from, to), layers, logits: true });
    part.layers.forEach(({ states: rows }, layer) => void states[layer]!.push(...rows!.data));
    logits = part.logits;
  }
  for (const layer of layers) close(states[layer]!, whole.states[layer]!, `block ${layer}`);
  close(logits!, whole.logits, "logits");
});

test("a state and cells: every row of the last block beside the answer leaves both as they were", async () => {
  const model = await Model.open(await writeHybrid(folder));
  const context = await opened(model);
  const tokens = text(11);
  const { logits: whole } = await context.advance({ tokens, layers: [], logits: true });
  await context.reset();
  await context.advance({ tokens: tokens.slice(0, 4), layers: [2], logits: true });
  const { layers: found, logits } = await context.advance({
    ...{ tokens: tokens.slice(4, 8), layers: [2], logits: true },
  });
  assert.is(found[0]!.norms.length, 4);
  assert.ok(apart(logits!, whole!) > 1e-2, "the text goes on");
  const last = await context.advance({ tokens: tokens.slice(8), layers: [], logits: true });
  close(last.logits!, whole!, "logits");
  await model.close();
});

test("recurrent models: each plan of a sweep and each site is a separate pass", async () => {
  const context = await opened(recurrent, { maxSequences: 4 });
  const single = await opened(recurrent);
  const [clean, corrupted] = [text(6), text(6, 2)];
  const edit: Edit = { layer: 0, scale: -2, positions: [[3, 5]] };
  const targets = Int32Array.of(40);
  const [trial] = await context.sweep({ prompts: [clean], plans: [[edit]], targets, maxTokens: 0 });
  const shareOf = (logits: Float32Array, token: number) =>
    Math.exp(logits[token]!) / logits.reduce((sum, logit) => sum + Math.exp(logit), 0);
  for (const [row, edits] of [
    [trial!.baseline, []],
    [trial!.rows[0]!, [edit]],
  ] as const) {
    close([row.probability], [shareOf((await alone(single, clean, [...edits])).logits, 40)], "share");
  }
  assert.ok(Math.abs(trial!.baseline.probability / trial!.rows[0]!.probability - 1) > 1e-3);

  const positions = [1, 4, 5];
  const request = { clean, corrupted, layers, positions, target: 40, foil: 50 };
  const sweep = await context.patchSweep(request);
  const donor = await alone(single, clean);
  for (const [index, layer] of layers.entries()) {
    for (const [column, position] of positions.entries()) {
      if (layer === 1 && position < 5) continue; // nobody reads the last block's earlier rows
      const vector = donor.states[layer]!.slice(position * hidden, (position + 1) * hidden);
      const edits: Edit[] = [{ layer, positions: [[position, position]], scale: 0, vector }];
      const { logits } = await alone(single, corrupted, edits);
      const found = sweep.patched[index * positions.length + column]!;
      close([found], [logits[40]! - logits[50]!], `block ${layer}, token ${position}`);
    }
  }
});

test("recurrent models: each sample of an explanation starts after the prompt", async () => {
  const context = await opened(recurrent);
  const draws = Float64Array.of(0.1, 0.9, 0.4, 0.6, 0.1, 0.9);
  const [explained] = await context.explain({
    ...{ before: text(4), after: text(3, 1), fillings: [{ token: 60 }], maxTokens: 2, samples: 3 },
    ...{ temperature: 1.5, draws, logits: true },
  });
  const logits = await logitsOf(context, {
    ...{ tokens: Int32Array.of(...text(4), 60, ...text(3, 1)), layers: [] },
  });
  close(explained!.logits!, logits, "logits");
  const [first, second, third] = explained!.answers.map(({ tokens }) => [...tokens]);
  assert.equal(third, first, "the same numbers draw the same tokens");
  assert.not.equal(second, first);
});

test("no memory: a text is one pass, however long, and its first row reads its last token", async () => {
  const context = await opened(bidirectional, { nCtx: 400 });
  assert.equal([context.causal, context.nBatch], [false, 400]);
  const tokens = text(300);
  const one = await alone(context, tokens);
  assert.is(one.states[1]!.length, 300 * hidden);
  const other = await alone(context, tokens.with(299, 40));
  assert.ok(apart(one.states[1]!.subarray(0, hidden), other.states[1]!.subarray(0, hidden)) > 1e-6);
  const short = Int32Array.of(40, 41);
  await context.reset();
  await context.advance({ tokens: short, layers: [0] });
  await rejects(
    context.advance({ tokens: short, layers: [0] }),
    "INVALID_ARGUMENT",
    /attends in both directions, so a text is one pass\.$/,
  );
  await checkPacked(await opened(bidirectional, { maxSequences: 4 }));
});

test("models without memory: token-by-token generation is refused", async () => {
  const context = await opened(bidirectional, { maxSequences: 4 });
  const tokens = text(4);
  const says = /^The architecture 'llada' does not generate text token by token/;
  const { supported, reason } = await context.embeddingInput();
  assert.is(supported, false);
  assert.match(reason, says);
  for (const asked of [
    context.sweep({ prompts: [tokens], plans: [], maxTokens: 1 }),
    context.patchSweep({ clean: tokens, corrupted: text(4, 1), layers, positions: [3] }),
    context.explain({ before: tokens, after: tokens, fillings: [{}], maxTokens: 1 }),
  ]) {
    await rejects(asked, "UNSUPPORTED_ARCHITECTURE", says);
  }
});

test.run();
