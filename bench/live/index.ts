/**
 * `npm run bench -- live`: the cost of requests that change and watch the model. 32 streams: half of
 * them steered, each by a different vector, or all watched, each round between two in which all are plain; then the
 * server compared with llama.cpp's own, without interventions and with one global control vector. Figures are tokens per
 * second over those of the rounds around.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildTools } from "../../scripts/build/tools.js";
import { realFolder } from "../../test/support/real/cache.js";
import { smolLm2 } from "../../test/support/real/sources.js";
import type { Row } from "../figures.js";
import { randomModel } from "../models/random-model.js";
import type { Report } from "../report.js";
import { benchEngine, type LiveBench } from "./engine.js";
import { benchServers } from "./servers.js";

const demo = fileURLToPath(new URL("../../models/demo/tapline-demo.gguf", import.meta.url));

interface Options {
  quick: boolean;
  /** Models whose label matches. */
  only?: string;
  report: Report;
}

export async function benchLive({ quick, only = "", report }: Options): Promise<Row[]> {
  const chosen = ({ label }: { label: string }) => new RegExp(only).test(label);
  const label = "0.5B shape, Q8_0";
  const path = new RegExp(only).test(label) ? await randomModel("q8_0") : "";
  const models: LiveBench[] = [
    { label: "demo model", path: demo, tokens: 96, rounds: 12 },
    { label, path, tokens: 16, seconds: 150 },
  ];
  // Where the real model is not there (npm run real:models), its rows are not, either.
  const real = join(realFolder, smolLm2.name, "SmolLM2-135M-Instruct.Q8_0.gguf");
  if (existsSync(real)) models.push({ label: "SmolLM2-135M, Q8_0", path: real, tokens: 16, rounds: 9 });
  const rows: Row[] = [];
  for (const model of models.filter(chosen)) {
    report.stage(`${model.label}: edits and readings in one engine`);
    rows.push(...report.rows(...(await benchEngine(model, quick))));
  }
  const shape = { label, path, hidden: 896, nLayer: 24 };
  if (!chosen(shape)) return rows;
  report.stage("compiling llama-server, where it is not yet; not measured");
  const { "llama-server": tool = "" } = await buildTools(["llama-server"]);
  report.stage(`${label}: beside llama-server, over HTTP`);
  rows.push(...(await benchServers({ ...shape, tool, tokens: 16, seconds: 30 }, quick, report)));
  return rows;
}
