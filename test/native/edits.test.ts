import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Context, type Edit, Model, type Positions } from "../../src/native/index.js";
import { argmax, probabilityOf } from "../support/sequential-sweep.js";
import { apart, demo, logitsOf, someTokens } from "./demo-model.js";

const layer = 4;
let model: Model;
let context: Context;
let tokens: Int32Array;
/** The row of the last token at the layer, and a direction of length 3. */
let row: number[];
let vector: Float32Array;

test.before(async () => {
  model = await Model.open(demo);
  context = await model.createContext({ threads: 1, nCtx: 512, maxSequences: 16 });
  tokens = await model.tokenize("The capital of France is");
  const { layers } = await context.advance({ tokens, layers: [layer], rows: "last" });
  row = [...layers[0]!.states!.data];
  const raw = row.map((_, i) => Math.sin(1.3 * i) + 0.2);
  vector = Float32Array.from(raw.map((x) => (3 * x) / length(raw)));
});
test.after(() => model.close());

const length = (v: readonly number[]) => Math.sqrt(v.reduce((sum, x) => sum + x * x, 0));
const dot = (a: readonly number[], b: readonly number[]) => a.reduce((sum, x, i) => sum + x * b[i]!, 0);
const unitOf = (v: Float32Array) => [...v].map((x) => x / length([...v]));

/** The next token's logits where the last row of the layer is `values`. */
const replaced = (values: number[]) =>
  logitsOf(context, {
    tokens,
    layers: [layer],
    rows: "last",
    edits: [{ layer, scale: 0, vector: Float32Array.from(values) }],
  });

/** Rows written out by hand: what each edit should make of h, with u the unit vector and p = h.u. */
const expected: Array<
  [what: string, edit: Omit<Edit, "layer">, (h: number[], u: number[], p: number) => number[]]
> = [
  [
    "the vector as it is, 2.5 times",
    { strength: 2.5 },
    (h, u) => h.map((x, i) => x + 2.5 * 3 * (u[i] as number)),
  ],
  ["the unit vector", { strength: -40, unit: "unit" }, (h, u) => h.map((x, i) => x - 40 * (u[i] as number))],
  [
    "a share of the row's length",
    { strength: 0.7, unit: "row_norm" },
    (h, u) => h.map((x, i) => x + 0.7 * length(h) * (u[i] as number)),
  ],
  [
    "scaled, then a share of the row's length before",
    { scale: 0.5, strength: 0.2, unit: "row_norm" },
    (h, u) => h.map((x, i) => 0.5 * x + 0.2 * length(h) * (u[i] as number)),
  ],
  [
    "the component along it taken out",
    { kind: "project_out" },
    (h, u, p) => h.map((x, i) => x - p * (u[i] as number)),
  ],
  [
    "mirrored",
    { kind: "project_out", strength: 2 },
    (h, u, p) => h.map((x, i) => x - 2 * p * (u[i] as number)),
  ],
  [
    "the projection held up by a bound in lengths",
    { kind: "clamp", unit: "unit", min: 120 },
    (h, u, p) => h.map((x, i) => x + (120 - p) * (u[i] as number)),
  ],
  [
    "held down by a bound in vectors, half of the way",
    { kind: "clamp", unit: "vector", max: -50, strength: 0.5 },
    (h, u, p) => h.map((x, i) => x + 0.5 * (-150 - p) * (u[i] as number)),
  ],
  [
    "between shares of the row's length",
    { kind: "clamp", unit: "row_norm", min: 0.5, max: 0.75 },
    (h, u, p) =>
      h.map((x, i) => x + (Math.min(Math.max(p, 0.5 * length(h)), 0.75 * length(h)) - p) * (u[i] as number)),
  ],
];

for (const [what, edit, byHand] of expected) {
  test(`an edit does what is written by hand, and measures it: ${what}`, async () => {
    const u = unitOf(vector);
    const wanted = byHand(row, u, dot(row, u));
    const edits = [{ layer, vector, ...edit }];
    await context.reset();
    const request = { tokens, layers: [layer], rows: "last" as const, logits: true };
    const { logits, effects } = await context.advance({ ...request, edits });
    // A last bit of the row may be another, and the cache keeps what later blocks make of it in half precision.
    const far = apart(logits!, await replaced(wanted));
    assert.ok(far < 1e-3, `${far} apart`);
    const plain = await logitsOf(context, { ...request, edits: [] });
    assert.ok(apart(logits!, plain) > 5e-3, "the edit changes nothing");
    const [effect] = effects!;
    assert.is(effect!.rows, 1);
    assert.ok(Math.abs(effect!.rowLength / length(row) - 1) < 1e-6);
    const change = length(wanted.map((x, i) => x - row[i]!));
    assert.ok(Math.abs(effect!.changeLength / change - 1) < 1e-5, `${effect!.changeLength} is not ${change}`);
  });
}

