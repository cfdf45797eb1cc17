import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  type Context,
  Model,
  type PatchGrowth,
  type PatchSweepRequest,
  patchCells,
} from "../../src/native/index.js";
import { demo, layersOf, logitsOf, rejects } from "./demo-model.js";

let model: Model;
let context: Context;
let single: Context;
let clean: Int32Array;
let corrupted: Int32Array;
let layers: number[];
let positions: number[];

test.before(async () => {
  model = await Model.open(demo);
  clean = await model.tokenize("The capital of France is");
  corrupted = await model.tokenize("The capital of Japan is");
  assert.is(clean.length, corrupted.length);
  layers = layersOf(model);
  positions = [...clean.keys()];
  const nCtx = patchCells(clean.length, 64);
  context = await model.createContext({ nCtx, nBatch: 64, maxSequences: 32, threads: 1 });
  single = await model.createContext({ nCtx: 64, threads: 1 });
});
test.after(() => model.close());

const tokenOf = async (text: string) => (await model.tokenize(text, { special: false }))[0] as number;

/** Clean and corrupted, at every site, with the capitals as target and foil. */
async function everywhere(): Promise<PatchSweepRequest> {
  return {
    clean,
    corrupted,
    layers,
    positions,
    target: await tokenOf(" Paris"),
    foil: await tokenOf(" Tokyo"),
  };
}

/** Block outputs, [tokens, hidden] a layer. */
async function statesOf(tokens: Int32Array): Promise<Float32Array[]> {
  await single.reset();
  const result = await single.advance({ tokens, layers });
  return result.layers.map(({ states }) => states?.data as Float32Array);
}

/** The plain way: one whole forward pass a site, its answer without any shared K/V. */
async function oneByOne(
  request: PatchSweepRequest,
  vectorOf: (layer: number, position: number) => Float32Array,
) {
  const { target = 0, foil = 0, denoise = true } = request;
  const tokens = denoise ? request.corrupted : request.clean;
  const found: number[] = [];
  for (const layer of layers) {
    for (const position of positions) {
      // Nobody reads the last block's earlier rows, and an edit needs a row that is computed.
      const dead = layer === layers.length - 1 && position < tokens.length - 1;
      const place = [[position, position]] as const;
      const edits = dead ? [] : [{ layer, positions: place, scale: 0, vector: vectorOf(layer, position) }];
      const logits = await logitsOf(single, { tokens, layers: [layer], rows: "last", edits });
      found.push((logits[target] as number) - (logits[foil] as number));
    }
  }
  return found;
}

/**
 * Of a difference of two logits of about 10: how many rows a pass has decides on some processors in which order a sum is
 * added up, and the cache keeps what later blocks make of that in half precision.
 */
const rounding = 1e-3;

const near = (found: ArrayLike<number>, expected: ArrayLike<number>, bound: number, what: string) => {
  assert.is(found.length, expected.length);
  for (let i = 0; i < found.length; i++) {
    const gap = Math.abs((found[i] as number) - (expected[i] as number));
    assert.ok(gap <= bound, `${what}, site ${i}: ${found[i]} against ${expected[i]}`);
  }
};

for (const denoise of [true, false]) {
  test(`every site equals a forward pass of its own: ${denoise ? "denoise" : "noise"}`, async () => {
    const request = { ...(await everywhere()), denoise };
    const donor = await statesOf(denoise ? clean : corrupted);
    const width = model.info.nEmbd;
    const row = (layer: number, position: number) =>
      (donor[layer] as Float32Array).slice(position * width, (position + 1) * width);
    const expected = await oneByOne(request, row);
    const sweep = await context.patchSweep(request);
    near(sweep.patched, expected, rounding, "patched");
    const base = denoise ? sweep.corrupted : sweep.clean;
    const other = denoise ? sweep.clean : sweep.corrupted;
    assert.ok(Math.abs(sweep.restored - base) <= rounding, `restored: ${sweep.restored}, not ${base}`);
    // The last block's last row is all that the answer is read from.
    const last = sweep.patched.at(-1) as number;
    assert.ok(Math.abs(last - other) <= 1e-5, `last site: ${last}, not ${other}`);
    assert.ok(sweep.clean > 5 && sweep.corrupted < -5, "the prompts have different answers");
  });
}

test("a context that holds one site at a time finds the same", async () => {
  const request = await everywhere();
  const least = await model.createContext({
    threads: 1,
    nCtx: 2 * clean.length,
    nBatch: clean.length,
    maxSequences: 2,
  });
  const [narrow, wide] = [await least.patchSweep(request), await context.patchSweep(request)];
  near(narrow.patched, wide.patched, rounding, "narrow");
  assert.is(narrow.computedTokens, wide.computedTokens);
  await least.close();
});

