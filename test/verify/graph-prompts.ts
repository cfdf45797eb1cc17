/**
 * Attribution graphs over many prompts of the real models, resumable: `npm run verify:graph-prompts -- removals`, how well estimates
 * predict removals (SmolLM2-135M and Gemma 3 270M, 100 prompts), and `-- forms`, graphs of F16 against Q4_K_M (SmolLM2-135M, 20
 * prompts; with `--transcoders NAME` also the share of errors). Prompts are beginnings of introductions in Wikipedia.
 */
import { appendFile, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Config, checkSubmission, type GraphResult } from "../../src/contracts/index.js";
import { pairNodes } from "../../src/findings/graph-difference.js";
import { bootstrap } from "../../src/findings/uncertainty.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { Model } from "../../src/native/index.js";
import { runOperation } from "../../src/operations/runs.js";
import { realFolder } from "../support/real/cache.js";
import { encyclopediaTexts } from "../support/real/encyclopedia.js";
import { gemma3Model, smolLm2Model } from "../support/real/models.js";

const resamples = 2000;
/** Words of a prompt: about ten tokens, and a next token that the words before it suggest. */
const words = 8;

interface Removals {
  prompt: string;
  estimates: number[];
  effects: number[];
  correlation: number | null;
}

interface Forms {
  prompt: string;
  /** Nodes of both graphs over nodes of either one. */
  overlap: number;
  /** Share of the influence that starts at errors, in each form; null without transcoders. */
  errors: [number | null, number | null];
  /** Share that starts at embeddings, in each form. */
  replacement: [number, number];
  /** The same most probable token. */
  sameAnswer: boolean;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { prompts: { type: "string" }, transcoders: { type: "string" }, model: { type: "string" } },
  });
  const [what] = positionals;
  const prompts = (await encyclopediaTexts())
    .slice(-200)
    .map((text) => text.split(" ").slice(0, words).join(" "));
  if (what === "removals") {
    for (const name of values.model === undefined ? ["smollm2", "gemma3"] : [values.model]) {
      await removals(name, prompts.slice(0, Number(values.prompts ?? 100)));
    }
  } else if (what === "forms")
    await forms(prompts.slice(0, Number(values.prompts ?? 20)), values.transcoders);
  else throw new Error("Expected removals or forms.");
}

async function removals(name: string, prompts: string[]): Promise<void> {
  const path = name === "smollm2" ? (await smolLm2Model()).q4_k_m : (await gemma3Model()).q4_k_m;
  const rows = await eachPrompt<Removals>(`removals-${name}`, prompts, async (prompt) => {
    const { measured } = await graph(path, { prompt, nodes: 500, measured: 50 });
    const nodes = measured?.nodes ?? [];
    return {
      ...{ prompt, correlation: measured?.correlation ?? null },
      estimates: nodes.map(({ estimate }) => estimate),
      effects: nodes.map(({ effect }) => effect),
    };
  });
  const own = rows.flatMap(({ correlation }) => correlation ?? []);
  const mean = (values: readonly number[], times: Uint32Array) =>
    values.reduce((sum, value, i) => sum + value * (times[i] ?? 0), 0) /
    times.reduce((sum, one) => sum + one, 0);
  const [average] = bootstrap(own.length, { resamples, seed: 0 }, (times) => [mean(own, times)]);
  // Resampled by prompt: removals of one prompt are not independent.
  const [pooled] = bootstrap(rows.length, { resamples, seed: 0 }, (times) => [pearson(rows, times)]);
  console.log(
    `${name}: ${rows.length} prompts, ${rows.reduce((sum, { effects }) => sum + effects.length, 0)} removals`,
  );
  print("mean of the prompts' Pearson correlations", average);
  print("Pearson correlation of all removals", pooled);
}

