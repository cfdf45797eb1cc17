/** Requests of a patch sweep to a model, and what it refuses before that: a model of words that computes nothing. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type PatchSweepConfig, type Progress, UserError } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import type { ContextOptions, Model, PatchSweep, PatchSweepRequest } from "../../src/native/index.js";
import { patchSweep } from "../../src/operations/patch_sweep/run.js";
import { refusal } from "../support/refusal.js";
import { readNpz } from "./npz-reader.js";
import { wordModel } from "./word-model.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-patch-requests-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

interface Toy {
  blocks?: number;
  width?: number;
  heads?: number;
  /** Blocks that have attention. */
  attending?: number[];
  progress?: Parameters<NonNullable<PatchSweepRequest["onProgress"]>>[];
  /** Ends when it is asked for the first sweep. */
  ends?: boolean;
}

/** A model whose sweeps change every site's difference by its own number. */
function toy({ blocks = 4, width = 2, heads = 2, attending, progress = [], ends = false }: Toy = {}) {
  const contexts: ContextOptions[] = [];
  const requests: PatchSweepRequest[] = [];
  const closed: number[] = [];
  const all = Array.from({ length: blocks }, (_, layer) => layer);
  const having = attending ?? all;
  const point = (layers: number[], each: number) => ({
    ...{ supported: true, layers },
    ...{ widths: layers.map(() => each), heads: layers.map(() => heads) },
  });
  const points = {
    ...{ block_in: point(all, width), block_out: point(all, width), ffn_out: point(all, width) },
    ...{ attn_out: point(having, width), head_out: point(having, 3 * heads) },
    mid: { supported: false, reason: "No mid here.", layers: [] },
  };
  const model = {
    ...wordModel({ nLayer: blocks, nEmbd: width, nCtxTrain: 0, bytes: 1 }),
    createContext: async (options: ContextOptions) => {
      contexts.push(options);
      return {
        ...{ blockOutputs: { supported: true, sidePath: "" }, points },
        reset: async () => {},
        // A text is continued with its last token.
        advance: async ({ tokens }: { tokens: Int32Array }) => ({ next: { tokenIds: tokens.slice(-1) } }),
        patchSweep: async (request: PatchSweepRequest): Promise<PatchSweep> => {
          requests.push(request);
          if (ends) throw new UserError("It was asked.");
          for (const one of progress) request.onProgress?.(...one);
          const { layers, points: of = [], heads: own = [], positions } = request;
          const places = of.reduce((sum, one) => sum + (one === "head_out" ? own.length : 1), 0);
          const sites = layers.length * places * positions.length;
          const pair = requests.length - 1;
          const numbers = (from: number) => Float64Array.from({ length: sites }, (_, i) => from + i);
          return {
            ...{ clean: 2 + pair, corrupted: 1 - pair, restored: 2 + pair, target: 1, foil: 2 },
            ...{ patched: numbers(100 * pair), changeLength: numbers(0), rowLength: numbers(1) },
            ...(request.controls && { control: numbers(1000 + 100 * pair) }),
            ...{ computedSites: sites, computedTokens: sites, restoredTokens: 1 },
          } as unknown as PatchSweep;
        },
        close: async () => void closed.push(1),
      };
    },
  } as unknown as Model;
  return { model, contexts, requests, closed };
}

async function run(body: object, { model }: ReturnType<typeof toy> = toy()) {
  const config = {
    ...{ operation: "patch_sweep", model: "toy", direction: "denoise", points: ["block_out"], seed: 3 },
    ...{ controls: false, max_input_tokens: 4096, ...body },
  } as unknown as PatchSweepConfig;
  const place = mkdtempSync(join(folder, "artifacts-"));
  const told: Progress[] = [];
  const found = await patchSweep({
    ...{ config, model, artifacts: new Artifacts(place), clock: new StageClock() },
    openOther: () => Promise.reject(new Error("There is one model here.")),
    progress: (one) => told.push(one),
  });
  return { found, told, file: join(place, "patch-sweep.npz") };
}

/** A text of N tokens, including the BOS token. */
const text = (tokens: number, word = "a") => new Array(tokens - 1).fill(word).join(" ");
const pair = (tokens: number) => ({ clean: text(tokens), corrupted: text(tokens, "b") });

