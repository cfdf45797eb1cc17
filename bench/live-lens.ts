/**
 * Part of `npm run bench -- lens`: processor time per step of live requests that read a saved lens, over the same requests with
 * the logit lens alone. A model of 4 blocks, 2,048 wide, and a lens in half precision for each block.
 */
import { randomFillSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Engine } from "../src/native/engine.js";
import type { LivePlan } from "../src/native/live.js";
import { type Row, row } from "./figures.js";
import { writeRandomModel } from "./models/random-model.js";

const shape = { blocks: 4, hidden: 2048, feedForward: 2048, heads: 16, kvHeads: 2, vocabulary: 4096 };
const [streams, tokens] = [8, 33];

export async function liveLensRows(rounds: number): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), "tapline-bench-lens-"));
  try {
    const model = join(folder, "model.gguf");
    await writeRandomModel(model, "q8_0", shape);
    const lens = join(folder, "lens.f16");
    writeHalves(lens, shape.blocks * shape.hidden ** 2);
    return await measure(model, lens, rounds);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Random numbers in half precision between -1/64 and 1/64. */
function writeHalves(path: string, count: number): void {
  const halves = randomFillSync(new Uint16Array(count));
  for (let i = 0; i < count; i++) {
    const bits = halves[i] as number;
    halves[i] = (bits & 0x8000) | ((5 + (bits & 3)) << 10) | ((bits >> 2) & 0x3ff);
  }
  writeFileSync(path, halves);
}

async function measure(path: string, lens: string, rounds: number): Promise<Row[]> {
  const engine = await Engine.open({
    ...{ path, id: "bench", threads: 1, parallel: streams, ctxSize: streams * 256, cacheRamMiB: 0 },
  });
  const layers = Array.from({ length: shape.blocks }, (_, layer) => layer);
  const watch = { layers, positions: "generated", lensTop: 5 } as const;
  const translators = layers.map((index) => {
    return { index, path: lens, half: true, matrix: index * shape.hidden ** 2 * 2, residual: true };
  });
  const plans: Record<string, LivePlan> = {
    plain: { watch },
    saved: { watch: { ...watch, lenses: [{ name: "bench", translators }] } },
  };
  /** Milliseconds of processor time per step. */
  const perStep = async (plan: LivePlan) => {
    const before = process.cpuUsage();
    await Promise.all(
      Array.from({ length: streams }, async (_, stream) => {
        const body = { prompt: `${stream} of them`, max_tokens: tokens, ignore_eos: true, temperature: 0 };
        const { status, body: text } = await engine.request("completion", body, undefined, plan);
        if (status !== 200) throw new Error(String(text));
      }),
    );
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000 / tokens;
  };
  try {
    const found: Record<string, number[]> = { plain: [], saved: [] };
    await perStep(plans.saved as LivePlan);
    for (let round = 0; round < rounds; round++) {
      for (const [name, plan] of Object.entries(plans)) found[name]?.push(await perStep(plan));
    }
    const name = `${streams} live requests, ${shape.blocks} blocks of ${shape.hidden}, processor time per step`;
    return [
      row(`${name}: logit lens`, found.plain as number[], "ms"),
      row(`${name}: and a saved lens`, found.saved as number[], "ms"),
    ];
  } finally {
    await engine.close();
  }
}
