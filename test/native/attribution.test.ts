/** Parts of a value against the same linear model computed upwards, from each part to the value, in float64. */
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { TargetParts } from "../../src/native/index.js";
import { randomMatrix, randomTensor } from "../inference/support/tiny-models.js";
import { demo, rejects, scratch, someTokens } from "./demo-model.js";
import {
  architectures,
  blocks,
  dot,
  headCount,
  hidden,
  LinearModel,
  logitReading,
  neuronCount,
  opened,
  type Reading,
  type Rows,
  sum,
  vocabulary,
  writeArchitecture,
} from "./linear-model.js";

const folder = scratch();
const tokens = someTokens(7, vocabulary);
const [position, token, minus] = [6, 11, 200];

/** What each part adds to a reading. */
function expected(
  linear: LinearModel,
  { before, mid, position: at, direction, constant }: Reading,
  mlps: boolean,
) {
  const read = (change: Rows, from: number, withBias = false) => {
    const top = linear.up(change, from, before, mlps, withBias);
    return dot(direction, (mid ? linear.through(before, top, withBias) : top)[at]!);
  };
  const all = Array.from({ length: linear.tokens }, (_, i) => i);
  const layers = Array.from({ length: blocks }, (_, i) => i);
  const reaches = (block: number) => block < before || (mid === true && block === before);
  return {
    constant: constant + read(linear.nothing(), 0, true),
    embeddings: all.map((i) => read(linear.only(i, linear.input[0]![i]!), 0)),
    streams: layers.flatMap((block) =>
      all.map((i) => (reaches(block) ? read(linear.only(i, linear.input[block]![i]!), block) : 0)),
    ),
    ffn: layers.flatMap((block) =>
      all.map((i) => (block < before ? read(linear.only(i, linear.ffn[block]![i]!), block + 1) : 0)),
    ),
    heads: layers.map((block) =>
      Array.from({ length: headCount }, (_, head) =>
        all.map((i) => {
          if (!reaches(block)) return 0;
          const written = linear.write(block, i, linear.head(block, head, i), false);
          if (mid === true && block === before) return i === at ? dot(direction, written) : 0;
          return read(linear.after(block, linear.only(i, written), mlps), block + 1);
        }),
      ).flat(),
    ),
  };
}

/** What every 16th neuron adds, by block, token and neuron. */
function neuronParts(
  linear: LinearModel,
  reading: Reading,
): Map<string, { activation: number; value: number }> {
  const found = new Map<string, { activation: number; value: number }>();
  const { before, mid, position: at, direction } = reading;
  for (let block = 0; block < before; block++) {
    for (let i = 0; i < linear.tokens; i++) {
      const { values } = linear.neurons(block, i);
      for (let k = (block + i) % 16; k < neuronCount; k += 16) {
        const one = values.map((value, other) => (other === k ? value : 0));
        const written = linear.only(i, linear.writeNeurons(block, i, one, false));
        const top = linear.up(written, block + 1, before, true);
        const value = dot(direction, (mid ? linear.through(before, top) : top)[at]!);
        if (value !== 0) found.set(`${block} ${i} ${k}`, { activation: values[k]!, value });
      }
    }
  }
  return found;
}

function compare(found: TargetParts, wanted: ReturnType<typeof expected>, relative: number, what: string) {
  const all = (parts: ReturnType<typeof expected> | TargetParts): number[] => [
    parts.constant,
    ...parts.embeddings,
    ...parts.ffn,
    ...parts.streams,
    ...parts.heads.flatMap((heads) => [...heads]),
  ];
  const [mine, others] = [all(found), all(wanted)];
  assert.is(mine.length, others.length);
  const largest = Math.max(...others.map(Math.abs));
  assert.ok(largest > 1e-3, what);
  for (const [i, value] of others.entries()) {
    const off = Math.abs(mine[i]! - value);
    assert.ok(
      off <= relative * Math.abs(value) + relative * 1e-3 * largest,
      `${what}, part ${i}: ${mine[i]}, ${value}`,
    );
  }
}