test("limits: 32,768 sites, 1 GiB of states and 16 times as many figures per sweep", async () => {
  const says = async (body: object, of: Toy = {}) => {
    const own = toy({ ...of, ends: true });
    const sentence = await refusal(() => run(body, own));
    assert.equal([own.requests.length, own.closed.length], [sentence === "It was asked." ? 1 : 0, 1]);
    return sentence;
  };
  const wide: Toy = { blocks: 256, width: 1 };
  assert.is(await says(pair(128), wide), "It was asked.");
  assert.is(
    await says(pair(129), wide),
    "256 layers times 129 positions are 33024 sites; the limit is 32768: choose fewer layers or positions.",
  );
  assert.is(
    await says({ ...pair(129), points: ["block_in", "block_out"] }, { ...wide, blocks: 128 }),
    "128 layers times 2 points times 129 positions are 33024 sites; the limit is 32768: choose fewer layers or positions.",
  );
  assert.is(
    await says({ ...pair(129), points: ["head_out"] }, { ...wide, blocks: 64, heads: 4 }),
    "64 layers times 4 heads times 129 positions are 33024 sites; the limit is 32768: choose fewer layers, heads or positions.",
  );
  assert.is(
    await says({ ...pair(129), points: ["attn_out", "head_out"] }, { ...wide, blocks: 64, heads: 3 }),
    "64 layers times (1 point and 3 heads) times 129 positions are 33024 sites; the limit is 32768: choose fewer layers, heads or positions.",
  );
  assert.is(
    await says(
      { ...pair(129), points: ["attn_out", "block_in", "head_out"] },
      { ...wide, blocks: 64, heads: 2 },
    ),
    "64 layers times (2 points and 2 heads) times 129 positions are 33024 sites; the limit is 32768: choose fewer layers, heads or positions.",
  );
  const marked = { clean: text(65, "[[a]]"), corrupted: text(65, "[[b]]"), positions: "aligned" };
  assert.is(
    await says({ ...marked, layers: Array.from({ length: 513 }, (_, i) => i) }, { ...wide, blocks: 513 }),
    "513 layers times 64 spans are 32832 sites; the limit is 32768: choose fewer layers or positions.",
  );

  // 2 prompts of 128 rows of 4 bytes a number.
  assert.is(await says({ ...pair(128), layers: [0] }, { width: 1024 ** 2 }), "It was asked.");
  assert.is(
    await says({ ...pair(128), layers: [0] }, { width: 1024 ** 2 + 1 }),
    "1 layers times 128 positions are 128 sites with 134217856 values, which take 1025 MiB for both prompts; the limit is 1024 MiB: choose fewer layers or positions.",
  );

  const pairs = (count: number) => new Array(count).fill(pair(128));
  assert.is(await says({ pairs: pairs(16) }, wide), "It was asked.");
  assert.is(
    await says({ pairs: pairs(17) }, wide),
    "256 layers times 128 positions are 32768 sites, 557056 for 17 pairs; the limit is 524288: choose fewer layers or positions.",
  );
});

test("missing layers, heads and points are refused, and the context is closed", async () => {
  const says = async (body: object, of: Toy = {}) => {
    const own = toy(of);
    const sentence = await refusal(() =>
      run("pairs" in body || "clean" in body ? body : { ...pair(3), ...body }, own),
    );
    assert.equal([own.requests.length, own.closed.length], [0, own.contexts.length]);
    return sentence;
  };
  assert.is(await says({ layers: [4] }), "layers: 4 does not exist; the model has 4 blocks, 0 to 3.");
  assert.is(await says({ points: ["mid"] }), "No mid here.");
  const twice = { clean: "a b c", corrupted: "a b c d" };
  assert.is(
    await says({ pairs: [pair(3), twice] }),
    'pairs[1].clean has 4 tokens and pairs[1].corrupted 5; both must have the same number of tokens: "<s>" "a" " b" " c" vs. "<s>" "a" " b" " c" " d".',
  );
  const [at, beyond] = [text(24), text(25)];
  const spelled = (tokens: number) => ['"<s>"', '"a"', ...new Array(tokens - 2).fill('" a"')].join(" ");
  assert.is(
    await says({ clean: at, corrupted: beyond }),
    `clean has 24 tokens and corrupted 25; both must have the same number of tokens: ${spelled(24)} vs. ${spelled(24)} ….`,
  );
  const lengths =
    "pairs[0] has 3 tokens and pairs[2] 4; token indices do not correspond between pairs of different lengths. Use negative positions, such as -1, or mark spans in the texts.";
  const uneven = [pair(3), pair(3), pair(4)];
  for (const positions of [undefined, [1, -1], [0]]) {
    assert.is(await says({ pairs: uneven, positions }), lengths);
  }
  const own = toy();
  await run({ pairs: uneven, positions: [-1, -3] }, own);
  assert.equal(
    own.requests.map(({ positions, corruptedPositions }) => [positions, corruptedPositions]),
    [
      [
        [2, 0],
        [2, 0],
      ],
      [
        [2, 0],
        [2, 0],
      ],
      [
        [3, 1],
        [3, 1],
      ],
    ],
  );
  const place = (tokens: number) => `has ${tokens} tokens, 0 to ${tokens - 1} or -${tokens} to -1.`;
  assert.is(await says({ positions: [3] }), `positions: 3 does not exist; clean ${place(3)}`);
  assert.is(await says({ positions: [-4] }), `positions: -4 does not exist; clean ${place(3)}`);
  assert.is(await says({ positions: [0, 2, -1] }), "positions: 2 and -1 are the same token of 3.");
  const marks = (clean: string, corrupted: string) => ({ clean, corrupted });
  assert.is(
    await says({ ...marks("[[a]] b", "[[a]] [[b]]"), positions: "aligned" }),
    "clean marks 1 span and corrupted 2; both must mark the same number.",
  );
  assert.is(
    await says({
      pairs: [marks("[[a]] b", "[[c]] b"), marks("[[a]] [[b]]", "[[c]] [[b]]")],
      positions: "aligned",
    }),
    "pairs[0] marks 1 span and pairs[1] 2; all pairs must mark the same number, because results are means over the pairs.",
  );
});

