import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FeaturesResult } from "../../../src/contracts/index.js";
import type { ExtractionTrained } from "../../../src/lab/training/from-extraction.js";
import { realFolder, runProgram, whole } from "./cache.js";
import { encyclopediaTexts } from "./encyclopedia.js";
import { smolLm2Model } from "./models.js";

/** Blocks of SmolLM2-135M. */
export const transcoderBlocks = 30;
/** Blocks per extraction: `extract` takes at most 8 layers. */
const groupBlocks = 8;
const features = 4096;
const k = 32;
const batch = 512;
const epochs = 2;
/** Texts on which fidelity is measured; no set is trained on them. */
const heldOutTexts = 32;
/** Training texts of the full set: about 300,000 tokens. */
export const fullTexts = 3000;

/** How well the transcoder of one block fits, as in fidelity.json. */
export interface BlockFidelity {
  layer: number;
  /** Of the MLP's output at tokens after the first, on the training's held-out texts. */
  explained_variance: number | null;
  dead_features: number;
  train_rows: number;
  steps: number;
  /** From `features` on texts that no set is trained on, in the form of the model that was read. */
  features: FeaturesResult["fidelity"];
}

/** A set of transcoders in the cache. */
export interface TranscoderSet {
  /** Has `layer-N` by block, each as `tapline sae` wrote it, and fidelity.json. */
  folder: string;
  /** `tapline dictionary add` takes it. */
  blocks: string[];
  fidelity: BlockFidelity[];
}

export interface TranscoderOptions {
  /** Number of training texts. */
  texts?: number;
  log?: (line: string) => void;
}

const bin = fileURLToPath(new URL("../../../bin/tapline.js", import.meta.url));

/**
 * Skip transcoders of all MLPs of SmolLM2-135M-Instruct (BatchTopK with a threshold, 4,096 features, 32 active), trained by
 * `tapline extract` and `tapline sae` on introductions of Wikipedia articles and measured by `tapline features`. The model
 * is read in Q8_0. The first token of each text is left out: it is an attention sink, whose MLP outputs have up to 75
 * times the norm of the others'. Finished blocks are kept; an interrupted run continues with the next one.
 */
export async function smolLm2Transcoders({
  texts = fullTexts,
  log = () => {},
}: TranscoderOptions = {}): Promise<TranscoderSet> {
  const model = (await smolLm2Model()).q8_0;
  const folder = folderOf(texts);
  const env = { TAPLINE_HOME: join(folder, "home") };
  const tapline = (...args: string[]) => runProgram(process.execPath, [bin, ...args], env);
  await mkdir(folder, { recursive: true });
  const data = await writeTexts(folder, texts);
  for (const layers of groupsOfBlocks()) {
    if (await every(layers, (layer) => isThere(blockFolder(folder, layer)))) continue;
    const rows = join(folder, `rows-${layers[0]}`);
    const list = layers.join(",");
    log(`extracting blocks ${list}`);
    const points = ["--point", "ffn_in", "--target", "ffn_out", "--dtype", "f16"];
    const lengths = ["--max-input-tokens", "256", "--too-long", "cut"];
    await tapline(
      "extract",
      "--model",
      model,
      "--data",
      data.train,
      "--layers",
      list,
      ...points,
      ...lengths,
      "--out",
      rows,
    );
    for (const layer of layers) await trainBlock(layer, rows);
    await rm(rows, { recursive: true, force: true });
  }
  for (let layer = 0; layer < transcoderBlocks; layer++) await measureBlock(layer);
  const fidelity: BlockFidelity[] = [];
  for (let layer = 0; layer < transcoderBlocks; layer++) {
    fidelity.push(JSON.parse(await readFile(fidelityPath(folder, layer), "utf8")));
  }
  await writeFile(join(folder, "fidelity.json"), `${JSON.stringify(fidelity, null, 1)}\n`);
  return { folder, blocks: fidelity.map(({ layer }) => blockFolder(folder, layer)), fidelity };

  async function trainBlock(layer: number, from: string): Promise<void> {
    const out = blockFolder(folder, layer);
    if (await isThere(out)) return;
    log(`training block ${layer}`);
    const { rows: count } = JSON.parse(await readFile(join(from, "index.json"), "utf8")) as { rows: number };
    const steps = Math.ceil((epochs * count) / batch);
    const part = `${out}.training`; // its own checkpoints resume a training
    const kind = ["--target", "ffn_out", "--skip", "--architecture", "batchtopk", "--first-position", "1"];
    const size = ["--features", `${features}`, "--k", `${k}`, "--batch", `${batch}`, "--steps", `${steps}`];
    await tapline("sae", "--from", from, "--layers", `${layer}`, ...kind, ...size, "--out", part);
    await whole(out, (path) => runProgram("mv", [part, path]));
  }

  async function measureBlock(layer: number): Promise<void> {
    if (await isThere(fidelityPath(folder, layer))) return;
    log(`measuring block ${layer}`);
    const name = `block-${layer}`;
    await tapline("dictionary", "add", name, blockFolder(folder, layer));
    const said = await tapline(
      "features",
      "--model",
      model,
      "--dictionary",
      name,
      "--texts",
      data.heldOut,
      "--json",
      "--no-out",
    );
    const { result } = (JSON.parse(said) as { job: { result: FeaturesResult } }).job;
    const trained = JSON.parse(
      await readFile(join(blockFolder(folder, layer), "sae.json"), "utf8"),
    ) as ExtractionTrained;
    const { explained_variance, dead_features, training } = trained
      .reports[0] as ExtractionTrained["reports"][number];
    const found: BlockFidelity = {
      ...{ layer, explained_variance, dead_features },
      train_rows: training?.train_rows ?? 0,
      steps: training?.steps ?? 0,
      features: result.fidelity,
    };
    await whole(fidelityPath(folder, layer), (path) => writeFile(path, `${JSON.stringify(found)}\n`));
  }
}