for (const [name, architecture] of Object.entries(architectures)) {
  test(`${name}: each part of a value is what it adds in the linear model`, async () => {
    const path = join(folder, `${name}.gguf`);
    await writeArchitecture(path, name);
    await opened(path, async (context) => {
      const linear = await LinearModel.of(name, context, tokens);
      const direction = Float64Array.from(randomMatrix("a direction", hidden));
      const readings: Reading[] = [
        logitReading(name, linear, { position, token, minus }),
        logitReading(name, linear, { position, token }),
        { before: 1, position: 4, direction, constant: 0 },
        { before: 2, position: 5, direction, constant: 2.5 },
        ...(architecture.parallel ? [] : [{ before: 1, mid: true, position: 3, direction, constant: 0 }]),
      ];
      const inside = { direction: Float32Array.from(direction) };
      const targets = [
        { position, token, minus },
        { position, token },
        { position: 4, layer: 0, point: "block_out" as const, ...inside },
        { position: 5, layer: 2, point: "block_in" as const, ...inside, constant: 2.5 },
        ...(architecture.parallel ? [] : [{ position: 3, layer: 1, point: "mid" as const, ...inside }]),
      ];
      const wanted = readings.map((reading) => expected(linear, reading, false));
      for (const [precise, bound] of [
        [true, 1e-6],
        [false, 1e-4],
      ] as const) {
        const found = await context.attribution({ tokens, targets, precise });
        assert.is(found.apartBound, 1e-5);
        assert.ok(Math.max(...found.apart) < 2e-6, `${name}: ${found.apart}`);
        for (const [i, parts] of found.targets.entries()) {
          compare(parts, wanted[i]!, bound, `${name}, target ${i}, precise ${precise}`);
          assert.ok(parts.residual < 2e-6, `${name}, target ${i}: ${parts.residual}`);
          assert.is(parts.neurons.values.length, 0);
        }
      }
    });
  });
}

for (const [name, architecture] of Object.entries(architectures)) {
  test(`${name}: neurons, and parts through MLPs, are those of the linear model`, async () => {
    const path = join(folder, `${name}-neurons.gguf`);
    await writeArchitecture(path, name);
    await opened(path, async (context) => {
      const linear = await LinearModel.of(name, context, tokens);
      const direction = Float64Array.from(randomMatrix("a direction", hidden));
      const point = architecture.parallel ? ("block_in" as const) : ("mid" as const);
      const readings: Reading[] = [
        logitReading(name, linear, { position, token, minus }),
        { before: 2, mid: point === "mid", position: 5, direction, constant: 0 },
      ];
      const targets = [
        { position, token, minus },
        { position: 5, layer: 2, point, direction: Float32Array.from(direction) },
      ];
      const all = blocks * tokens.length * neuronCount;
      const found = await context.attribution({ tokens, targets, neurons: all, precise: true });
      assert.ok(Math.max(...found.ffnApart) < 2e-6, `${name}: ${found.ffnApart}`);
      for (const [i, parts] of found.targets.entries()) {
        compare(parts, expected(linear, readings[i]!, true), 1e-6, `${name}, target ${i}`);
        assert.ok(parts.residual < 2e-6, `${name}, target ${i}: ${parts.residual}`);
        const { layers, tokens: at, neurons, values, activations } = parts.neurons;
        const mine = new Map(
          Array.from(values, (value, k) => [
            `${layers[k]} ${at[k]} ${neurons[k]}`,
            { activation: activations[k]!, value },
          ]),
        );
        const wanted = neuronParts(linear, readings[i]!);
        assert.ok(wanted.size > 20, `${wanted.size} neurons`);
        for (const [key, { activation, value }] of wanted) {
          const one = mine.get(key);
          const off = Math.abs(one!.value - value);
          assert.ok(off <= 1e-6 * Math.abs(value) + 1e-12, `${name}, ${key}: ${one!.value}, ${value}`);
          assert.ok(Math.abs(one!.activation - activation) <= 1e-6 * Math.abs(activation) + 1e-12, key);
        }
        const sizes = Array.from(values, Math.abs);
        assert.equal(
          sizes,
          [...sizes].sort((a, b) => b - a),
        );
      }
      const strongest = await context.attribution({ tokens, targets, neurons: 9, precise: true });
      for (const [i, { neurons }] of strongest.targets.entries())
        assert.equal(neurons.values, found.targets[i]!.neurons.values.slice(0, 9));
    });
  });
}

