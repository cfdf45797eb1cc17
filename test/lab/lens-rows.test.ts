/** Which rows a lens is fitted on and which it is judged by: an extraction by hand, and a model that reads nothing. */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Progress } from "../../src/contracts/index.js";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { extractionFormat } from "../../src/lab/extraction/folder.js";
import { openExtraction } from "../../src/lab/extraction/open-extraction.js";
import { fitLens } from "../../src/lab/training/lens.js";
import { modelFingerprint } from "../../src/library/index.js";
import { Lenses } from "../../src/library/lenses.js";
import type { LensRequest, Model } from "../../src/native/index.js";
import { command } from "../cli/in-process.js";
import { TestRandom } from "../support/random.js";
import { refusal } from "../support/refusal.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-lens-rows-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const lenses = new Lenses(folder);
const path = join(folder, "model.gguf");
writeFileSync(path, "no model at all");

/** The last block's row of each layer's row: two maps that a regression has to find. */
const maps = {
  0: { matrix: [2, 0, 1, -1], bias: [0.5, -0.25] },
  2: { matrix: [0, 1, -3, 0.5], bias: [1, 2] },
} as const;

/** The row that a layer needs for the last layer's row: the inverse of its map. */
function before(layer: 0 | 2, [a, b]: readonly [number, number]): number[] {
  const [p, q, r, s] = maps[layer].matrix;
  const [x, y] = [a - maps[layer].bias[0], b - maps[layer].bias[1]];
  const determinant = p * s - q * r;
  return [(s * x - q * y) / determinant, (p * y - r * x) / determinant];
}

interface Text {
  index: number;
  /** Of each token: rows of the blocks 0, 2 and 3. */
  rows: [number[], number[], number[]][];
}

const random = new TestRandom(11);

/** A row of the last block, of any length, and those that the maps lead to it. */
function goodRows(): Text["rows"][number] {
  const angle = 2 * Math.PI * random.uniform();
  const unit = [Math.SQRT2 * Math.cos(angle), Math.SQRT2 * Math.sin(angle)] as const;
  const length = 0.5 + 3 * random.uniform();
  return [before(0, unit), before(2, unit), unit.map((value) => value * length)];
}

/** Rows that no map leads anywhere: what must not be fitted on. */
const wild = (): Text["rows"][number] => [
  [50 * random.normal(), 50 * random.normal()],
  [50 * random.normal(), 50 * random.normal()],
  [random.normal(), random.normal()],
];

/** Texts whose first token, and the whole of whose every tenth one, is not to be fitted on. */
function textsOf(count: number, length: number, first = 0): Text[] {
  return Array.from({ length: count }, (_, i) => ({
    index: first + i,
    rows: Array.from({ length }, (_, token) => (token === 0 || (first + i) % 10 === 9 ? wild() : goodRows())),
  }));
}

async function extraction(name: string, shards: Text[][], source: object = {}) {
  const place = mkdtempSync(join(folder, `${name}-`));
  const told = shards.map((texts, number) => {
    const rows = texts.flatMap((text) => text.rows);
    const starts = [0];
    for (const text of texts) starts.push(starts.at(-1)! + text.rows.length);
    const ints = (numbers: number[]) => ({ shape: [numbers.length], data: Int32Array.from(numbers) });
    const layer = (which: number) => ({
      shape: [rows.length, 2],
      data: Float32Array.from(rows.flatMap((row) => row[which]!)),
    });
    const file = `shard-${number}.safetensors`;
    writeFileSync(
      join(place, file),
      encodeSafetensors({
        text_indices: ints(texts.map(({ index }) => index)),
        text_starts: ints(starts),
        token_ids: ints(rows.map(() => 1)),
        ...{ layer_0: layer(0), layer_2: layer(1), layer_3: layer(2) },
      }),
    );
    return { file, rows: rows.length };
  });
  const head = {
    format: extractionFormat,
    source: {
      ...{ model_fingerprint: await modelFingerprint(path), layers: [3, 2, 0], hidden: 2 },
      ...{ rows: "all", dtype: "f32", skipped_in_mean: 1, ...source },
    },
    made_with: { model: "toy" },
  };
  const sum = told.reduce((all, { rows }) => all + rows, 0);
  const index = { ...head, complete: true, texts: shards.flat().length, rows: sum, shards: told };
  writeFileSync(join(place, "index.json"), JSON.stringify(index));
  return openExtraction(place);
}

