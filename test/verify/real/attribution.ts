import { type Context, Model } from "../../../src/native/index.js";
import { TestRandom } from "../../support/random.js";
import type { Figure } from "../numerics/check.js";

const names = [
  "Mary",
  "John",
  "Anna",
  "Peter",
  "Laura",
  "David",
  "Emma",
  "Paul",
  "Sarah",
  "Mark",
  "Alice",
  "James",
];
const places = ["store", "park", "school", "station", "beach"];
const things = ["drink", "book", "letter", "key", "ring"];

/** Two texts that differ in who gives, so that another name follows (indirect object identification). */
function pairs(count: number): Array<{ text: string; other: string; right: string; wrong: string }> {
  return Array.from({ length: count }, (_, i) => {
    const a = names[i % names.length]!;
    const b = names[(i + 1 + (Math.floor(i / names.length) % 11)) % names.length]!;
    const start = `When ${a} and ${b} went to the ${places[i % 5]}, `;
    const end = ` gave a ${things[Math.floor(i / 5) % 5]} to`;
    return { text: start + b + end, other: start + a + end, right: ` ${a}`, wrong: ` ${b}` };
  });
}

interface Sites {
  estimates: number[];
  effects: number[];
}

/**
 * How well gains through frozen attention, norms and gates (RelP) agree with activation patching: for the MLP outputs of
 * every sixth block, other ones in each prompt, at every token from the first that differs, what the difference of two
 * names' logits gains. `least` is what the correlation must be, a little below what was measured.
 */
export async function attributionPatching(
  path: string,
  name: string,
  count: number,
  least: number,
): Promise<Figure[]> {
  const model = await Model.open(path, { gpuLayers: 0 });
  const found: Sites[] = [];
  let residual = 0;
  try {
    const context = await model.createContext({
      nCtx: 2048,
      nBatch: 256,
      maxSequences: 32,
      keepAttention: true,
    });
    const all = Array.from({ length: model.info.nLayer }, (_, i) => i);
    for (const [i, { text, other, right, wrong }] of pairs(count).entries()) {
      const layers = all.filter((layer) => layer % 6 === i % 6);
      const [tokens, others] = [await model.tokenize(text), await model.tokenize(other)];
      if (tokens.length !== others.length) throw new Error(`The tokens of "${text}" cannot be compared.`);
      const first = async (word: string) => (await model.tokenize(word, { special: false }))[0]!;
      const [token, minus] = [await first(right), await first(wrong)];
      const request = {
        tokens,
        other: others,
        neurons: 1,
        targets: [{ position: tokens.length - 1, token, minus }],
      };
      const [parts] = (await context.attribution(request)).targets;
      residual = Math.max(residual, parts!.residual);
      found.push(await patched(context, layers, tokens, others, [token, minus], parts!.gains!.ffn));
    }
  } finally {
    await model.close();
  }
  const all = pooled(found);
  return [
    { what: `${name}: MLP outputs, Pearson with patching`, value: all, bound: least, atLeast: true },
    // Each prompt has other blocks, so that a few prompts drawn with replacement say little.
    ...(count < 50
      ? []
      : [
          {
            what: `${name}: lower end of its interval over prompts`,
            value: interval(found)[0],
            bound: least - 0.05,
            atLeast: true,
          },
        ]),
    { what: `${name}: prompts`, value: found.length, bound: count, atLeast: true },
    { what: `${name}: sums, relative difference from the value`, value: residual, bound: 1e-5 },
  ];
}

async function patched(
  context: Context,
  layers: number[],
  tokens: Int32Array,
  others: Int32Array,
  [target, foil]: [number, number],
  gains: Float64Array,
): Promise<Sites> {
  const n = tokens.length;
  const start = tokens.findIndex((token, i) => token !== others[i]);
  const positions = Array.from({ length: n - start }, (_, i) => start + i);
  const sweep = await context.patchSweep({
    ...{ clean: others, corrupted: tokens, layers, points: ["ffn_out"], positions, target, foil },
  });
  return {
    estimates: layers.flatMap((layer) => positions.map((position) => gains[layer * n + position]!)),
    effects: [...sweep.patched].map((value) => value - sweep.corrupted),
  };
}

function pooled(sites: readonly Sites[]): number {
  return pearson(
    sites.flatMap(({ estimates }) => estimates),
    sites.flatMap(({ effects }) => effects),
  );
}

/** Percentiles 2.5 and 97.5 of the same for prompts drawn with replacement. */
function interval(sites: readonly Sites[]): [number, number] {
  const random = new TestRandom(5);
  const draws = Array.from({ length: 400 }, () =>
    pooled(sites.map(() => sites[Math.floor(random.uniform() * sites.length)]!)),
  ).sort((a, b) => a - b);
  return [draws[10]!, draws[389]!];
}

function pearson(a: readonly number[], b: readonly number[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(a), mean(b)];
  const sum = (term: (i: number) => number) => a.reduce((all, _, i) => all + term(i), 0);
  const together = sum((i) => (a[i]! - x) * (b[i]! - y));
  return together / Math.sqrt(sum((i) => (a[i]! - x) ** 2) * sum((i) => (b[i]! - y) ** 2));
}
