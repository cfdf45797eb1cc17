/**
 * `npm run bench -- extract`: the block outputs of a data set, written to disk as the operation does, relative to
 * llama-bench's prompt speed on the same model, in turns.
 */
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { checkSubmission, type ExtractConfig, type ExtractResult } from "../src/contracts/index.js";
import { Artifacts } from "../src/lab/artifacts.js";
import { StageClock } from "../src/lab/stage-clock.js";
import { Model } from "../src/native/index.js";
import { extract } from "../src/operations/extract/run.js";
import { type Row, row } from "./figures.js";
import { llamaTools } from "./llama-tools.js";
import { type BenchModel, halfBillionModel, type ModelSet, modelsForCard } from "./models/sets.js";
import type { Report } from "./report.js";
import { textOf } from "./text-of.js";

const run = promisify(execFile);

export async function benchExtract({
  quick,
  rounds = quick ? 1 : 3,
  only = "",
  models: set,
  report,
}: {
  quick: boolean;
  rounds?: number;
  /** Models whose label matches. */
  only?: string;
  models: ModelSet;
  report: Report;
}): Promise<Row[]> {
  const least = set === "usual" ? 0.95 : 0.9;
  const models = set === "usual" ? [await halfBillionModel()] : await modelsForCard(set);
  report.stage("compiling llama-bench, where it is not yet; not measured");
  const { "llama-bench": tool = "" } = await llamaTools(["llama-bench"]);
  const rows: Row[] = [];
  for (const model of models.filter(({ label }) => new RegExp(only).test(label))) {
    report.stage(model.label);
    rows.push(...report.rows(...(await benchModel(model, tool, { rounds, texts: quick ? 64 : 512, least }))));
  }
  return rows;
}

/** Texts of 16 tokens: every token of one layer near the end and of eight layers, and the last tokens of one. */
async function benchModel(
  { label, path }: BenchModel,
  tool: string,
  { rounds, texts, least }: { rounds: number; texts: number; least: number },
): Promise<Row[]> {
  const folder = await mkdtemp(join(os.tmpdir(), "tapline-bench-"));
  const model = await Model.open(path);
  try {
    const text = await textOf(model, 16);
    const data = join(folder, "texts.txt");
    await writeFile(data, Array.from({ length: texts }, () => text).join("\n"));
    // Every block but the last one precedes it: the work of llama-bench, less the head.
    const deepest = Math.max(0, model.info.nLayer - 2);
    const eight = Array.from({ length: 8 }, (_, i) => Math.round(((i + 1) * deepest) / 8));
    const kinds = {
      "every token of one layer, f32": { layers: [deepest], rows: "all", dtype: "f32" },
      "every token of eight layers, f16": { layers: [...new Set(eight)], rows: "all", dtype: "f16" },
      "last tokens of one layer, f32": { layers: [deepest], rows: "last", dtype: "f32" },
    };
    const shares = new Map(Object.keys(kinds).map((kind): [string, number[]] => [kind, []]));
    for (let round = 0; round < rounds; round++) {
      const theirs = await promptSpeed(tool, path);
      for (const [kind, settings] of Object.entries(kinds)) {
        const out = join(folder, "out");
        const body = { operation: "extract", model: path, data, out, ...settings };
        const config = checkSubmission(body) as ExtractConfig;
        const artifacts = new Artifacts(folder);
        const clock = new StageClock();
        const openOther = () => Promise.reject(new Error("There is one model here."));
        const made = await extract({ config, model, artifacts, progress: () => {}, clock, openOther });
        shares.get(kind)?.push(((made as ExtractResult).tokens_per_second as number) / theirs);
        await rm(out, { recursive: true });
      }
    }
    return [...shares].map(([kind, values]) =>
      row(`extract, ${label}, ${texts} texts, ${kind}: share of llama-bench's prompt speed`, values, "x", {
        least,
      }),
    );
  } finally {
    await model.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function promptSpeed(tool: string, path: string): Promise<number> {
  const threads = String(os.availableParallelism());
  const { stdout } = await run(tool, [
    ...["-m", path, "-t", threads, "-p", "512", "-n", "0", "-ub", "512", "-r", "2", "-o", "json"],
  ]);
  return (JSON.parse(stdout) as Array<{ avg_ts: number }>)[0]?.avg_ts ?? Number.NaN;
}
