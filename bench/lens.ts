/**
 * `npm run bench -- lens`: what reading a lens costs beside the product that it cannot do without. The rows of 8 blocks and
 * 256 tokens become the most probable 10 tokens of each, over the final norm and the head alone, of as many rows at a time,
 * whose logits nobody looks at. Each round measures both, one after the other. Then what saved lenses cost live requests.
 */
import { Model } from "../src/native/index.js";
import { TestRandom } from "../test/support/random.js";
import { type Row, row } from "./figures.js";
import { liveLensRows } from "./live-lens.js";
import { randomModel } from "./models/random-model.js";

const [blocks, tokens, top] = [8, 256, 10];
/** Logits that the lens holds at a time, in numbers; see native/capture/logit_lens.cpp. */
const atOnce = 2 ** 24;

export async function benchLens({ quick, rounds }: { quick: boolean; rounds?: number }): Promise<Row[]> {
  const model = await Model.open(await randomModel("q8_0"), { gpuLayers: 0 });
  const { nEmbd: width, nVocab } = model.info;
  const context = await model.createContext({ nCtx: 64 });
  const random = new TestRandom(8);
  const places = Array.from({ length: blocks }, () => ({ states: random.normals(tokens * width) }));
  const chunk = Math.floor(atOnce / nVocab / blocks) * blocks;
  const stacked = random.normals(chunk * width);
  const chunks = (blocks * tokens) / chunk;
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const start = performance.now();
    await work();
    return (performance.now() - start) / 1000;
  };
  const shares: Record<string, number[]> = { "top 10": [], "top 10, entropy and KL to the output": [] };
  const [seconds, products]: [number[], number[]] = [[], []];
  try {
    for (let round = 0; round < (rounds ?? (quick ? 1 : 9)); round++) {
      // A few chunks, scaled up: all of them would be the same again.
      const some = Math.min(6, Math.floor(chunks));
      let product = 0;
      for (let i = 0; i < some; i++) product += await timed(() => context.lensLogits(stacked));
      product *= chunks / some;
      const read = await timed(() => context.readLens({ places, top }));
      const output = (places[blocks - 1] as (typeof places)[number]).states;
      const measured = await timed(() => context.readLens({ places, top, entropy: true, output }));
      products.push(product);
      seconds.push(read);
      shares["top 10"]?.push(product / read);
      // With the output's own rows there are nine products instead of eight.
      shares["top 10, entropy and KL to the output"]?.push((product * (blocks + 1)) / blocks / measured);
    }
  } finally {
    await context.close();
    await model.close();
  }
  const name = `0.5B shape, Q8_0, ${blocks} blocks x ${tokens} tokens`;
  return [
    row(`${name}: the product alone`, products, "s"),
    row(`${name}: the lens`, seconds, "s"),
    ...Object.entries(shares).map(([what, values], index) =>
      row(`${name}: share of the product in ${what}`, values, "x", index === 0 ? { least: 0.9 } : {}),
    ),
    ...(await liveLensRows(rounds ?? (quick ? 1 : 5))),
  ];
}
