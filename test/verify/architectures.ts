/**
 * Checks the tap on every architecture that llama.cpp can write a test model of: `npm run verify:architectures`.
 * docs/contributing/verification/tables.md lists the checks with their bounds.
 *   --only PATTERN   models whose name matches this regular expression
 *   --models DIR     use, or write, the test models there and keep them
 *   --jobs N         models at the same time (default 2)
 *   --record         store the results for docs/contributing/verification/tables.md
 *   --quantised      the models quantised, against the same weights written back as F32, instead
 *   --live           an edited and a plain request in one batch of the serving engine, each as alone, instead
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { BuildError } from "../../scripts/build/errors.js";
import { verifyFolder } from "../../scripts/build/paths.js";
import { buildTools } from "../../scripts/build/tools.js";
import { expertsFolder, widenRouters, writeModels } from "./architectures/models.js";
import {
  liveHead,
  liveRow,
  quantisedHead,
  quantisedRow,
  record,
  summary,
  tableHead,
  tableRow,
} from "./architectures/print.js";
import { unexpectedRefusals } from "./architectures/refusals.js";
import type { Outcome } from "./architectures/report.js";
import { runCheck } from "./architectures/run-check.js";
import { uncovered } from "./architectures/wiring.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const script = (name: string) => fileURLToPath(new URL(`./architectures/${name}.ts`, import.meta.url));

/** What can be checked: by which program with which of llama.cpp's tools, and how it is printed. */
const kinds = {
  all: {
    check: script("check-model"),
    tool: ["eval-callback-flushed"],
    experts: true,
    head: tableHead,
    row: tableRow,
    figures: "architectures.json",
  },
  quantised: {
    check: script("check-quantised"),
    tool: ["llama-quantize"],
    experts: false,
    head: quantisedHead,
    row: quantisedRow,
    figures: "quantised.json",
  },
  live: {
    check: script("check-live"),
    tool: [],
    experts: false,
    head: liveHead,
    row: liveRow,
    figures: "live.json",
  },
} as const;

/** Of 127 models, this many carry one residual stream. */
const atLeast = 123;
/** And this many of them generate text that a live request can change. */
const atLeastLive = 100;

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      models: { type: "string" },
      jobs: { type: "string", default: String(Math.min(2, availableParallelism())) },
      record: { type: "boolean", default: false },
      quantised: { type: "boolean", default: false },
      live: { type: "boolean", default: false },
    },
  });
  const started = Date.now();
  const kind = values.quantised ? "quantised" : values.live ? "live" : "all";
  const { check, tool, experts, head, row, figures } = kinds[kind];
  const tools = await buildTools([
    "test-llama-archs",
    ...(experts ? ["test-llama-archs-experts"] : []),
    ...tool,
  ]);
  const folder = values.models ?? (await mkdtemp(join(tmpdir(), "tapline-architectures-")));
  const cleanUp = async () => {
    if (!values.models) await rm(folder, { recursive: true, force: true });
  };
  process.once("SIGINT", () => void cleanUp().finally(() => process.exit(130)));
  process.once("SIGTERM", () => void cleanUp().finally(() => process.exit(143)));
  try {
    const names = await writeModels(tools["test-llama-archs"] ?? "", folder);
    if (experts) await widenRouters(tools["test-llama-archs-experts"] ?? "", folder, expertsFolder);
    const pattern = new RegExp(values.only ?? "");
    const chosen = names.filter((name) => pattern.test(name));
    console.log(head());
    const outcomes: Outcome[] = [];
    const worker = async () => {
      for (let name = chosen.shift(); name !== undefined; name = chosen.shift()) {
        const outcome = await runCheck(name, check, [
          join(folder, `${name}.gguf`),
          ...tool.map((each) => tools[each] ?? ""),
        ]);
        outcomes.push(outcome);
        console.log(row(outcome));
      }
    };
    await Promise.all(Array.from({ length: Math.max(1, Number(values.jobs)) }, worker));
    outcomes.sort((a, b) => a.model.localeCompare(b.model));

    await mkdir(verifyFolder, { recursive: true });
    await writeFile(join(verifyFolder, figures), JSON.stringify(outcomes, null, 2));
    console.log(`\n${summary(outcomes)}`);
    console.log(
      `${Math.round((Date.now() - started) / 1000)} s. Every figure: ${relative(root, join(verifyFolder, figures))}`,
    );
    if (values.record) record(outcomes, kind);

    const count = (verdict: Outcome["verdict"]) => outcomes.filter((each) => each.verdict === verdict).length;
    if (outcomes.length === 0) console.log(`No model matches ${values.only}.`);
    const least = values.only !== undefined ? 1 : kind === "live" ? atLeastLive : atLeast;
    const enough = count("holds") >= least;
    if (!enough) console.log(`At least ${least} must hold.`);
    const unexpected = unexpectedRefusals(outcomes, kind);
    const missing = kind === "all" && values.only === undefined ? uncovered(outcomes) : [];
    if (missing.length > 0) console.log(`No graph of features covers: ${missing.join(", ")}.`);
    if (unexpected.length > 0) console.log(`Refused, and not expected to be: ${unexpected.join(", ")}.`);
    return enough && missing.length === 0 && unexpected.length === 0 && count("failed") === 0;
  } finally {
    await cleanUp();
  }
}

main().then(
  (good) => {
    process.exitCode = good ? 0 : 1;
  },
  (error) => {
    console.error(error instanceof BuildError ? `tapline: ${error.message}` : error);
    process.exitCode = 1;
  },
);
