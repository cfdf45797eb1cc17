import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { divergence, logSoftmax } from "../../../src/card/measure.js";
import { readWeightPlaces } from "../../../src/models/gguf-header.js";
import { Model } from "../../../src/native/index.js";
import { writeRounded } from "../../../src/quants/rounding.js";
import { runProgram } from "../../support/real/cache.js";
import { environment } from "../../support/real/environments.js";
import type { SmolLm2 } from "../../support/real/models.js";
import type { Figure } from "../numerics/check.js";

const script = fileURLToPath(new URL("./nf4.py", import.meta.url));

/** The matrices that transformers has as linear layers; bitsandbytes leaves the rest in 16 bits. */
const linear = /^blk\.\d+\.(attn_(q|k|v|output)|ffn_(gate|up|down))\.weight$/;
const text =
  "The committee met on Tuesday to discuss the budget for the coming year, and the members agreed to repair the old bridge.";

interface Found {
  different: number;
  changed: number;
  replaced: number;
}

/**
 * `tapline quants --round nf4` against bitsandbytes on this CPU, the format that nnsight's `dtype="nf4"` loads: every weight
 * of the file that tapline writes, and the logits of bitsandbytes' own layers in transformers.
 */
export async function nf4(model: SmolLm2, folder: string): Promise<Figure[]> {
  const rounded = join(folder, "nf4.gguf");
  await writeRounded(model.f32, rounded, { format: "nf4" }, new AbortController().signal);
  const { weights } = await readWeightPlaces([model.f32]);
  const places = [...weights]
    .filter(([name]) => linear.test(name))
    .map(([name, { offset, shape }]) => ({ name, offset, shape: shape.toReversed() }));
  const tokens = await tokensOf(model.f32);
  const logits = join(folder, "logits.f32");
  const request = { model: model.f32, rounded, places, folder: model.folder, tokens, logits };
  await writeFile(join(folder, "nf4.json"), JSON.stringify(request));
  const python = await environment("bitsandbytes");
  const said = await runProgram(python, ["-B", script, join(folder, "nf4.json")], { HF_HUB_OFFLINE: "1" });
  const found = JSON.parse(said.trim().split("\n").at(-1) as string) as Found;
  const bytes = await readFile(logits);
  const theirs = new Float32Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 4);
  return [
    { what: "weights that are rounded differently, share", value: found.different, bound: 0 },
    { what: "weights that rounding changes, share", value: found.changed, bound: 0.9, atLeast: true },
    { what: "layers of bitsandbytes", value: found.replaced, bound: places.length, atLeast: true },
    {
      what: "logits of these layers: KL, nats per token",
      value: await distance(rounded, tokens, theirs),
      bound: 1e-6,
    },
    {
      what: "the same against the model in F32",
      value: await distance(model.f32, tokens, theirs),
      bound: 1e-3,
      atLeast: true,
    },
  ];
}

async function tokensOf(path: string): Promise<number[]> {
  const model = await Model.open(path);
  const tokens = [...(await model.tokenize(text))];
  await model.close();
  return tokens;
}

/** Mean KL per token from logits, a row per token, to those that tapline computes. */
async function distance(path: string, tokens: readonly number[], theirs: Float32Array): Promise<number> {
  const width = theirs.length / tokens.length;
  const model = await Model.open(path);
  const context = await model.createContext({ nCtx: tokens.length, nBatch: tokens.length });
  const request = { sequences: [{ tokens: Int32Array.from(tokens) }], logits: "all" as const };
  const { logits } = await context.forward(request);
  const part = (values: Float32Array, row: number) =>
    logSoftmax(values.subarray(row * width, (row + 1) * width));
  const rows = tokens.map((_, row) => divergence(part(theirs, row), part(logits!.data as Float32Array, row)));
  await model.close();
  return rows.reduce((sum, value) => sum + value, 0) / rows.length;
}
