/**
 * `npm run bench -- live`: the cost of requests that change and watch the model. 32 streams: half of
 * them steered, each by a different vector, or all watched, each round between two in which all are plain; then the
 * server compared with llama.cpp's own, without interventions and with one global control vector. Figures are tokens per
 * second over those of the rounds around.
 */
import { Model } from "../../src/native/index.js";
import type { Row } from "../figures.js";
import { levelFault, llamaTools } from "../llama-tools.js";
import { demoModel, halfBillionModel, type ModelSet, modelsForCard, smolLm2Form } from "../models/sets.js";
import type { Report } from "../report.js";
import { benchEngine, goalsOfCard, goalsOfProcessor, type LiveBench } from "./engine.js";
import { benchServers } from "./servers.js";

interface Options {
  quick: boolean;
  /** Models whose label matches. */
  only?: string;
  models: ModelSet;
  report: Report;
}

export async function benchLive({ quick, only = "", models: set, report }: Options): Promise<Row[]> {
  const models = (set === "usual" ? await usual(quick) : await onCard(set)).filter(({ label }) =>
    new RegExp(only).test(label),
  );
  const rows: Row[] = [];
  for (const model of models) {
    report.stage(`${model.label}: edits and readings in one engine`);
    rows.push(...report.rows(...(await benchEngine(model, quick))));
  }
  const served = models.find(({ server }) => server);
  if (served === undefined) return rows;
  const fault = levelFault();
  if (fault !== undefined) {
    report.stage(`not measured over HTTP: ${fault}`);
    return rows;
  }
  report.stage("compiling llama-server, where it is not yet; not measured");
  const { "llama-server": tool = "" } = await llamaTools(["llama-server"]);
  report.stage(`${served.label}: beside llama-server, over HTTP`);
  const size = await sizeOf(served.path);
  rows.push(...(await benchServers({ ...served, ...size, tool, tokens: 16, seconds: 30 }, quick, report)));
  return rows;
}

/** For a processor. Where the real model is not there (npm run real:models), its rows are not, either. */
async function usual(quick: boolean): Promise<LiveBench[]> {
  const real = smolLm2Form();
  return [
    { label: "demo model", path: demoModel, tokens: quick ? 16 : 96, rounds: 12 },
    { ...(await halfBillionModel()), tokens: 16, seconds: 150, goals: goalsOfProcessor, server: true },
    ...(real ? [{ ...real, tokens: 16, rounds: 9 }] : []),
  ];
}

async function onCard(set: "card" | "small"): Promise<LiveBench[]> {
  return (await modelsForCard(set)).map((model) => {
    const large = !model.label.startsWith("SmolLM2");
    const rest = { seconds: 60, ...(large && { goals: goalsOfCard }) };
    return { ...model, tokens: 32, ...rest, server: large && model.label.endsWith("Q8_0") };
  });
}

async function sizeOf(path: string): Promise<{ hidden: number; nLayer: number; architecture: string }> {
  const model = await Model.open(path);
  const { nEmbd: hidden, nLayer, architecture } = model.info;
  await model.close();
  return { hidden, nLayer, architecture };
}