test("by default a sweep covers all tokens, blocks, their points and heads", async () => {
  const own = toy({ blocks: 5, attending: [1, 3, 4] });
  const { found } = await run({ ...pair(4), points: ["block_out", "attn_out"] }, own);
  const [request] = own.requests as [PatchSweepRequest];
  assert.equal(
    [request.layers, request.points, request.heads, request.positions, request.denoise],
    [[1, 3, 4], ["block_out", "attn_out"], undefined, [0, 1, 2, 3], true],
  );
  assert.equal([found.layers, found.sites.length], [[1, 3, 4], 24]);
  assert.equal(own.contexts, [{ nCtx: 4 + 512, nBatch: 512, maxSequences: 256 }]);
  const heads = toy({ blocks: 5, attending: [1, 3] });
  await run(
    {
      clean: "a b",
      corrupted: "a c",
      points: ["head_out"],
      direction: "noise",
      target_token: " b",
      foil_token: " c",
    },
    heads,
  );
  const [of] = heads.requests as [PatchSweepRequest];
  assert.equal(
    [of.layers, of.heads, of.denoise, [...of.clean], [...of.corrupted]],
    [[1, 3], [0, 1], false, [0, 1, 2], [0, 1, 3]],
  );
  assert.equal([of.target, of.foil, of.controls], [2, 3, undefined]);
  const long = toy();
  await run(pair(600), long);
  assert.equal(long.contexts, [{ nCtx: 600 + 600, nBatch: 600, maxSequences: 256 }]);
});

test("a given target or foil without its leading space is asked about", async () => {
  const noteOf = async (targets: object) =>
    (await run({ clean: "a b", corrupted: "a c", ...targets })).found.note;
  const note = await noteOf({ target_token: "b", foil_token: "c" });
  assert.match(
    note,
    /^The target token "b" differs from the model's answer by its leading space\. Did you mean " b"\? The foil token "c" differs from .* Did you mean " c"\? Each site /,
  );
  for (const fine of [{}, { target_token: " b", foil_token: " c" }, { target_token: "c", foil_token: "b" }]) {
    assert.match(await noteOf(fine), /^Each site /);
  }
});

test("a control has one direction per block and pair, at all its points", async () => {
  const controls = async (body: object) => {
    const own = toy();
    await run({ ...("pairs" in body ? {} : pair(3)), controls: true, ...body }, own);
    return own.requests.map((request) => [...(request.controls as Float32Array)]);
  };
  const [both] = (await controls({ layers: [1, 2], points: ["block_in", "block_out"] })) as [number[]];
  assert.is(both.length, 8);
  assert.equal(both.slice(0, 2), both.slice(2, 4));
  assert.equal(both.slice(4, 6), both.slice(6, 8));
  assert.not.equal(both.slice(0, 2), both.slice(4, 6));
  const [alone] = (await controls({ layers: [2] })) as [number[]];
  assert.equal(alone, both.slice(4, 6), "whatever else is patched");
  for (let at = 0; at < 8; at += 2) assert.ok(Math.abs(Math.hypot(both[at]!, both[at + 1]!) - 1) < 1e-6);
  const two = await controls({ layers: [2], pairs: [pair(3), pair(3)] });
  assert.equal(two[0], alone);
  assert.not.equal(two[1], alone);
  // The second pair's are those of the next seed.
  assert.equal(two[1], (await controls({ layers: [2], seed: 4 }))[0]);
  const [heads] = (await controls({ layers: [1], points: ["head_out"] })) as [number[]];
  assert.is(heads.length, 6);
  assert.equal(heads.slice(0, 3), heads.slice(3));
});