async function writeTexts(folder: string, count: number): Promise<{ train: string; heldOut: string }> {
  const texts = await encyclopediaTexts();
  if (count > texts.length - heldOutTexts) {
    throw new Error(`texts: at most ${texts.length - heldOutTexts}, got ${count}.`);
  }
  const paths = { train: join(folder, "train.jsonl"), heldOut: join(folder, "held-out.json") };
  const train = texts.slice(heldOutTexts, heldOutTexts + count);
  await writeFile(paths.train, train.map((text) => `${JSON.stringify({ text })}\n`).join(""));
  // `features` refuses long texts.
  const heldOut = texts.slice(0, heldOutTexts).map((text) => ({ text: text.slice(0, 600) }));
  await writeFile(paths.heldOut, JSON.stringify(heldOut));
  return paths;
}

/** Blocks in groups, the last one full: extractions of deep blocks cost the most. */
function groupsOfBlocks(): number[][] {
  const groups: number[][] = [];
  for (let end = transcoderBlocks; end > 0; end -= groupBlocks) {
    const start = Math.max(0, end - groupBlocks);
    groups.unshift(Array.from({ length: end - start }, (_, i) => start + i));
  }
  return groups;
}

const blockFolder = (folder: string, layer: number) => join(folder, `layer-${layer}`);
const fidelityPath = (folder: string, layer: number) => join(folder, `fidelity-${layer}.json`);

async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined;
}

async function every(layers: readonly number[], test: (layer: number) => Promise<boolean>): Promise<boolean> {
  return (await Promise.all(layers.map(test))).every(Boolean);
}

/**
 * A set in the cache, and the library in which it was measured. It takes 40 minutes to train, so it is not started here.
 * @throws Error if it is not finished
 */
export async function finishedTranscoders(
  texts = fullTexts,
): Promise<{ name: string; folder: string; home: string }> {
  const folder = folderOf(texts);
  if (!(await isThere(join(folder, "fidelity.json"))))
    throw new Error(`${folder} is not finished: npm run real:transcoders -- --texts ${texts} makes it.`);
  return { name: basename(folder), folder, home: join(folder, "home") };
}

function folderOf(texts: number): string {
  return join(realFolder, "smollm2-135m-instruct", `transcoders-${texts}`);
}