test("layers and positions come back in the order asked for, whatever else is asked for", async () => {
  const request = await everywhere();
  const all = await context.patchSweep(request);
  const some = await context.patchSweep({ ...request, layers: [5, 2], positions: [5, 3, 4] });
  const site = (layer: number, position: number) =>
    all.patched[layer * positions.length + position] as number;
  const expected = [site(5, 5), site(5, 3), site(5, 4), site(2, 5), site(2, 3), site(2, 4)];
  near(some.patched, expected, rounding, "chosen");
});

test("a prompt patched into itself changes nothing, to the bit", async () => {
  const request = { ...(await everywhere()), corrupted: clean };
  const sweep = await context.patchSweep(request);
  assert.is(sweep.clean, sweep.corrupted);
  assert.ok(sweep.patched.every((value) => value === sweep.clean));
  // A row put back where nothing else is computed: one site.
  assert.is(sweep.computedSites, 1);
  const lengths = [...sweep.changeLength].filter((value) => !Number.isNaN(value));
  assert.ok(lengths.every((length) => length === 0));
});

test("only what can change anything is computed", async () => {
  // BOS, The, capital, of, France | Japan, is: the prompts part at token 4, and block 7 counts at token 5 alone.
  assert.is(clean.length, 6);
  const sweep = await context.patchSweep(await everywhere());
  // 7 blocks of token 4 and 8 of token 5, and one row put back at token 4.
  assert.is(sweep.computedSites, 7 + 8 + 1);
  assert.is(sweep.computedTokens, 7 * 2 + 8 * 1 + 2);
  const known = [...sweep.changeLength].map((length) => !Number.isNaN(length));
  assert.is(known.filter(Boolean).length, 7 * 6 + 1);
});

test("a random change has the patch's norm and the given direction", async () => {
  const request = await everywhere();
  const width = model.info.nEmbd;
  const directions = layers.map((layer) =>
    Float32Array.from({ length: width }, (_, i) => Math.sin(i * 1.7 + 2.3 * layer)),
  );
  const controls = new Float32Array(layers.length * width);
  for (const layer of layers) controls.set(directions[layer] as Float32Array, layer * width);
  const sweep = await context.patchSweep({ ...request, controls });
  const [base, donor] = [await statesOf(corrupted), await statesOf(clean)];
  const row = (states: Float32Array[], layer: number, position: number) =>
    (states[layer] as Float32Array).slice(position * width, (position + 1) * width);
  const expected = await oneByOne(request, (layer, position) => {
    const far = sweep.changeLength[layer * positions.length + position] as number;
    const direction = directions[layer] as Float32Array;
    const length = Math.hypot(...direction);
    return row(base, layer, position).map((value, i) => value + (far / length) * (direction[i] as number));
  });
  for (const layer of layers.slice(0, -1)) {
    for (const position of positions) {
      const at = layer * positions.length + position;
      const [mine, theirs] = [row(base, layer, position), row(donor, layer, position)];
      const apart = Math.hypot(...mine.map((value, i) => (theirs[i] as number) - value));
      const what = `block ${layer}, token ${position}`;
      assert.ok(Math.abs((sweep.rowLength[at] as number) / Math.hypot(...mine) - 1) < 1e-3, what);
      assert.ok(Math.abs((sweep.changeLength[at] as number) - apart) < 1e-3 * (1 + apart), what);
    }
  }
  near(sweep.control as Float64Array, expected, rounding, "control");
  assert.is(sweep.computedSites, 2 * (7 + 8) + 1);
});

test("without tokens to measure by, the prompts' own answers are them", async () => {
  const { target: paris, foil: tokyo, ...rest } = await everywhere();
  const { target, foil } = await context.patchSweep({ ...rest, layers: [7], positions: [5] });
  assert.equal([target, foil], [paris, tokyo]);
});