/** A model of four blocks of two values whose lens distances the test sets. */
function model(
  asked: LensRequest[],
  divergence: (request: LensRequest, place: number) => number = () => 1,
  lens: object = { supported: true },
) {
  const closed: number[] = [];
  const toy = {
    info: { nLayer: 4, nEmbd: 2, addBos: true },
    createContext: async () => ({
      lens,
      readLens: async (request: LensRequest) => {
        asked.push(request);
        return request.places.map((_, place) => ({
          divergences: new Float32Array(request.output!.length / 2).fill(divergence(request, place)),
        }));
      },
      close: async () => void closed.push(1),
    }),
  } as unknown as Model;
  return { toy, closed };
}

const flat = (parts: Float32Array[]) => parts.flatMap((part) => [...part]);

test("a lens is fitted on nine texts in ten without first tokens, judged on the tenth", async () => {
  const shards = [textsOf(400, 30), textsOf(350, 30, 400)];
  const made = await extraction("many", shards);
  const asked: LensRequest[] = [];
  // Untranslated 1 away, translated a half at block 0, and at block 2 as far as without.
  const { toy, closed } = model(asked, (_, place) => [1, 0.5, 1, 1][place]!);
  const told: Progress[] = [];
  const stored = await fitLens({
    ...{ extraction: made, model: toy, path, lenses, name: "fitted" },
    progress: (progress) => void told.push(progress),
  });

  const open = await lenses.open("fitted");
  assert.equal([stored.layers, stored.texts, stored.trained_on, stored.n_embd], [[0, 2], 675, "toy", 2]);
  assert.equal(stored.fit, [
    { layer: 0, divergence: 0.5, plain_divergence: 1 },
    { layer: 2, divergence: 1, plain_divergence: 1 },
  ]);
  // 675 texts of 29 tokens after the first.
  assert.equal(stored.notes, [
    "Least squares from each block's output to the last block's, on 19575 tokens of 675 texts; every 10th text was held out.",
    "At block 2 it is not closer to the output than the logit lens.",
  ]);
  assert.ok(open.translator(0) !== undefined && open.translator(3) === undefined);

  const heldOut = shards.flat().filter(({ index }) => index % 10 === 9);
  const rows = heldOut.flatMap((text) => text.rows.slice(1)).slice(0, 2048);
  assert.is(rows.length, 2048);
  const states = (which: number) => [...Float32Array.from(rows.flatMap((row) => row[which]!))];
  assert.equal(flat(asked.map(({ output }) => output!)), states(2));
  for (const [place, which] of [0, 0, 1, 1].entries()) {
    assert.equal(flat(asked.map(({ places }) => places[place]!.states)), states(which), `place ${place}`);
  }
  assert.ok(asked.every(({ places, top }) => places.length === 4 && top === 1));
  assert.equal(
    asked[0]!.places.map(({ translator }) => translator !== undefined),
    [false, true, false, true],
  );

  assert.equal(told.slice(0, 3), [
    { stage: "fit", done: 0, total: 2 },
    { stage: "fit", done: 1, total: 2 },
    { stage: "judge", done: 0, total: 2048 },
  ]);
  let done = 0;
  const judged = asked.map(({ output }) => {
    const stage = { stage: "judge", done, total: 2048 };
    done += output!.length / 2;
    return stage;
  });
  assert.equal(told.slice(2), judged);
  assert.is(closed.length, 1);
});