test("a gain is what another text's output adds in the linear model", async () => {
  const path = join(folder, "gains.gguf");
  await writeArchitecture(path, "gemma3");
  await opened(path, async (context) => {
    const other = someTokens(7, vocabulary, 3);
    const [linear, replaced] = [
      await LinearModel.of("gemma3", context, tokens),
      await LinearModel.of("gemma3", context, other),
    ];
    const reading = logitReading("gemma3", linear, { position, token, minus });
    const read = (change: Rows, from: number) =>
      dot(reading.direction, linear.up(change, from, blocks, true)[position]!);
    const difference = (a: Float64Array, b: Float64Array) => a.map((value, k) => value - b[k]!);
    const target = { position, token, minus };
    const request = { tokens, targets: [target], neurons: 1, precise: true };
    const [parts] = (await context.attribution({ ...request, other })).targets as [TargetParts];
    const n = tokens.length;
    for (let block = 0; block < blocks; block++) {
      for (let i = 0; i < n; i++) {
        const ffn = linear.only(i, difference(replaced.ffn[block]![i]!, linear.ffn[block]![i]!));
        const expected = read(ffn, block + 1);
        const found = parts.gains!.ffn[block * n + i]!;
        assert.ok(
          Math.abs(found - expected) <= 1e-6 * Math.abs(expected) + 1e-12,
          `ffn ${block} ${i}: ${found}`,
        );
        for (let head = 0; head < headCount; head++) {
          const change = difference(replaced.head(block, head, i), linear.head(block, head, i));
          const written = linear.only(i, linear.write(block, i, change, false));
          const wanted = read(linear.after(block, written, true), block + 1);
          const gain = parts.gains!.heads[block]![head * n + i]!;
          assert.ok(Math.abs(gain - wanted) <= 1e-6 * Math.abs(wanted) + 1e-12, `head ${block} ${head} ${i}`);
        }
      }
    }
    const [alone] = (await context.attribution(request)).targets as [TargetParts];
    assert.is(alone.gains, undefined);
    assert.equal({ ...parts, gains: undefined }, { ...alone, gains: undefined });
    await rejects(
      context.attribution({ ...request, other: other.subarray(1) }),
      "INVALID_ARGUMENT",
      /same number of tokens, 7, got 6/,
    );
  });
});

test("a logit's parts add up to what the model computes", async () => {
  const path = join(folder, "sum.gguf");
  await writeArchitecture(path, "phi2");
  await opened(path, async (context) => {
    const { logits } = await context.forward({ sequences: [{ tokens }], logits: "last" });
    const all = logits!.data as Float32Array;
    const targets = [
      { position, token, minus },
      { position, token },
    ];
    const [pair, centred] = (await context.attribution({ tokens, targets })).targets as [
      TargetParts,
      TargetParts,
    ];
    const total = (parts: TargetParts) =>
      parts.constant + sum(parts.embeddings) + sum(parts.ffn) + sum(parts.rounding);
    assert.ok(Math.abs(total(pair) - (all[token]! - all[minus]!)) < 1e-4, `${total(pair)}`);
    assert.ok(Math.abs(total(centred) - (all[token]! - sum(all) / vocabulary)) < 1e-4, `${total(centred)}`);
  });
});

test("many targets have the parts that each has alone", async () => {
  await opened(demo, async (context) => {
    const text = someTokens(40, 300);
    const targets = Array.from({ length: 37 }, (_, i) => ({ position: 39 - i, token: i, minus: i + 40 }));
    const { targets: together } = await context.attribution({ tokens: text, targets });
    for (const i of [0, 17, 36]) {
      const [alone] = (await context.attribution({ tokens: text, targets: [targets[i]!] })).targets;
      assert.equal(together[i], alone);
    }
  });
});

