/**
 * Compares graphs with transcoders with circuit-tracer's: of models of Llama's form in F32 with random transcoders, or with
 * `--trained` of SmolLM2-135M in F32 with the set that `npm run real:transcoders` makes: `npm run verify:circuit-tracer`.
 * circuit-tracer's environment is made in the cache on first use.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Model } from "../../src/native/index.js";
import { smolLm2Model } from "../support/real/models.js";
import { finishedTranscoders } from "../support/real/transcoders.js";
import {
  compare,
  encode,
  type RandomSetting,
  type Setting,
  trace,
  writeInputs,
  writeTrained,
} from "./circuit-tracer/compare.js";
import { holds, printFigure } from "./figures.js";

const shape = { blocks: 4, hidden: 192, feedForward: 512, heads: 6, kvHeads: 2, vocabulary: 1024 };
const tokens = Int32Array.from({ length: 12 }, (_, i) => (i === 0 ? 1 : (i * 197 + 5) % 1024));
const settings: Record<string, RandomSetting> = {
  "random transcoders": { shape, features: 512, skip: false, tokens, threads: 2, batch: 64 },
  "a random cross-layer transcoder": {
    ...{ shape, features: 256, skip: false, across: true, tokens, threads: 2, batch: 64 },
  },
  "random skip transcoders": { shape, features: 512, skip: true, tokens, threads: 2, batch: 64 },
};

async function check(
  what: string,
  setting: Setting,
  write: (folder: string) => Promise<void>,
): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), "tapline-circuit-tracer-"));
  try {
    await write(folder);
    const traced = await trace(folder, setting);
    const model = await Model.open(join(folder, "model.gguf"), { gpuLayers: 0 });
    const context = await model.createContext({ nCtx: 64, keepAttention: true, threads: 2 });
    const transcoders = await encode(context, folder, setting);
    const ours = await context.transcoderGraph({
      ...{ tokens: setting.tokens, transcoders, zeros: 1, nodes: 100_000 },
      targets: traced.targets.map((token, i) => ({
        ...{ position: setting.tokens.length - 1, token, weight: traced.weights[i]! },
      })),
    });
    await model.close();
    const found = await compare(folder, setting, traced, ours);
    console.log(`${what}: ${traced.features} features, ${found.kept} after pruning`);
    const figures = [
      { what: "features that both have", value: traced.features, bound: 100, atLeast: true },
      { what: "features that only one has", value: found.missing, bound: 0 },
      { what: "edges: relative L2", value: found.apart, bound: 1e-4 },
      { what: "edges: relative L2 of the worst row", value: found.worst, bound: 1e-4 },
      { what: "nodes that pruning keeps in one only", value: found.differ, bound: 0 },
      { what: "features after pruning", value: found.kept, bound: 5, atLeast: true },
      { what: "number of edges after pruning: ratio - 1", value: Math.abs(found.edges - 1), bound: 0.01 },
      { what: "replacement score: difference", value: found.replacement, bound: 1e-4 },
      { what: "completeness score: difference", value: found.completeness, bound: 1e-4 },
    ];
    figures.forEach(printFigure);
    return figures.every(holds);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A short text: both have an edge from and to each active feature. */
async function checkTrained(): Promise<boolean> {
  const { folder: set } = await finishedTranscoders();
  const { f32 } = await smolLm2Model();
  const model = await Model.open(f32, { gpuLayers: 0 });
  // circuit-tracer puts a special token before other ones.
  const text = Int32Array.of(1, ...(await model.tokenize("The capital of Italy is")));
  const { nLayer: blocks, nEmbd: hidden } = model.info;
  await model.close();
  const setting = { shape: { blocks, hidden }, skip: true, tokens: text, threads: 2, batch: 64 };
  return check("trained skip transcoders of SmolLM2-135M", setting, (folder) =>
    writeTrained(folder, f32, set, blocks),
  );
}

const { values } = parseArgs({ options: { trained: { type: "boolean", default: false } } });
const results: boolean[] = [];
if (values.trained) results.push(await checkTrained());
else
  for (const [what, setting] of Object.entries(settings))
    results.push(await check(what, setting, (folder) => writeInputs(folder, setting)));
process.exitCode = results.every(Boolean) ? 0 : 1;
