/**
 * `npm run bench -- live`: what requests that change and watch the model cost their server. 32 streams at once: half of
 * them steered, each by a vector of its own, or all watched, each round between two in which all are plain; then the
 * server beside llama.cpp's own, with nothing asked of it and beside one global control vector. Figures are tokens a
 * second over those of the rounds around.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { realFolder } from "../../test/support/real/cache.js";
import { smolLm2 } from "../../test/support/real/sources.js";
import type { Row } from "../figures.js";
import { randomModel } from "../models/random-model.js";
import { benchEngine, type LiveBench } from "./engine.js";
import { benchServers } from "./servers.js";

const demo = fileURLToPath(new URL("../../models/demo/tapline-demo.gguf", import.meta.url));

export async function benchLive({ quick }: { quick: boolean }): Promise<Row[]> {
  const label = "0.5B shape, Q8_0";
  const path = await randomModel("q8_0");
  const models: LiveBench[] = [
    { label: "demo model", path: demo, tokens: 96, rounds: 12 },
    { label, path, tokens: 16, seconds: 240 },
  ];
  // Where the real model is not there (npm run real:models), its rows are not, either.
  const real = join(realFolder, smolLm2.name, "SmolLM2-135M-Instruct.Q8_0.gguf");
  if (existsSync(real)) models.push({ label: "SmolLM2-135M, Q8_0", path: real, tokens: 16, rounds: 9 });
  const rows: Row[] = [];
  for (const model of models) rows.push(...(await benchEngine(model, quick)));
  const shape = { label, path, hidden: 896, nLayer: 24 };
  rows.push(...(await benchServers({ ...shape, tokens: 16, seconds: 60 }, quick)));
  return rows;
}
