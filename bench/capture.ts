/**
 * What capturing costs: a forward pass that reads block outputs over the same pass that reads nothing, in one
 * context, alternately, in random order within each pair. Both end with the next token's top 5, as an inspect or
 * a resident capture does; norms are part of the capture, copies to JavaScript too.
 */
import { fileURLToPath } from "node:url";
import { threadsFor } from "../src/models/threads.js";
import { Model } from "../src/native/index.js";
import { TestRandom } from "../test/support/random.js";
import { median, quartiles, type Row, row } from "./figures.js";
import { layerSets } from "./layer-sets.js";
import { randomModel } from "./models/random-model.js";
import { benchResident } from "./resident.js";

const demo = fileURLToPath(new URL("../models/demo/tapline-demo.gguf", import.meta.url));
const lengths = [16, 128, 256];
const lastBlock = "every row of the last block";

export async function benchCapture({ quick, rounds }: { quick: boolean; rounds?: number }): Promise<Row[]> {
  const pairs = rounds ?? (quick ? 5 : 50);
  const benches = [
    { label: "demo model", path: demo, pairs: pairs * (quick ? 1 : 4), goal: 1.05 },
    { label: "0.5B shape, Q8_0", path: await randomModel("q8_0"), pairs, goal: 1.01 },
  ];
  const rows: Row[] = [];
  for (const bench of benches) {
    rows.push(...(await benchModel(bench.label, bench.path, bench.pairs, bench.goal)));
    rows.push(...(await benchResident(bench)));
  }
  return rows;
}

async function benchModel(label: string, path: string, pairs: number, goal: number): Promise<Row[]> {
  const model = await Model.open(path);
  const { nLayer, nVocab, bytes } = model.info;
  const context = await model.createContext({ nCtx: 256, nBatch: 256, threads: threadsFor(bytes) });
  const random = new TestRandom(7);
  const sets = {
    ...layerSets(nLayer),
    // A plain pass computes the last block for the last token only: more is computed here, not just read.
    [lastBlock]: [nLayer - 1],
  };
  const rows: Row[] = [];

  for (const length of lengths) {
    const tokens = Int32Array.from({ length }, () => random.below(nVocab));
    const pass = async (layers: number[], earlyExit = false) => {
      await context.reset();
      const start = process.hrtime.bigint();
      await context.advance({
        tokens,
        layers,
        keepStates: false,
        ...(earlyExit ? { earlyExit } : { nextTopK: 5 }),
      });
      return Number(process.hrtime.bigint() - start) / 1e6;
    };
    for (let i = 0; i < 3; i++) await pass([]);
    for (const [what, layers] of Object.entries(sets)) {
      const ratios: number[] = [];
      const plain: number[] = [];
      // What has no goal gets fewer rounds.
      const rounds = what === lastBlock ? Math.min(pairs, 10) : pairs;
      for (let round = 0; round < rounds; round++) {
        const first = random.uniform() < 0.5;
        const early = first ? await pass(layers) : 0;
        const bare = await pass([]);
        const captured = first ? early : await pass(layers);
        plain.push(bare);
        ratios.push(captured / bare);
      }
      const limited = what !== lastBlock;
      rows.push({
        ...row(
          `${label}, ${length} tokens, ${what}: over a plain pass of ${median(plain).toFixed(1)} ms`,
          ratios,
          "x",
        ),
        spread: quartiles(ratios),
        ...(limited ? { goal: `<= ${goal}` } : {}),
        ok: !limited || median(ratios) <= goal,
      });
    }
    const exits: number[] = [];
    for (let pair = 0; pair < Math.min(pairs, 20); pair++)
      exits.push((await pass([5], true)) / (await pass([])));
    rows.push(row(`${label}, ${length} tokens, leaving behind block 5 of ${nLayer}`, exits, "x"));
  }
  await model.close();
  return rows;
}
