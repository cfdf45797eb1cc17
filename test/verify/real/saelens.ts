import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Dictionaries } from "../../../src/library/index.js";
import { decodeRows, encodeRows, type SparseRows } from "../../../src/native/index.js";
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

/** Dictionaries of every architecture that SAELens writes: its own activations and reconstructions against ours. */
export async function saelens(work: string): Promise<Figure[]> {
  const said = await runProgram(await environment("saelens"), ["-B", script, work], { HF_HUB_OFFLINE: "1" });
  const cases: Case[] = JSON.parse(said.trim().split("\n").at(-1) as string);
  const dictionaries = new Dictionaries(join(work, "home"));
  const figures: Figure[] = [{ what: "dictionaries", value: cases.length, bound: 12, atLeast: true }];
  let active = 0;
  let apart = 0;
  let encoded = 0;
  let decoded = 0;
  for (const { name, path, hidden, rows, features, decoded: expected } of cases) {
    const stored = await dictionaries.add("one", path);
    if (stored.layer !== 3 || stored.n_embd !== hidden) throw new Error(`${name}: ${JSON.stringify(stored)}`);
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