test("an impossible patch sweep is refused in a sentence", async () => {
  const request = await everywhere();
  const sweep = (change: Partial<PatchSweepRequest>) => context.patchSweep({ ...request, ...change });
  await rejects(
    sweep({ corrupted: corrupted.slice(1) }),
    "INVALID_ARGUMENT",
    /^The clean prompt has 6 tokens and the corrupted one 5; positions need prompts of equal length\.$/,
  );
  await rejects(
    sweep({ positions: [6] }),
    "INVALID_ARGUMENT",
    /Position 6 does not exist; the prompt has 6 tokens, 0 to 5/,
  );
  await rejects(sweep({ positions: [1, 1] }), "INVALID_ARGUMENT", /Position 1 is listed twice/);
  await rejects(sweep({ positions: [] }), "INVALID_ARGUMENT", /needs layers, points and positions/);
  await rejects(sweep({ points: ["head_out"] }), "INVALID_ARGUMENT", /^Patching head_out needs heads\.$/);
  await rejects(
    sweep({ points: ["head_out"], heads: [4] }),
    "INVALID_ARGUMENT",
    /^Head 4 does not exist at head_out of block 0, which has 4\.$/,
  );
  await rejects(sweep({ points: ["head_out"], heads: [1, 1] }), "INVALID_ARGUMENT", /lists .* twice/);
  await rejects(sweep({ points: ["attention"] }), "INVALID_ARGUMENT", /cannot be changed/);
  await rejects(
    sweep({ corruptedPositions: [0] }),
    "INVALID_ARGUMENT",
    /needs as many positions in both prompts/,
  );
  await rejects(sweep({ layers: [8] }), "LAYER_OUT_OF_RANGE");
  await rejects(sweep({ target: model.info.nVocab }), "INVALID_ARGUMENT", /outside the vocabulary/);
  await rejects(
    sweep({ controls: new Float32Array(3) }),
    "INVALID_ARGUMENT",
    /have 3 values; 1024 are needed/,
  );
  const small = await model.createContext({ threads: 1, nCtx: 256, nBatch: 5, maxSequences: 2 });
  await rejects(
    small.patchSweep(request),
    "TOKEN_LIMIT",
    /takes a context of 12 and batches of 6 in two sequences/,
  );
  await small.close();
});

/** What each head of each layer read, [layers][tokens][heads] of its size. */
async function headsOf(tokens: Int32Array, heads: number): Promise<Float32Array[][][]> {
  await single.reset();
  const { layers: read } = await single.advance({ tokens, layers, points: ["head_out"] });
  return read.map(({ states }) => {
    const data = states?.data as Float32Array;
    const size = data.length / tokens.length / heads;
    return [...tokens.keys()].map((token) =>
      Array.from({ length: heads }, (_, head) =>
        data.slice((token * heads + head) * size, (token * heads + head + 1) * size),
      ),
    );
  });
}

/** One whole forward pass with one head of one token replaced. */
async function withHead(
  { target = 0, foil = 0 }: PatchSweepRequest,
  tokens: Int32Array,
  [layer, head, position]: [number, number, number],
  vector: Float32Array,
): Promise<number> {
  const edit = { layer, point: "head_out" as const, heads: [head], scale: 0, vector };
  const edits = [{ ...edit, positions: [[position, position]] as const }];
  const logits = await logitsOf(single, {
    tokens,
    layers: [layer],
    points: ["head_out"],
    rows: "last",
    edits,
  });
  return (logits[target] as number) - (logits[foil] as number);
}

const heads = [0, 1, 2, 3];

for (const denoise of [true, false]) {
  test(`every head equals a forward pass of its own: ${denoise ? "denoise" : "noise"}`, async () => {
    assert.equal(
      single.points.head_out.heads,
      layers.map(() => heads.length),
    );
    assert.equal(
      single.points.head_out.widths,
      layers.map(() => 128),
    );
    const request = { ...(await everywhere()), denoise, points: ["head_out"] as const, heads };
    const donor = await headsOf(denoise ? clean : corrupted, heads.length);
    const base = denoise ? corrupted : clean;
    const expected: number[] = [];
    for (const layer of layers) {
      for (const head of heads) {
        for (const position of positions) {
          const vector = donor[layer]?.[position]?.[head] as Float32Array;
          expected.push(await withHead(request, base, [layer, head, position], vector));
        }
      }
    }
    const sweep = await context.patchSweep(request);
    near(sweep.patched, expected, rounding, "heads");
    // At the two tokens behind the prompts' parting; the last block's heads count at the last token alone.
    assert.is(sweep.computedSites, 7 * 4 * 2 + 4 + 1);
    const known = [...sweep.changeLength].filter((length) => !Number.isNaN(length)).length;
    assert.is(known, 7 * 4 * 6 + 4);
  });
}

test("heads are listed between the points of their layer, with changes of their size", async () => {
  const request = { ...(await everywhere()), layers: [5, 2], positions: [5, 4] };
  const size = 32;
  const direction = Float32Array.from({ length: size }, (_, i) => Math.cos(i));
  const width = model.info.nEmbd;
  const controls = Float32Array.from([
    ...[0, 1].flatMap(() => [...new Float32Array(width).fill(1), ...direction, ...direction]),
  ]);
  const sweep = await context.patchSweep({
    ...request,
    points: ["attn_out", "head_out"],
    heads: [3, 1],
    controls,
  });
  assert.is(sweep.patched.length, 2 * 3 * 2);
  const alone = await context.patchSweep({ ...request, layers: [2], points: ["head_out"], heads: [1] });
  near(sweep.patched.slice(10), alone.patched, rounding, "head 2.1");
  const attention = await context.patchSweep({ ...request, layers: [5], points: ["attn_out"] });
  near(sweep.patched.slice(0, 2), attention.patched, rounding, "attention of block 5");
  const far = sweep.changeLength[10] as number;
  const mine = (await headsOf(corrupted, heads.length))[2]?.[5]?.[1] as Float32Array;
  const length = Math.hypot(...direction);
  const moved = mine.map((value, i) => value + (far / length) * (direction[i] as number));
  const expected = await withHead(request, corrupted, [2, 1, 5], moved);
  near([sweep.control?.[10] as number], [expected], rounding, "random change of head 2.1");
});