async function forms(prompts: string[], transcoders: string | undefined): Promise<void> {
  const model = await smolLm2Model();
  const more = transcoders === undefined ? {} : { transcoders };
  const rows = await eachPrompt<Forms>(`forms-${transcoders ?? "relp"}`, prompts, async (prompt) => {
    const asked = { prompt, nodes: 500, measured: 0, ...more };
    const [one, other] = [await graph(model.f16, asked), await graph(model.q4_k_m, asked)];
    const { both, onlyOne, onlyOther } = pairNodes(one, other);
    const isInner = ({ nodes }: GraphResult, at: number) =>
      !["embedding", "target"].includes(nodes[at]?.kind ?? "");
    const [common, first, second] = [
      both.filter((pair) => isInner(one, pair.one)).length,
      onlyOne.filter((at) => isInner(one, at)).length,
      onlyOther.filter((at) => isInner(other, at)).length,
    ];
    return {
      prompt,
      overlap: common / Math.max(1, common + first + second),
      errors: [one.scores.errors ?? null, other.scores.errors ?? null],
      replacement: [one.scores.replacement, other.scores.replacement],
      sameAnswer: one.targets[0]?.token_id === other.targets[0]?.token_id,
    };
  });
  const figure = (name: string, of: (row: Forms) => number | null) => {
    const values = rows.flatMap((row) => of(row) ?? []);
    if (values.length === 0) return;
    const [found] = bootstrap(values.length, { resamples, seed: 0 }, (times) => [
      values.reduce((sum, value, i) => sum + value * (times[i] ?? 0), 0) / values.length,
    ]);
    print(name, found);
  };
  console.log(`F16 against Q4_K_M: ${rows.length} prompts`);
  figure("overlap of pruned nodes (intersection over union)", ({ overlap }) => overlap);
  figure("influence that starts at errors, F16", ({ errors: [value] }) => value);
  figure("influence that starts at errors, Q4_K_M", ({ errors: [, value] }) => value);
  figure("influence that starts at embeddings, F16", ({ replacement: [value] }) => value);
  figure("influence that starts at embeddings, Q4_K_M", ({ replacement: [, value] }) => value);
  figure("same most probable token", ({ sameAnswer }) => (sameAnswer ? 1 : 0));
}

/** Runs what is not in the cache yet, and saves each prompt's row. */
async function eachPrompt<Row extends { prompt: string }>(
  name: string,
  prompts: readonly string[],
  work: (prompt: string) => Promise<Row>,
): Promise<Row[]> {
  const folder = join(realFolder, "graph-prompts");
  await mkdir(folder, { recursive: true });
  const path = join(folder, `${name}.jsonl`);
  const text = await readFile(path, "utf8").catch(() => "");
  const saved = new Map(
    text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Row)
      .map((row) => [row.prompt, row]),
  );
  const rows: Row[] = [];
  for (const prompt of prompts) {
    const row = saved.get(prompt) ?? (await work(prompt));
    if (!saved.has(prompt)) await appendFile(path, `${JSON.stringify(row)}\n`);
    rows.push(row);
    if (!saved.has(prompt)) console.error(`${name}: ${rows.length} of ${prompts.length}`);
  }
  return rows;
}

let opened: { path: string; model: Model } | undefined;

async function graph(path: string, body: object): Promise<GraphResult> {
  if (opened?.path !== path) {
    await opened?.model.close();
    opened = { path, model: await Model.open(path) };
  }
  const folder = await mkdtemp(join(tmpdir(), "tapline-graph-prompts-"));
  try {
    const config = checkSubmission({ operation: "graph", model: path, ...body }) as Config;
    return (await runOperation({
      ...{ config, model: opened.model, artifacts: new Artifacts(folder), clock: new StageClock() },
      progress: () => {},
      openOther: () => Model.open(path),
    })) as unknown as GraphResult;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function print(name: string, found: { value: number; low: number; high: number } | undefined): void {
  if (found === undefined) return;
  const [value, low, high] = [found.value, found.low, found.high].map((one) => one.toFixed(3));
  console.log(`  ${name}: ${value} (95 % interval over prompts ${low} to ${high})`);
}

function pearson(rows: readonly Removals[], times: Uint32Array): number {
  const sums = { n: 0, x: 0, y: 0, xx: 0, xy: 0, yy: 0 };
  for (const [i, { estimates, effects }] of rows.entries()) {
    const weight = times[i] ?? 0;
    for (const [at, x] of estimates.entries()) {
      const y = effects[at] as number;
      sums.n += weight;
      sums.x += weight * x;
      sums.y += weight * y;
      sums.xx += weight * x * x;
      sums.xy += weight * x * y;
      sums.yy += weight * y * y;
    }
  }
  const { n, x, y, xx, xy, yy } = sums;
  return (n * xy - x * y) / Math.sqrt((n * xx - x * x) * (n * yy - y * y));
}

main()
  .catch((error) => {
    console.error((error as Error).message);
    process.exitCode = 1;
  })
  .finally(() => opened?.model.close());