test("edits that need no change write none", async () => {
  const request = { tokens, layers: [layer], rows: "last" as const };
  const plain = await logitsOf(context, request);
  const p = dot(row, unitOf(vector));
  for (const edit of [
    { kind: "clamp", unit: "unit", min: p - 1, max: p + 1 },
    { kind: "clamp", unit: "row_norm" },
    { kind: "clamp", unit: "unit", min: p + 100, strength: 0 },
    { kind: "project_out", strength: 0 },
    { unit: "row_norm", strength: 0 },
  ] as const) {
    const edits = [{ layer, vector, ...edit }];
    assert.equal(await logitsOf(context, { ...request, edits }), plain);
    await context.reset();
    const { effects } = await context.advance({ ...request, edits });
    assert.is(effects![0]!.changeLength, 0);
    assert.ok(effects![0]!.rowLength > 1);
  }
});

test("a zero vector is refused as a direction and never divides", async () => {
  const request = { tokens, layers: [layer], rows: "last" as const };
  const plain = await logitsOf(context, request);
  for (const kind of ["affine", "project_out"] as const) {
    const edits = [{ layer, kind, unit: "unit" as const, vector: new Float32Array(vector.length) }];
    assert.equal(await logitsOf(context, { ...request, edits }), plain);
  }
});

/** Whether a token is edited, said once more: by its index and the prompt's length. */
const reached: Array<[Positions, (index: number, n: number) => boolean]> = [
  ["last", (index, n) => index >= n - 1],
  ["all", () => true],
  ["prompt", (index, n) => index < n],
  ["generated", (index, n) => index >= n],
  [[[0, 0]], (index) => index === 0],
  [[[-3, -2]], (index, n) => index === n - 3 || index === n - 2],
  [
    [
      [1, 2],
      [-1, 8],
    ],
    (index, n) => index === 1 || index === 2 || (index >= n - 1 && index <= 8),
  ],
  [[[40, 50]], () => false],
];

for (const [positions, reaches] of reached) {
  test(`a sweep edits the rows that were asked for: ${JSON.stringify(positions)}`, async () => {
    const maxTokens = 6;
    const prompts = [tokens, await model.tokenize("Anna gave the book to Tom. Tom gave the book")];
    const plans = [
      [{ layer: 2, vector, strength: 30, positions }],
      [
        { layer: 1, scale: 1.2, positions },
        { layer: 5, kind: "project_out" as const, vector, positions },
      ],
      [{ layer: 3, scale: 1, positions }],
    ];
    const trials = await context.sweep({ prompts, plans, maxTokens });
    const single = await model.createContext({ threads: 1, nCtx: 64 });
    for (const [p, trial] of trials.entries()) {
      const n = prompts[p]!.length;
      for (const [r, { probability, continuation, effects }] of trial.rows.entries()) {
        const text = [...prompts[p]!];
        // Every step is a pass over the whole text, with each edited row named by its index.
        for (const [step, token] of continuation.entries()) {
          const ranges = text.flatMap((_, i) => (reaches(i, n) ? [[i, i] as const] : []));
          const edits = ranges.length === 0 ? [] : plans[r]!.map((edit) => ({ ...edit, positions: ranges }));
          const layers = [...new Set(plans[r]!.map((edit) => edit.layer))];
          await single.reset();
          const { logits } = await single.advance({
            tokens: Int32Array.from(text),
            layers,
            edits,
            logits: true,
          });
          if (step === 0) {
            const oracle = probabilityOf(logits!, trial.target);
            assert.ok(Math.abs(probability - oracle) < 1e-4, `row ${r}: ${probability} and ${oracle}`);
          }
          const best = argmax(logits!);
          assert.ok(
            token === best || logits![best]! - logits![token]! < 1e-3,
            `prompt ${p} row ${r} step ${step}: ${token} and ${best}`,
          );
          text.push(token);
        }
        // The last generated token is never computed; an end-of-generation token is not in the text, but was reached.
        const computed = n + Math.min(continuation.length, maxTokens - 1);
        const rows = Array.from({ length: computed }, (_, i) => reaches(i, n)).filter(Boolean).length;
        for (const effect of effects) assert.is(effect.rows, rows, `row ${r}`);
      }
      const { effects, ...neutral } = trial.rows[2]!;
      const { effects: none, ...baseline } = trial.baseline;
      assert.equal(neutral, baseline);
      assert.equal(none, []);
      assert.is(effects[0]!.changeLength, 0);
    }
    await single.close();
  });
}

test("plans of different positions share what none of them edits", async () => {
  const all: Positions[] = ["last", "all", [[2, 2]], "prompt", [[-2, -2]], "generated"];
  const prompts = [tokens, someTokens(9, model.info.nVocab)];
  const planOf = (positions: Positions) => [{ layer, vector, strength: 20, positions }];
  const together = await context.sweep({ prompts, plans: all.map(planOf), maxTokens: 4 });
  for (const [i, positions] of all.entries()) {
    const alone = await context.sweep({ prompts, plans: [planOf(positions)], maxTokens: 4 });
    for (const [p, trial] of alone.entries()) {
      const [a, b] = [trial.rows[0]!, together[p]!.rows[i]!];
      assert.ok(Math.abs(a.probability - b.probability) < 1e-4);
      assert.is(a.effects[0]!.rows, b.effects[0]!.rows);
      assert.ok(Math.abs(a.effects[0]!.changeLength - b.effects[0]!.changeLength) < 1e-3);
    }
  }
});

test.run();
