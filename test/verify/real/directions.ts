import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Model } from "../../../src/native/index.js";
import { runProgram } from "../../support/real/cache.js";
import { environment } from "../../support/real/environments.js";
import type { SmolLm2 } from "../../support/real/models.js";
import type { Figure } from "../numerics/check.js";

const script = fileURLToPath(new URL("./directions.py", import.meta.url));
const layers = [9, 14, 19];

const things = [
  "film",
  "meal",
  "trip",
  "book",
  "song",
  "room",
  "party",
  "lesson",
  "garden",
  "match",
  "speech",
  "view",
];
const words: ReadonlyArray<[string, string]> = [
  ["wonderful", "terrible"],
  ["delightful", "awful"],
  ["excellent", "dreadful"],
  ["lovely", "horrible"],
];
/** Texts that differ in one word, the last but the full stop. */
const pairs = things.flatMap((thing) =>
  words.map(([good, bad]) => [`The ${thing} was ${good}.`, `The ${thing} was ${bad}.`] as const),
);

/** Directions of steering-vectors (mean difference) and repeng (first principal component) against ours. */
export async function directions({ f32, folder }: SmolLm2, work: string): Promise<Figure[]> {
  const cases = join(work, "directions.json");
  await writeFile(cases, JSON.stringify({ pairs, layers, rows: await finalRows(f32) }));
  const figures: Figure[] = [];
  for (const tool of ["steering-vectors", "repeng"] as const) {
    const offline = { HF_HUB_OFFLINE: "1", TQDM_DISABLE: "1" };
    const said = await runProgram(await environment(tool), ["-B", script, tool, cases, folder], offline);
    const { least, between } = JSON.parse(said.trim().split("\n").at(-1) as string);
    figures.push(
      {
        what: `${tool}: smallest cosine of its direction and ours`,
        value: least,
        bound: 0.999,
        atLeast: true,
      },
      { what: `${tool}: cosine of two layers' directions (the check can fail)`, value: between, bound: 0.99 },
    );
  }
  return figures;
}

/** Final-token block outputs of all texts by layer, as `probe` and `compare` take them. */
async function finalRows(path: string): Promise<Record<number, number[][]>> {
  const model = await Model.open(path, { gpuLayers: 0 });
  try {
    const context = await model.createContext({ nCtx: 512, maxSequences: 16, threads: 1 });
    const sequences = await Promise.all(pairs.flat().map((text) => model.tokenize(text)));
    const found = await context.features({ sequences, layers });
    const width = model.info.nEmbd;
    return Object.fromEntries(
      [...found].map(([layer, { data }]) => [
        layer,
        sequences.map((_, i) => [...data.subarray(i * width, (i + 1) * width)]),
      ]),
    );
  } finally {
    await model.close();
  }
}
