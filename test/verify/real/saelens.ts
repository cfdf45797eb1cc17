import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { checkSubmission, type ExtractConfig } from "../../../src/contracts/index.js";
import { Artifacts } from "../../../src/lab/artifacts.js";
import { StageClock } from "../../../src/lab/stage-clock.js";
import { trainFromExtraction } from "../../../src/lab/training/from-extraction.js";
import { Dictionaries } from "../../../src/library/index.js";
import { decodeRows, encodeRows, Model, type SparseRows } from "../../../src/native/index.js";
import { extract } from "../../../src/operations/extract/run.js";
import { demo } from "../../native/demo-model.js";
import { runProgram } from "../../support/real/cache.js";
import { environment } from "../../support/real/environments.js";
import type { Figure } from "../numerics/check.js";

const script = fileURLToPath(new URL("./saelens.py", import.meta.url));

interface Case {
  name: string;
  path: string;
  hidden: number;
  rows: number[];
  /** [rows, features], as SAELens encodes. */
  features: number[];
  decoded: number[];
}

/**
 * Dictionaries of every architecture that SAELens writes, and those that tapline trains: SAELens's activations and
 * reconstructions against ours.
 */
export async function saelens(work: string): Promise<Figure[]> {
  const made = await sayOf([work]);
  const own = await trainedHere(work);
  return [
    ...(await compared(made, 3, work)),
    ...(await compared(own, trainedLayer, work)).map((figure) => ({
      ...figure,
      what: `trained here, ${figure.what}`,
      ...(figure.atLeast === true && { bound: figure.what === "dictionaries" ? 11 : 100 }),
    })),
  ];
}

async function sayOf(words: string[]): Promise<Case[]> {
  const said = await runProgram(await environment("saelens"), ["-B", script, ...words], {
    HF_HUB_OFFLINE: "1",
  });
  return JSON.parse(said.trim().split("\n").at(-1) as string) as Case[];
}

const trainedLayer = 5;

/**
 * One of each architecture, on block outputs of the embedded model, and transcoders of its MLP, as SAELens reads what was
 * written for it.
 */
async function trainedHere(work: string): Promise<Case[]> {
  const model = await Model.open(demo);
  try {
    const text = await readFile(
      fileURLToPath(new URL("../../../docs/examples/reviews.csv", import.meta.url)),
      "utf8",
    );
    const lines = text
      .split("\n")
      .slice(1, 120)
      .filter((line) => line !== "");
    const data = join(work, "texts.txt");
    await writeFile(data, lines.join("\n"));
    const extracted = async (name: string, points: object) => {
      const from = join(work, name);
      const body = {
        operation: "extract",
        model: "demo",
        layers: [trainedLayer],
        data,
        out: from,
        ...points,
      };
      const openOther = () => Promise.reject(new Error("There is one model here."));
      const config = checkSubmission(body) as ExtractConfig;
      const artifacts = new Artifacts(work);
      await extract({ config, model, artifacts, progress: () => {}, clock: new StageClock(), openOther });
      return from;
    };
    const settings = { features: 256, steps: 200, batch: 256, seed: 1 };
    const architectures = ["relu", "topk", "batchtopk", "jumprelu"] as const;
    const cases: Case[] = [];
    for (const target of [undefined, "ffn_out"] as const) {
      const from = await extracted(
        target === undefined ? "rows" : "mlp",
        target === undefined ? {} : { point: "ffn_in", target },
      );
      const paths: string[] = [];
      for (const architecture of architectures) {
        for (const skip of target === undefined ? [false] : [false, true]) {
          // SAELens has no TopK transcoder with a skip term.
          if (skip && architecture === "topk") continue;
          const out = join(work, `trained-${target ?? "block_out"}-${architecture}-${skip}`);
          await trainFromExtraction({ from, architecture, target, skip, ...settings }, out);
          paths.push(join(out, `saelens-layer-${trainedLayer}`));
        }
      }
      const index = JSON.parse(await readFile(join(from, "index.json"), "utf8"));
      const [shard] = index.shards;
      const bytes = await readFile(join(from, shard.file));
      const start = shard.offsets[`layer_${trainedLayer}`];
      const some = join(work, `some-${target ?? "rows"}`);
      await writeFile(some, bytes.subarray(start, start + 24 * 4 * index.source.hidden));
      cases.push(...(await sayOf([work, some, ...paths])));
    }
    // SAELens's results for its layout, against the other layout that was written with it.
    return cases.map((each) => ({ ...each, path: dirname(each.path) }));
  } finally {
    await model.close();
  }
}

async function compared(cases: readonly Case[], layer: number, work: string): Promise<Figure[]> {
  const dictionaries = new Dictionaries(join(work, "home"));
  const figures: Figure[] = [{ what: "dictionaries", value: cases.length, bound: 16, atLeast: true }];
  let active = 0;
  let apart = 0;
  let encoded = 0;
  let decoded = 0;
  for (const { name, path, hidden, rows, features, decoded: expected } of cases) {
    const stored = await dictionaries.add("one", path);
    if (stored.layer !== layer || stored.n_embd !== hidden)
      throw new Error(`${name}: ${JSON.stringify(stored)}`);
    const { places } = await dictionaries.open("one");
    const states = Float32Array.from(rows);
    const sparse = await encodeRows(places, states, { threads: 2 });
    const found = dense(sparse, stored.features);
    active += features.filter((value) => value !== 0).length;
    apart += features.filter((value, i) => (value !== 0) !== (found[i] !== 0)).length;
    encoded = Math.max(encoded, distance(found, features));
    decoded = Math.max(decoded, distance(await decodeRows(places, sparse, states, { threads: 2 }), expected));
  }
  figures.push(
    { what: "active features in all of them", value: active, bound: 10_000, atLeast: true },
    { what: "features active in one of the two only", value: apart, bound: 0 },
    { what: "activations, largest relative L2", value: encoded, bound: 1e-6 },
    { what: "reconstructions, largest relative L2", value: decoded, bound: 1e-6 },
  );
  return figures;
}

function dense({ pointers, indices, values }: SparseRows, features: number): Float64Array {
  const rows = pointers.length - 1;
  const out = new Float64Array(rows * features);
  for (let row = 0; row < rows; row++) {
    for (let i = pointers[row] as number; i < (pointers[row + 1] as number); i++) {
      out[row * features + (indices[i] as number)] = values[i] as number;
    }
  }
  return out;
}

function distance(found: ArrayLike<number>, expected: readonly number[]): number {
  let off = 0;
  let whole = 0;
  for (const [i, value] of expected.entries()) {
    off += ((found[i] as number) - value) ** 2;
    whole += value ** 2;
  }
  return Math.sqrt(off / whole);
}
