/**
 * Checks the tap on every architecture that llama.cpp can write a test model of: `npm run verify:architectures`.
 * What is checked, and how exactly, stands in docs/verification.md.
 *   --only PATTERN   models whose name matches this regular expression
 *   --models DIR     use, or write, the test models there and keep them
 *   --jobs N         models at the same time (default 2)
 *   --record         write the summary into docs/verification.md
 *   --quantised      the models quantised, against the same weights written back as F32, instead
 */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { BuildError } from "../../scripts/build/errors.js";
import { buildTools } from "../../scripts/build/tools.js";
import { writeModels } from "./architectures/models.js";
import { quantisedHead, quantisedRow, record, summary, tableHead, tableRow } from "./architectures/print.js";
import type { Outcome } from "./architectures/report.js";
import { runCheck } from "./architectures/run-check.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const checkModel = fileURLToPath(new URL("./architectures/check-model.ts", import.meta.url));
const checkQuantised = fileURLToPath(new URL("./architectures/check-quantised.ts", import.meta.url));

/** Of 127 models, so many carry one residual stream. */
const atLeast = 123;

async function main(): Promise<boolean> {
  const { values } = parseArgs({
    options: {
      only: { type: "string" },
      models: { type: "string" },
      jobs: { type: "string", default: String(Math.min(2, availableParallelism())) },
      record: { type: "boolean", default: false },
      quantised: { type: "boolean", default: false },
    },
  });
  const started = Date.now();
  const [check, tool] = values.quantised
    ? [checkQuantised, "llama-quantize"]
    : [checkModel, "eval-callback-flushed"];
  const tools = await buildTools(["test-llama-archs", tool]);
  const folder = values.models ?? (await mkdtemp(join(tmpdir(), "tapline-architectures-")));
  const cleanUp = async () => {
    if (!values.models) await rm(folder, { recursive: true, force: true });
  };
  process.once("SIGINT", () => void cleanUp().finally(() => process.exit(130)));
  process.once("SIGTERM", () => void cleanUp().finally(() => process.exit(143)));
  try {
    const names = await writeModels(tools["test-llama-archs"] ?? "", folder);
    const pattern = new RegExp(values.only ?? "");
    const chosen = names.filter((name) => pattern.test(name));
    console.log(values.quantised ? quantisedHead() : tableHead());
    const outcomes: Outcome[] = [];
    const worker = async () => {
      for (let name = chosen.shift(); name !== undefined; name = chosen.shift()) {
        const outcome = await runCheck(name, check, [join(folder, `${name}.gguf`), tools[tool] ?? ""]);
        outcomes.push(outcome);
        console.log(values.quantised ? quantisedRow(outcome) : tableRow(outcome));
      }
    };
    await Promise.all(Array.from({ length: Math.max(1, Number(values.jobs)) }, worker));
    outcomes.sort((a, b) => a.model.localeCompare(b.model));

    await mkdir(join(root, ".build", "verify"), { recursive: true });
    const figures = values.quantised ? "quantised.json" : "architectures.json";
    await writeFile(join(root, ".build", "verify", figures), JSON.stringify(outcomes, null, 2));
    console.log(`\n${summary(outcomes)}`);
    console.log(`${Math.round((Date.now() - started) / 1000)} s. Every figure: .build/verify/${figures}`);
    if (values.record) {
      await record(join(root, "docs", "verification.md"), outcomes, values.quantised ? "quantised" : "all");
    }

    const count = (verdict: Outcome["verdict"]) => outcomes.filter((each) => each.verdict === verdict).length;
    if (outcomes.length === 0) console.log(`No model matches ${values.only}.`);
    const enough = values.only === undefined ? count("holds") >= atLeast : outcomes.length > 0;
    if (!enough) console.log(`At least ${atLeast} must hold.`);
    return enough && count("failed") === 0;
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
