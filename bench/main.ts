/**
 * `npm run bench -- SUITE [--check]`: measures, prints a table, and writes bench/results/SUITE-MACHINE.json.
 *   --check   exit with 1 where a goal is missed
 *   --quick   fewer rounds, nothing written: to see that a suite works
 *   --rounds N  rounds of the capture suite (default 60), or of each row of peers and forward
 *   --only PATTERN  rows of the suites peers and forward, models of live and extract, or parts of dictionaries, lab, patch and workbench, whose name matches; the others keep their last figures
 *   --models SET  what capture, extract and live measure: usual (default), card or small (bench/models/sets.ts)
 * The goals of suites that compute on the processor were recorded on one instruction set (bench/instructions.ts). On another one a
 * sentence says so, and the results get a separate file.
 * Every figure that has a goal is a ratio of two things measured alternately in one run on one machine.
 *   --processor  the suite peers counts processor time of one thread, for a machine that others use
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import os from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { version } from "../src/contracts/index.js";
import { backendInfo } from "../src/native/index.js";
import type { Row } from "./figures.js";
import { writeSetsTable } from "./instruction-table.js";
import {
  goalsElsewhere,
  goalsRecordedOn,
  instructionSet,
  type Measured,
  resultName,
} from "./instructions.js";
import { type ModelSet, modelSets } from "./models/sets.js";
import { writePeersTable } from "./peers/table.js";
import { lineOf, type Report, terminalReport } from "./report.js";

interface SuiteOptions {
  quick: boolean;
  rounds?: number;
  only?: string;
  processor?: boolean;
  models: ModelSet;
  report: Report;
}

const suites: Record<string, () => Promise<(options: SuiteOptions) => Promise<Row[]>>> = {
  capture: async () => (await import("./capture.js")).benchCapture,
  extract: async () => (await import("./extract.js")).benchExtract,
  lab: async () => (await import("./lab.js")).benchLab,
  forward: async () => (await import("./forward.js")).benchForward,
  serve: async () => (await import("./serve/index.js")).benchServe,
  router: async () => (await import("./router/suite.js")).benchRouter,
  rpc: async () => (await import("./rpc.js")).benchRpc,
  live: async () => (await import("./live/index.js")).benchLive,
  levels: async () => (await import("./levels.js")).benchLevels,
  patch: async () => (await import("./patch.js")).benchPatch,
  lens: async () => (await import("./lens.js")).benchLens,
  peers: async () => (await import("./peers/suite.js")).benchPeers,
  studies: async () => (await import("./studies.js")).benchStudies,
  workbench: async () => (await import("./workbench/suite.js")).benchWorkbench,
  graph: async () => (await import("./graph.js")).benchGraph,
  dictionaries: async () => (await import("./dictionaries.js")).benchDictionaries,
  scale: async () => (await import("./scale.js")).benchScale,
};

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: {
      check: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      rounds: { type: "string" },
      only: { type: "string" },
      processor: { type: "boolean", default: false },
      models: { type: "string", default: "usual" },
    },
    allowPositionals: true,
  });
  const name = positionals[0] ?? "";
  const load = suites[name];
  if (load === undefined || positionals.length > 1) {
    throw new Error(`Name one suite: ${Object.keys(suites).join(", ")}.`);
  }
  const models = modelSets.find((set) => set === values.models);
  if (models === undefined) throw new Error(`--models is ${modelSets.join(", ")}, not ${values.models}.`);
  const loadBefore = os.loadavg()[0] ?? 0;
  const report = terminalReport();
  const rows = await (await load())({
    quick: values.quick,
    ...(values.rounds === undefined ? {} : { rounds: Number(values.rounds) }),
    processor: values.processor,
    models,
    report,
    ...(values.only === undefined ? {} : { only: values.only }),
  });
  print(rows.filter((each) => !report.shown.has(each)));
  const measuredOn = await measuredHere(name);
  if (!values.quick) await record(measuredOn, rows, loadBefore, values.only !== undefined);
  const elsewhere = goalsElsewhere(measuredOn);
  if (elsewhere !== undefined) console.error(elsewhere);
  const missed = rows.filter(({ ok }) => !ok);
  for (const { name: figure, value, goal } of missed) {
    console.error(`missed: ${figure}: ${value.toPrecision(4)}, goal ${goal}`);
  }
  if (values.check && missed.length > 0) process.exitCode = 1;
}

function print(rows: Row[]): void {
  const width = Math.max(...rows.map(({ name }) => name.length));
  for (const each of rows) console.log(lineOf(each, width));
}

async function measuredHere(suite: string): Promise<Measured> {
  const { backend, systemInfo } = backendInfo();
  return { suite, backend, here: instructionSet(`${systemInfo} | ${await tiles()}`) };
}

/** Our kernels use a processor's AMX for bytes, even where ggml's were compiled without it and don't list it. */
async function tiles(): Promise<string> {
  if (process.env.TAPLINE_AMX === "0") return "";
  const described = await readFile("/proc/cpuinfo", "utf8").catch(() => "");
  return /^flags\b.*\bamx_int8\b/m.test(described) ? "AMX_INT8 = 1" : "";
}

async function record(
  measuredOn: Measured,
  measured: Row[],
  loadBefore: number,
  some: boolean,
): Promise<void> {
  const { suite, backend } = measuredOn;
  const { llamaCpp, devices } = backendInfo();
  const goalsOn = goalsRecordedOn(measuredOn);
  const cpus = os.cpus();
  const folder = fileURLToPath(new URL("./results/", import.meta.url));
  await mkdir(folder, { recursive: true });
  const path = `${folder}${resultName(measuredOn)}`;
  const rows = some ? withEarlier(measured, await readFile(path, "utf8").catch(() => "")) : measured;
  const result = {
    suite,
    date: new Date().toISOString(),
    versions: { tapline: version, "llama.cpp": llamaCpp, node: process.versions.node },
    machine: {
      backend,
      devices: devices.map(({ description }) => description),
      processor: cpus[0]?.model ?? "",
      instructions: measuredOn.here.name,
      cores: cpus.length,
      memory_gib: Math.round(os.totalmem() / 2 ** 30),
      // Of the minute before: more than the suite's own use of the machine makes every figure doubtful.
      load_before: loadBefore,
    },
    ...(goalsOn && { goals_recorded_on: goalsOn.name }),
    rows,
  };
  await writeFile(path, `${JSON.stringify(result, null, 2)}\n`);
  if (suite === "peers" && goalsElsewhere(measuredOn) === undefined) await writePeersTable(rows);
  if (goalsOn !== undefined) await writeSetsTable(suite);
}

/** Rows of an earlier result that were not measured this time stay where they were. */
function withEarlier(measured: readonly Row[], earlier: string): Row[] {
  const before: Row[] = earlier === "" ? [] : JSON.parse(earlier).rows;
  const kept = before.map((old) => measured.find(({ name }) => name === old.name) ?? old);
  return [...kept, ...measured.filter(({ name }) => before.every((old) => old.name !== name))];
}

try {
  await main();
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
