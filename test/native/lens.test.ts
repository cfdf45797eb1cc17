/** What lenses tell of rows, against sums in float64 over the logits themselves: a head of random numbers, and -inf. */
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { byteTokenizer } from "../../bench/models/byte-tokenizer.js";
import { writeGguf } from "../../bench/models/gguf-writer.js";
import { type Context, Model } from "../../src/native/index.js";
import { randomMatrix, tensor } from "../inference/support/tiny-models.js";
import { TestRandom } from "../support/random.js";
import { rejects, scratch } from "./demo-model.js";

const hidden = 32;
/** 21 times 16 and 9 more, which are likely ones. */
const vocabulary = 345;
/** Tokens that are never said. */
const impossible = [3, 4, 5, 6, 200, 343];

let model: Model;
let context: Context;
test.before(async () => {
  const path = join(scratch(), "head.gguf");
  const matrix = (name: string, inner: number, outer: number, scale?: number) => [
    tensor(`${name}.weight`, [inner, outer], randomMatrix(name, inner * outer, scale)),
    tensor(`${name}.bias`, [outer], new Float32Array(outer)),
  ];
  const norm = (name: string) => [
    tensor(`${name}.weight`, [hidden], new Float32Array(hidden).fill(1)),
    tensor(`${name}.bias`, [hidden], new Float32Array(hidden)),
  ];
  const bias = Float32Array.from({ length: vocabulary }, (_, id) =>
    impossible.includes(id) ? Number.NEGATIVE_INFINITY : id >= 336 ? 2 : 0,
  );
  const metadata = {
    "general.architecture": "phi2",
    "general.file_type": 0,
    "phi2.block_count": 1,
    "phi2.context_length": 512,
    "phi2.embedding_length": hidden,
    "phi2.feed_forward_length": hidden,
    "phi2.attention.head_count": 2,
    "phi2.attention.head_count_kv": 2,
    "phi2.attention.layer_norm_epsilon": { f32: 1e-5 },
    "phi2.rope.dimension_count": 16,
    ...byteTokenizer(vocabulary),
  };
  await writeGguf(path, metadata, [
    tensor("token_embd.weight", [hidden, vocabulary], randomMatrix("token_embd", hidden * vocabulary)),
    ...norm("output_norm"),
    ...matrix("output", hidden, vocabulary, 2).slice(0, 1),
    tensor("output.bias", [vocabulary], bias),
    ...norm("blk.0.attn_norm"),
    ...["attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"].flatMap((name) =>
      matrix(`blk.0.${name}`, hidden, hidden),
    ),
  ]);
  model = await Model.open(path, { gpuLayers: 0 });
  context = await model.createContext({ threads: 1, nCtx: 64 });
});
test.after(() => model.close());

const count = 6;
const random = new TestRandom(8);
const states = (about?: Float32Array, far = 1) =>
  random.normals(count * hidden).map((value, i) => (about?.[i] ?? 0) + far * value);
const output = states();
/** Rows that have nothing to do with the output's, rows that are all but the same, and the same. */
const places = [states(), states(output, 0.003), output];

/** Of a row's logits, each token's natural logarithm of its probability. */
function logProbabilities(logits: Float32Array): number[] {
  const highest = Math.max(...logits);
  const sum = logits.reduce((all, logit) => all + Math.exp(logit - highest), 0);
  return Array.from(logits, (logit) => logit - highest - Math.log(sum));
}
const rowsOf = async (rows: Float32Array) => {
  const logits = await context.lensLogits(rows);
  return Array.from({ length: count }, (_, row) =>
    logProbabilities(logits.subarray(row * vocabulary, (row + 1) * vocabulary)),
  );
};
/** Sum of p log (p / q); what is never said counts nothing. */
const apart = (p: number[], q: number[]) =>
  p.reduce((sum, log, id) => sum + (Math.exp(log) === 0 ? 0 : Math.exp(log) * (log - q[id]!)), 0);
const close = (found: number, expected: number, what: string) =>
  assert.ok(
    Math.abs(found - expected) <= 2e-6 + 2e-6 * Math.abs(expected),
    `${what}: ${found}, not ${expected}`,
  );

test("probabilities, ranks, entropies and distances from the output are those of the logits", async () => {
  const targets = Int32Array.of(-1, 344, 5, 0, 100, 343);
  const said = await rowsOf(output);
  const readings = await context.readLens({
    places: places.map((rows) => ({ states: rows })),
    ...{ output, top: 4, targets, entropy: true },
  });
  let smallest = Number.POSITIVE_INFINITY;
  for (const [place, reading] of readings.entries()) {
    for (const [row, logs] of (await rowsOf(places[place]!)).entries()) {
      const what = `place ${place}, row ${row}`;
      const order = [...logs.keys()].sort((a, b) => logs[b]! - logs[a]! || a - b);
      if (logs[order[0]!] === logs[order[1]!]) throw new Error("ties are another test's");
      assert.equal([...reading.tokenIds.subarray(row * 4, row * 4 + 4)], order.slice(0, 4), what);
      for (let i = 0; i < 4; i++)
        close(reading.probabilities[row * 4 + i]!, Math.exp(logs[order[i]!]!), `${what}, token ${i}`);
      const target = targets[row]!;
      close(reading.targetProbabilities![row]!, target < 0 ? 0 : Math.exp(logs[target]!), `${what}, target`);
      assert.is(reading.targetRanks![row], target < 0 ? 0 : order.indexOf(target) + 1, what);
      close(reading.entropies![row]!, apart(logs, new Array(vocabulary).fill(0)) * -1, `${what}, entropy`);
      const expected = apart(said[row]!, logs);
      if (place === 2) assert.is(reading.divergences![row], 0, what);
      else close(reading.divergences![row]!, expected, `${what}, distance`);
      if (place === 1) smallest = Math.min(smallest, expected);
    }
  }
  assert.ok(smallest > 1e-6 && smallest < 1e-4, `the nearest is ${smallest} away`);
});

test("a row that is no number is refused, whatever is asked of it", async () => {
  const spoilt = states();
  spoilt[hidden * 2] = Number.NaN;
  const sentence = /probabilities are not finite; the model file may be damaged\.$/;
  await rejects(context.readLens({ places: [{ states: spoilt }], top: 1 }), "COMPUTE", sentence);
  await rejects(
    context.readLens({ places: [{ states: spoilt }], top: 1, entropy: true, output }),
    "COMPUTE",
    sentence,
  );
});

test.run();
