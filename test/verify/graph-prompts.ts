/**
 * Attribution graphs over many prompts of the real models, resumable: `npm run verify:graph-prompts -- removals`, how well estimates
 * predict removals (SmolLM2-135M and Gemma 3 270M in Q4_K_M, 100 prompts), and `-- forms`, graphs of F16 against Q4_K_M
 * (SmolLM2-135M, 20 prompts; with `--transcoders` of features and with the share of errors, from the set that `npm run
 * real:transcoders` makes). Prompts are beginnings of introductions in Wikipedia that no set is trained on.
 */
import { appendFile, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import {
  type Config,
  checkSubmission,
  type GraphNode,
  type GraphResult,
  type MeasuredNode,
} from "../../src/contracts/index.js";
import { pairNodes } from "../../src/findings/graph-difference.js";
import { bootstrap } from "../../src/findings/uncertainty.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { Model } from "../../src/native/index.js";
import { runOperation } from "../../src/operations/runs.js";
import { realFolder } from "../support/real/cache.js";
import { encyclopediaTexts } from "../support/real/encyclopedia.js";
import { gemma3Model, smolLm2Model } from "../support/real/models.js";
import { finishedTranscoders, fullTexts } from "../support/real/transcoders.js";

const resamples = 2000;
/** Words of a prompt: about ten tokens, and a next token that the words before it suggest. */
const words = 8;
/**
 * Of a graph whose nodes are removed: what comes through a node does not depend on how many others are nodes, and edges cost as much
 * as the nodes' number.
 */
const removedOf = { nodes: 100, measured: 50 };
/** Of a graph that is compared: the defaults, without removals. */
const comparedOf = { nodes: 500, measured: 0 };

type Kind = MeasuredNode["kind"];

interface Removals {
  prompt: string;
  kinds: Kind[];
  estimates: number[];
  effects: number[];
  correlation: number | null;
}

interface Forms {
  prompt: string;
  /** Neurons and heads, or features, that are in both pruned graphs, over those in either one. */
  overlap: number;
  /** Share of the influence of each graph's neurons and heads, or features, that those in both have. */
  common: [number, number];
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
    options: {
      prompts: { type: "string" },
      model: { type: "string" },
      transcoders: { type: "boolean", default: false },
      texts: { type: "string", default: String(fullTexts) },
    },
  });
  const [what] = positionals;
  const all = [
    ...new Set(
      (await encyclopediaTexts()).slice(-200).map((text) => text.split(" ").slice(0, words).join(" ")),
    ),
  ];
  if (what === "removals") {
    for (const name of values.model === undefined ? ["smollm2", "gemma3"] : [values.model])
      await removals(name, all.slice(0, Number(values.prompts ?? 100)));
  } else if (what === "forms") {
    const prompts = all.slice(0, Number(values.prompts ?? 20));
    await forms(prompts, values.transcoders ? await finishedTranscoders(Number(values.texts)) : undefined);
  } else throw new Error("Expected removals or forms.");
}

async function removals(name: string, prompts: string[]): Promise<void> {
  const path = name === "smollm2" ? (await smolLm2Model()).q4_k_m : (await gemma3Model()).q4_k_m;
  const rows = await eachPrompt<Removals>(`removals-${name}`, removedOf, prompts, async (prompt) => {
    const { measured } = await graph(path, { prompt, ...removedOf });
    const nodes = measured?.nodes ?? [];
    return {
      ...{ prompt, correlation: measured?.correlation ?? null },
      kinds: nodes.map(({ kind }) => kind),
      estimates: nodes.map(({ estimate }) => estimate),
      effects: nodes.map(({ effect }) => effect),
    };
  });
  const own = rows.flatMap(({ correlation }) => correlation ?? []);
  const [average] = bootstrap(own.length, { resamples, seed: 0 }, (times) => [meanOf(own, times)]);
  const kinds = ["neuron", "head"] as const;
  // Resampled by prompt: removals of one prompt are not independent.
  const [pooled, neurons, heads, signs] = bootstrap(rows.length, { resamples, seed: 0 }, (times) => [
    pearson(rows, times),
    ...kinds.map((kind) => pearson(rows, times, kind)),
    sameSign(rows, times),
  ]);
  const count = (kind?: Kind) =>
    rows.reduce((sum, row) => sum + row.kinds.filter((one) => one === (kind ?? one)).length, 0);
  console.log(`${name}: ${rows.length} prompts, ${count()} removals`);
  print(`mean of ${own.length} prompts' Pearson correlations`, average);
  print("Pearson correlation of all removals", pooled);
  print(`Pearson correlation of ${count("neuron")} neurons`, neurons);
  print(`Pearson correlation of ${count("head")} heads`, heads);
  print("share of effects with the sign of the estimate", signs);
}