test("progress shows shares of the gap as they grow, until there are too many", async () => {
  const growth = (clean: number, corrupted: number, ...patched: number[]) => ({
    ...{ clean, corrupted, patched: Float64Array.from(patched) },
  });
  const progress: Toy["progress"] = [
    [1, 4, growth(3, 1, 2, Number.NaN)],
    [4, 4, growth(3, 1, 1 + 2 / 3, 3)],
    [0, 0, growth(1, 1 - 1e-7, 1, 1)],
    [0, 0, growth(1e-6, 0, 5e-7, 1e-6)],
  ];
  const body = { pairs: [pair(2), pair(2)], layers: [1] };
  const { told } = await run(body, toy({ progress }));
  const grown = (index: number, recovery: (number | null)[]) => ({
    ...{ pair: index, pairs: 2, layers: [1], points: ["block_out"], positions: [0, 1] },
    ...{ clean: ["<s>", "a"], corrupted: ["<s>", "b"], recovery },
  });
  assert.equal(
    told,
    [0, 1].flatMap((index) => [
      { stage: "patch", done: index + 0.25, total: 2, growth: grown(index, [0.5, null]) },
      { stage: "patch", done: index + 1, total: 2, growth: grown(index, [0.3333, 1]) },
      { stage: "patch", done: index, total: 2, growth: grown(index, [null, null]) },
      { stage: "patch", done: index, total: 2, growth: grown(index, [0.5, 1]) },
    ]),
  );
  const noise = await run({ ...body, direction: "noise" }, toy({ progress: progress.slice(0, 1) }));
  assert.equal(noise.told[0]!.growth!.recovery, [0.5, null]);
  const plain = async (more: object, of: Toy = {}) =>
    (await run({ ...pair(2), ...more }, toy({ progress: progress.slice(0, 1), ...of }))).told;
  assert.equal(await plain({ points: ["head_out"] }), [{ stage: "patch", done: 0.25, total: 1 }]);
  // 4096 sites are reported, more are not.
  const grows = async (tokens: number) =>
    (await plain(pair(tokens), { blocks: 64 })).map((one) => "growth" in one);
  assert.equal([await grows(64), await grows(65)], [[true], [false]]);
});

test("arrays of all pairs keep points separate, with one more dimension for heads", async () => {
  const body = { pairs: [pair(2), pair(2)], layers: [1, 3], controls: true };
  const { file } = await run({ ...body, points: ["block_out", "head_out"] });
  const arrays = readNpz(readFileSync(file));
  const shapes = Object.fromEntries([...arrays].map(([name, { shape }]) => [name, shape]));
  assert.equal(shapes, {
    ...{ layers: [2], heads: [2], positions: [2], clean: [2], corrupted: [2], restored: [2] },
    ...{ logit_difference: [2, 2, 2], logit_difference_head_out: [2, 2, 2, 2] },
    ...{ control: [2, 2, 2], control_head_out: [2, 2, 2, 2] },
  });
  const data = (name: string) => [...arrays.get(name)!.data];
  // Places of a pair: block 1, its two heads, block 3, its two heads; two positions each.
  assert.equal(data("logit_difference"), [0, 1, 6, 7, 100, 101, 106, 107]);
  const heads = [2, 3, 4, 5, 8, 9, 10, 11];
  assert.equal(data("logit_difference_head_out"), [...heads, ...heads.map((value) => 100 + value)]);
  assert.equal(data("control"), [1000, 1001, 1006, 1007, 1100, 1101, 1106, 1107]);
  assert.equal(
    [data("clean"), data("corrupted"), data("restored")],
    [
      [2, 3],
      [1, 0],
      [2, 3],
    ],
  );
  assert.equal(
    [data("layers"), data("heads"), data("positions")],
    [
      [1, 3],
      [0, 1],
      [0, 1],
    ],
  );
  const marked = { clean: "[[a]] b [[c]]", corrupted: "[[d e]] b [[c]]", positions: "aligned" };
  const aligned = readNpz(readFileSync((await run({ ...marked, layers: [1] })).file));
  assert.equal([...(aligned.get("clean_positions")?.data ?? [])], [1, 3]);
  assert.equal([...(aligned.get("corrupted_positions")?.data ?? [])], [2, 4]);
  assert.not(aligned.has("control"));
  assert.not(aligned.has("heads"));
});

test.run();
