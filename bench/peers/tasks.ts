import type { Model } from "../../src/native/index.js";
import { TestRandom } from "../../test/support/random.js";
import { passage } from "../../test/verify/real/passage.js";
import { layerSets } from "../layer-sets.js";

/** The input of both sides: token ids, so that no tokeniser is timed. */
export type Task =
  | { task: "capture"; tokens: number[]; layers: number[] }
  | { task: "forward"; batch: number[][]; layers: number[] }
  | { task: "calls"; tokens: number[]; layer?: number; count: number; at_once: number; tasks?: boolean }
  | { task: "extract"; texts: number[][]; layer: number }
  | {
      task: "compare";
      tokens: number[];
      layer: number;
      vector: number[];
      strengths: number[];
      count: number;
      batched: boolean;
    }
  | { task: "generate"; tokens: number[]; count: number }
  | { task: "patch"; clean: number[]; corrupted: number[]; target: number; foil: number }
  | {
      task: "learn";
      texts: number[][];
      labels: number[];
      train: number[];
      layer: number;
      features: number;
      steps: number;
    };

/** A side's result, as far as the other has to have the same. */
export interface Found {
  /** Lengths (L2) of block outputs at the last token. */
  norms?: number[];
  /** Most probable next token. */
  next?: number;
  /** Rows of block outputs in all. */
  rows?: number;
  continuations?: number[][];
  /** Logit difference of every patched block and token, layer by layer. */
  patched?: number[];
  /** Of the probe on held-out texts. */
  accuracy?: number;
}

export interface Answer extends Found {
  /** By the clock. */
  seconds: number;
  /** Of the processor, in all threads. */
  processor: number;
  /** The same since the process began. */
  in_all: number;
  /** Most memory that its process ever held, bytes; 0 where others share the process. */
  peak: number;
  /** The tool has no public way to do this. */
  unable?: boolean;
}

const examples = 512;

/** The work of each row of the table. */
export async function tasksFor(model: Model): Promise<Record<string, Task>> {
  const all = [...(await model.tokenize(passage))];
  const random = new TestRandom(14);
  const stretch = (length: number, start = random.below(all.length - length)) =>
    all.slice(start, start + length);
  const layers = layerSets(model.info.nLayer)["4 layers"] as number[];
  const layer = Math.floor(model.info.nLayer / 2) - 1;
  const texts = Array.from({ length: examples }, () => stretch(6 + random.below(13)));
  // A question that the block outputs can answer, but not at once: whether a text ends with a frequent token.
  const often = new Set([...countOf(all)].filter(([, count]) => count > 4).map(([token]) => token));
  const steering = {
    layer,
    tokens: all.slice(0, 48),
    vector: Array.from({ length: model.info.nEmbd }, () => random.below(2001) / 1000 - 1),
    strengths: [-8, -6, -4, -2, 2, 4, 6, 8, 10],
    count: 32,
  };
  return {
    "capture, 4 layers x 256 tokens": { task: "capture", tokens: stretch(256, 0), layers },
    "capture, 4 layers x 16 tokens": { task: "capture", tokens: stretch(16, 0), layers },
    "extraction, all tokens of 512 texts at one layer": { task: "extract", texts, layer },
    "compare, 9 strengths x 32 tokens, a run for each": { task: "compare", ...steering, batched: false },
    "compare, 9 strengths x 32 tokens, batched by hand": { task: "compare", ...steering, batched: true },
    "generation, 64 tokens": { task: "generate", tokens: all.slice(0, 48), count: 64 },
    "probe and sae, 512 examples": {
      ...{ task: "learn", texts, layer, features: 64, steps: 100 },
      labels: texts.map((text) => Number(often.has(text.at(-1) as number))),
      train: texts.map((_, i) => Number(i % 4 !== 3)),
    },
  };
}

function countOf(tokens: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const token of tokens) counts.set(token, (counts.get(token) ?? 0) + 1);
  return counts;
}