async function forms(prompts: string[], set: { name: string; home: string } | undefined): Promise<void> {
  const model = await smolLm2Model();
  if (set !== undefined) process.env.TAPLINE_HOME = set.home;
  // No set is trained on first tokens, which are attention sinks.
  const asked = { ...comparedOf, ...(set && { transcoders: "block", zero_positions: 1 }) };
  const rows = await eachPrompt<Forms>(`forms-${set?.name ?? "relp"}`, asked, prompts, async (prompt) => {
    const [one, other] = [
      await graph(model.f16, { prompt, ...asked }),
      await graph(model.q4_k_m, { prompt, ...asked }),
    ];
    const pairs = pairNodes(one, other);
    const inner = ({ nodes }: GraphResult, at: number) =>
      ["neuron", "head", "feature"].includes((nodes[at] as GraphNode).kind);
    const both = pairs.both.filter((pair) => inner(one, pair.one));
    const influence = (of: GraphResult, nodes: readonly number[]) =>
      nodes.reduce((sum, at) => sum + (of.nodes[at] as GraphNode).influence, 0);
    const share = (of: GraphResult, common: readonly number[]) => {
      const every = [...of.nodes.keys()].filter((at) => inner(of, at));
      return influence(of, common) / influence(of, every);
    };
    const either =
      both.length +
      pairs.onlyOne.filter((at) => inner(one, at)).length +
      pairs.onlyOther.filter((at) => inner(other, at)).length;
    const common: Forms["common"] = [
      share(
        one,
        both.map((pair) => pair.one),
      ),
      share(
        other,
        both.map((pair) => pair.other),
      ),
    ];
    return {
      ...{ prompt, overlap: both.length / either, common },
      errors: [one.scores.errors ?? null, other.scores.errors ?? null],
      replacement: [one.scores.replacement, other.scores.replacement],
      sameAnswer: one.targets[0]?.token_id === other.targets[0]?.token_id,
    };
  });
  const figure = (name: string, of: (row: Forms) => number | null) => {
    const values = rows.flatMap((row) => of(row) ?? []);
    if (values.length === 0) return;
    const [found] = bootstrap(values.length, { resamples, seed: 0 }, (times) => [meanOf(values, times)]);
    print(name, found);
  };
  const difference = ([first, second]: readonly (number | null)[]) =>
    first == null || second == null ? null : second - first;
  console.log(`F16 against Q4_K_M: ${rows.length} prompts, ${set?.name ?? "neurons and heads"}`);
  figure("overlap of pruned nodes (intersection over union)", ({ overlap }) => overlap);
  figure("influence of the nodes that both have, F16", ({ common: [value] }) => value);
  figure("influence of the nodes that both have, Q4_K_M", ({ common: [, value] }) => value);
  figure("influence that starts at errors, F16", ({ errors: [value] }) => value);
  figure("influence that starts at errors, Q4_K_M", ({ errors: [, value] }) => value);
  figure("influence that starts at errors, Q4_K_M minus F16", ({ errors }) => difference(errors));
  figure("influence that starts at embeddings, F16", ({ replacement: [value] }) => value);
  figure("influence that starts at embeddings, Q4_K_M", ({ replacement: [, value] }) => value);
  figure("influence that starts at embeddings, Q4_K_M minus F16", (row) => difference(row.replacement));
  figure("same most probable token", ({ sameAnswer }) => (sameAnswer ? 1 : 0));
}

function meanOf(values: readonly number[], times: Uint32Array): number {
  const total = times.reduce((sum, one) => sum + one, 0);
  return values.reduce((sum, value, i) => sum + value * (times[i] ?? 0), 0) / total;
}

/** Runs what is not in the cache yet, and saves each prompt's row. Rows of other settings are in other files. */
async function eachPrompt<Row extends { prompt: string }>(
  what: string,
  settings: Readonly<Record<string, number | string>>,
  prompts: readonly string[],
  work: (prompt: string) => Promise<Row>,
): Promise<Row[]> {
  const folder = join(realFolder, "graph-prompts");
  const name = [what, ...Object.entries(settings).map((pair) => pair.join("-"))].join("-");
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

/** Of all removals, or those of one kind. */
function pearson(rows: readonly Removals[], times: Uint32Array, kind?: Kind): number {
  const sums = { n: 0, x: 0, y: 0, xx: 0, xy: 0, yy: 0 };
  for (const [i, { kinds, estimates, effects }] of rows.entries()) {
    const weight = times[i] ?? 0;
    for (const [at, x] of estimates.entries()) {
      if (kind !== undefined && kinds[at] !== kind) continue;
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

function sameSign(rows: readonly Removals[], times: Uint32Array): number {
  let [same, all] = [0, 0];
  for (const [i, { estimates, effects }] of rows.entries()) {
    const weight = times[i] ?? 0;
    all += weight * estimates.length;
    same += weight * estimates.filter((estimate, at) => estimate * (effects[at] as number) > 0).length;
  }
  return same / all;
}

main()
  .catch((error) => {
    console.error((error as Error).message);
    process.exitCode = 1;
  })
  .finally(() => opened?.model.close());