test("heads patched into themselves change nothing, to the bit", async () => {
  const request = { ...(await everywhere()), corrupted: clean, points: ["head_out"] as const, heads };
  const sweep = await context.patchSweep(request);
  assert.ok(sweep.patched.every((value) => value === sweep.clean));
  assert.is(sweep.computedSites, 1);
});

test("tokens that stand elsewhere in the other prompt are patched there", async () => {
  const longer = await model.tokenize("I think the capital of Japan is");
  assert.is(longer.length, clean.length + 2);
  const { target = 0, foil = 0 } = await everywhere();
  const request = {
    ...{ clean, corrupted: longer, target, foil, layers },
    ...{ positions: [5, 4], corruptedPositions: [7, 6] },
  };
  const donor = await statesOf(clean);
  const width = model.info.nEmbd;
  const expected: number[] = [];
  for (const layer of layers) {
    for (const [place, from] of [
      [7, 5],
      [6, 4],
    ] as const) {
      const vector = (donor[layer] as Float32Array).slice(from * width, (from + 1) * width);
      const edits = [{ layer, positions: [[place, place]] as const, scale: 0, vector }];
      const dead = layer === layers.length - 1 && place === 6;
      const logits = await logitsOf(single, {
        ...{ tokens: longer, layers: [layer], rows: "last" as const },
        edits: dead ? [] : edits,
      });
      expected.push((logits[target] as number) - (logits[foil] as number));
    }
  }
  const sweep = await context.patchSweep(request);
  near(sweep.patched, expected, rounding, "elsewhere");
  assert.ok(Math.abs((sweep.patched.at(-2) as number) - sweep.clean) <= 1e-5, "the last block's last token");
});

test("a block's input is the output of the block before it, in the last block, too", async () => {
  const request = await everywhere();
  const last = model.info.nLayer - 1;
  const at = async (layer: number, point: "block_in" | "block_out") =>
    (await context.patchSweep({ ...request, layers: [layer], points: [point] })).patched;
  for (const layer of [1, last]) {
    const found = await at(layer, "block_in");
    assert.equal(found, await at(layer - 1, "block_out"));
    // The last block's attention reads what stands before the last token, too.
    assert.ok(new Set(found.slice(0, -1)).size > 1, `block ${layer}: ${found}`);
  }
});

test("prompts that fill half of the context are swept, a token more is refused with the numbers", async () => {
  const wide = await model.createContext({ threads: 1, nCtx: 256, maxSequences: 2 });
  const long = (length: number) => ({
    clean: new Int32Array(length).fill(300),
    corrupted: new Int32Array(length).fill(301),
  });
  const request = { layers: [1], target: 1, foil: 2 };
  assert.is((await wide.patchSweep({ ...request, ...long(128), positions: [127] })).patched.length, 1);
  await rejects(
    wide.patchSweep({ ...request, ...long(129), positions: [128] }),
    "TOKEN_LIMIT",
    /^Patching prompts of 129 tokens takes a context of 258 and batches of 129 .* has 256, 256 and 2\.$/,
  );
  await wide.close();
});

test("progress of a patch sweep has both answers and only the finished sites", async () => {
  const request = await everywhere();
  const seen: { done: number; total: number; growth: PatchGrowth }[] = [];
  const sweep = await context.patchSweep({
    ...request,
    onProgress: (done, total, growth) => void seen.push({ done, total, growth }),
  });
  const { done, total, growth } = seen.at(-1)!;
  assert.equal([done, total], [sweep.computedSites, sweep.computedSites]);
  assert.equal(growth.patched, sweep.patched);
  for (const { growth } of seen) {
    assert.equal([growth.clean, growth.corrupted], [sweep.clean, sweep.corrupted]);
    for (const [at, value] of growth.patched.entries())
      assert.ok(Number.isNaN(value) || value === sweep.patched[at], `site ${at}`);
  }
});

test("a cancelled sweep ends, and the context works on", async () => {
  const request = await everywhere();
  const expected = await context.patchSweep(request);
  const cancelled = context.patchSweep({ ...request, signal: AbortSignal.abort() });
  await cancelled.then(
    () => assert.unreachable("it was cancelled"),
    (error) =>
      assert.is((error as Error).name === "NativeError" || (error as Error).name === "AbortError", true),
  );
  const again = await context.patchSweep(request);
  assert.equal([...again.patched], [...expected.patched]);
});

test.run();