test("the map points rows in the last block's direction, whatever their length", async () => {
  // A row of the last block that is nothing points nowhere.
  const texts = textsOf(20, 12);
  texts[3]!.rows[5] = [
    [7, -7],
    [7, -7],
    [0, 0],
  ];
  const made = await extraction("few", [texts]);
  const matrices: number[][] = [];
  const keep = lenses.keep.bind(lenses);
  const watching = Object.assign(Object.create(lenses) as Lenses, {
    keep: async (...[name, lens, about]: Parameters<Lenses["keep"]>) => {
      for (const layer of lens.layers) {
        const { matrix, bias } = await lens.read(layer);
        matrices.push([...matrix, ...(bias ?? [])]);
      }
      return keep(name, lens, about);
    },
    get: lenses.get.bind(lenses),
  });
  await fitLens({
    ...{ extraction: made, model: model([]).toy, path, lenses: watching, name: "few", progress: () => {} },
  });
  for (const [i, layer] of ([0, 2] as const).entries()) {
    const wanted = [...maps[layer].matrix, ...maps[layer].bias];
    for (const [j, value] of wanted.entries()) {
      assert.ok(Math.abs(matrices[i]![j]! - value) < 2e-2, `block ${layer}: ${matrices[i]} for ${wanted}`);
    }
  }
});

test("lens fits are refused with too few rows, none held out, or another model's rows", async () => {
  const says = async (
    made: Awaited<ReturnType<typeof extraction>>,
    own = model([]).toy,
    signal?: AbortSignal,
  ) =>
    refusal(() =>
      fitLens({ extraction: made, model: own, path, lenses, name: "none", progress: () => {}, signal }),
    );
  // Four rows for each of three numbers.
  assert.is(
    await says(
      await extraction("eleven", [
        textsOf(11, 2).slice(0, 9),
        [{ index: 10, rows: [wild(), wild(), wild(), wild()] }],
      ]),
    ),
    "The extraction has no held-out texts: every 10th text is used to evaluate the lens.",
  );
  assert.is(
    await says(await extraction("eleven", [textsOf(11, 2), textsOf(1, 2, 11)])),
    "The extraction has 11 rows to fit on; a lens of width 2 needs 12.",
  );
  await fitLens({
    ...{ extraction: await extraction("twelve", [textsOf(11, 2), textsOf(1, 3, 11)]), model: model([]).toy },
    ...{ path, lenses, name: "twelve", progress: () => {} },
  });
  const sound = [textsOf(20, 5)];
  const other = await extraction("other", sound, { model_fingerprint: "f".repeat(64) });
  const fingerprint = (await modelFingerprint(path)).slice(0, 16);
  assert.is(
    await says(other),
    `The extraction was made with a different model (${"f".repeat(16)}, not ${fingerprint}).`,
  );
  const place = join(folder, "of-another");
  cpSync(other.folder, place, { recursive: true });
  const told = await command(["lens", "fit", "none", "--from", place, "--quiet"]);
  assert.is(told.code, 1);
  assert.match(
    told.stderr,
    /^tapline: The extraction was made with a different model \(f{16}, not [0-9a-f]{16}\)\.$/m,
  );
  const { closed, toy } = model([], () => 1, { supported: false, reason: "No lens here." });
  assert.is(await says(await extraction("no-lens", sound), toy), "No lens here.");
  assert.is(closed.length, 1, "its context is closed");
  for (const [source, sentence] of [
    [
      { layers: [0, 2] },
      "The extraction has the blocks 0, 2; a lens needs the last block, 3, and at least one other.",
    ],
    [
      { layers: [3] },
      "The extraction has the blocks 3; a lens needs the last block, 3, and at least one other.",
    ],
    [
      { hidden: 3 },
      "The extraction has the blocks 3, 2, 0; a lens needs the last block, 3, and at least one other.",
    ],
    [
      { rows: "last" },
      "The extraction has the last token's activation of each text; a lens is fitted on every token's (tapline extract --rows all).",
    ],
    [
      { rows: "mean" },
      "The extraction has the mean activation of each text; a lens is fitted on every token's (tapline extract --rows all).",
    ],
  ] as const) {
    assert.is(await says(await extraction("odd", sound, source)), sentence);
  }
  assert.equal((await lenses.list()).map(({ name }) => name).sort(), ["few", "fitted", "twelve"]);
  const stopped = await extraction("stopped", sound);
  const signal = AbortSignal.abort(new Error("enough"));
  const ended = await fitLens({
    ...{ extraction: stopped, model: model([]).toy, path, lenses, name: "none", progress: () => {}, signal },
  }).then(
    () => "fitted",
    (error: Error) => error.message,
  );
  assert.is(ended, "enough");
});

test.run();