test("rounding of 16-bit weights in attention is a separate part", async () => {
  await opened(demo, async (context) => {
    const text = someTokens(12, 300);
    const found = await context.attribution({ tokens: text, targets: [{ position: 11, token: 5 }] });
    const [parts] = found.targets as [TargetParts];
    const size = Math.max(...found.apart);
    assert.ok(size > 1e-5 && size < found.apartBound, `${size}`);
    assert.ok(sum(parts.rounding.map(Math.abs)) > 0);
    assert.ok(parts.residual < 1e-6, `${parts.residual}`);
  });
});

test("a pass that rounds where it should not is refused with the block", async () => {
  // The file says that all its weights are in F32, but these have 16 bits, so llama.cpp rounds their inputs.
  const halves = (name: string, dimensions: number[]) => ({
    ...randomTensor(name, dimensions),
    type: "f16" as const,
    bytes: (size: number) => Buffer.alloc(size, 0x30),
  });
  const away = "is \\S+ from its linear path \\(relative L2, at most 1e-05\\)\\.$";
  for (const [half, weight, neurons] of [
    ["attention", halves("blk.1.attn_v.weight", [hidden, hidden / 2]), 0],
    ["MLP", halves("blk.1.ffn_down.weight", [neuronCount, hidden]), 1],
  ] as const) {
    const path = join(folder, `rounded-${half}.gguf`);
    await writeArchitecture(path, "qwen2", [weight]);
    await opened(path, (context) =>
      rejects(
        context.attribution({ tokens, targets: [{ position, token }], neurons }),
        "COMPUTE",
        new RegExp(`^The ${half} of block 1 ${away}`),
      ),
    );
  }
});

test("progress counts blocks, and a cancelled request ends", async () => {
  await opened(demo, async (context, model) => {
    const text = someTokens(40, 300);
    const targets = Array.from({ length: 40 }, (_, i) => ({ position: i, token: i }));
    const counted: number[] = [];
    await context.attribution({ tokens: text, targets, onProgress: (done) => counted.push(done) });
    assert.is(counted.at(-1), model.info.nLayer);
    const stop = new AbortController();
    const cancelled = context.attribution({ tokens: text, targets, neurons: 50, signal: stop.signal });
    stop.abort();
    await rejects(cancelled, "CANCELLED");
    assert.is((await context.attribution({ tokens: text, targets })).targets.length, 40);
  });
});

test("impossible requests are refused", async () => {
  const path = join(folder, "refused.gguf");
  await writeArchitecture(path, "phi2");
  await opened(path, async (context, model) => {
    const ask = (target: object) => context.attribution({ tokens, targets: [target as never] });
    const direction = new Float32Array(hidden).fill(1);
    await rejects(ask({ position: 7, token }), "INVALID_ARGUMENT", /position must be 0 to 6, got 7/);
    await rejects(ask({ position, token: vocabulary }), "INVALID_ARGUMENT");
    await rejects(ask({ position, layer: 3, point: "block_out", direction }), "LAYER_OUT_OF_RANGE");
    await rejects(ask({ position, layer: 1, point: "ffn_out", direction }), "INVALID_ARGUMENT", /ffn_out/);
    await rejects(ask({ position, layer: 1, point: "mid", direction }), "UNSUPPORTED_ARCHITECTURE", /mid/);
    const short = direction.subarray(1);
    await rejects(ask({ position, layer: 1, point: "block_in", direction: short }), "INVALID_ARGUMENT", /32/);
    await rejects(context.attribution({ tokens, targets: [] }), "INVALID_ARGUMENT");
    await rejects(
      context.attribution({ tokens: someTokens(65, vocabulary), targets: [{ position, token }] }),
      "TOKEN_LIMIT",
    );
    const flash = await model.createContext({ nCtx: 64 });
    await rejects(
      flash.attribution({ tokens, targets: [{ position, token }] }),
      "UNSUPPORTED_ARCHITECTURE",
      /block 0: it does not store attention weights \(flash attention\)\.$/,
    );
  });
});

test.run();
