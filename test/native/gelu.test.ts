import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { byteTokenizer } from "../../bench/models/byte-tokenizer.js";
import { type Metadata, type TensorSpec, writeGguf } from "../../bench/models/gguf-writer.js";
import { Model } from "../../src/native/index.js";
import { filledTensor, ones, randomMatrix, randomTensor } from "../inference/support/tiny-models.js";
import { layersOf, scratch, someTokens } from "./demo-model.js";

/** The feed-forward width is not a multiple of any vector length. */
const [blocks, hidden, inner, vocabulary, epsilon] = [2, 32, 300, 320, 1e-6];
/** Inputs of GELU have a standard deviation of about 3: its curve and both of its ends. */
const wide = 2;

interface Architecture {
  metadata: Metadata;
  tensors: TensorSpec[];
  block(name: string): TensorSpec[];
  /** Where the MLP reads the residual stream. */
  input: "mid" | "block_in";
  /** What the MLP adds to a row of the residual stream, in float64. */
  mlp(name: string, row: Float64Array): Float64Array;
}

const zeros = (name: string, length: number) => filledTensor(name, [length], 0);
const everywhere = (name: string) => [
  ones(`${name}.attn_norm.weight`, hidden),
  randomTensor(`${name}.attn_output.weight`, [hidden, hidden]),
  randomTensor(`${name}.ffn_up.weight`, [hidden, inner], wide),
  randomTensor(`${name}.ffn_down.weight`, [inner, hidden]),
];

/** What GPT-2 and Phi-2 have in common: LayerNorm, biases, an MLP without a gate. */
const withBiases = {
  tensors: [ones("output_norm.weight", hidden), zeros("output_norm.bias", hidden)],
  block: (name: string) => [
    ...everywhere(name),
    randomTensor(`${name}.attn_qkv.weight`, [hidden, 3 * hidden]),
    zeros(`${name}.attn_norm.bias`, hidden),
    zeros(`${name}.attn_qkv.bias`, 3 * hidden),
    zeros(`${name}.attn_output.bias`, hidden),
    randomTensor(`${name}.ffn_up.bias`, [inner]),
    randomTensor(`${name}.ffn_down.bias`, [hidden]),
  ],
  mlp(name: string, row: Float64Array) {
    const mean = row.reduce((sum, value) => sum + value, 0) / hidden;
    const normed = rmsNorm(row.map((value) => value - mean));
    const up = product(`${name}.ffn_up.weight`, normed, inner, wide);
    const upBias = randomMatrix(`${name}.ffn_up.bias`, inner);
    const active = up.map((value, i) => gelu(value + upBias[i]!));
    const down = product(`${name}.ffn_down.weight`, active, hidden);
    const downBias = randomMatrix(`${name}.ffn_down.bias`, hidden);
    return down.map((value, i) => value + downBias[i]!);
  },
};

const architectures: Record<string, Architecture> = {
  gpt2: {
    metadata: { "attention.layer_norm_epsilon": { f32: epsilon } },
    input: "mid",
    tensors: [...withBiases.tensors, randomTensor("position_embd.weight", [hidden, 64])],
    block: (name) => [
      ...withBiases.block(name),
      ones(`${name}.ffn_norm.weight`, hidden),
      zeros(`${name}.ffn_norm.bias`, hidden),
    ],
    mlp: withBiases.mlp,
  },
  phi2: {
    metadata: { "attention.layer_norm_epsilon": { f32: epsilon }, "rope.dimension_count": hidden / 2 },
    input: "block_in",
    tensors: [
      ...withBiases.tensors,
      randomTensor("output.weight", [hidden, vocabulary]),
      zeros("output.bias", vocabulary),
    ],
    block: withBiases.block,
    mlp: withBiases.mlp,
  },
  gemma3: {
    metadata: { "attention.layer_norm_rms_epsilon": { f32: epsilon }, "rope.freq_base": { f32: 10_000 } },
    input: "mid",
    tensors: [ones("output_norm.weight", hidden)],
    block: (name) => [
      ...everywhere(name),
      ...["q", "k", "v"].map((part) => randomTensor(`${name}.attn_${part}.weight`, [hidden, hidden])),
      ones(`${name}.attn_q_norm.weight`, hidden / 2),
      ones(`${name}.attn_k_norm.weight`, hidden / 2),
      ones(`${name}.post_attention_norm.weight`, hidden),
      ones(`${name}.ffn_norm.weight`, hidden),
      ones(`${name}.post_ffw_norm.weight`, hidden),
      randomTensor(`${name}.ffn_gate.weight`, [hidden, inner], wide),
    ],
    mlp(name, row) {
      const normed = rmsNorm(row);
      const up = product(`${name}.ffn_up.weight`, normed, inner, wide);
      const gate = product(`${name}.ffn_gate.weight`, normed, inner, wide);
      const active = gate.map((value, i) => gelu(value) * up[i]!);
      return rmsNorm(product(`${name}.ffn_down.weight`, active, hidden));
    },
  },
};

/** The form that all three were trained with. */
function gelu(x: number): number {
  return (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
}

function rmsNorm(row: Float64Array): Float64Array {
  const square = row.reduce((sum, value) => sum + value * value, 0) / row.length;
  return row.map((value) => value / Math.sqrt(square + epsilon));
}

/** The random matrix of this name times a row. */
function product(name: string, row: Float64Array, outputs: number, scale?: number): Float64Array {
  const matrix = randomMatrix(name, row.length * outputs, scale);
  return Float64Array.from({ length: outputs }, (_, i) =>
    row.reduce((sum, value, k) => sum + value * matrix[i * row.length + k]!, 0),
  );
}

for (const [name, architecture] of Object.entries(architectures)) {
  test(`${name} in F32 computes GELU to float32 precision`, async () => {
    const path = join(scratch(), `${name}.gguf`);
    const metadata = {
      ...{ block_count: blocks, context_length: 64, embedding_length: hidden, feed_forward_length: inner },
      ...{ "attention.head_count": 2, "attention.head_count_kv": 2 },
      ...architecture.metadata,
    };
    await writeGguf(
      path,
      {
        ...{ "general.architecture": name, "general.file_type": 0, ...byteTokenizer(vocabulary) },
        ...Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`${name}.${key}`, value])),
      },
      [
        randomTensor("token_embd.weight", [hidden, vocabulary], 2),
        ...architecture.tensors,
        ...Array.from({ length: blocks }, (_, block) => architecture.block(`blk.${block}`)).flat(),
      ],
    );
    const model = await Model.open(path, { gpuLayers: 0 });
    try {
      const context = await model.createContext({ nCtx: 64, threads: 2 });
      const tokens = someTokens(20, vocabulary);
      const request = { layers: layersOf(model), points: [architecture.input, "ffn_out"] as const };
      const { layers } = await context.advance({ tokens, ...request });
      for (const layer of layersOf(model)) {
        const rows = (wanted: string) =>
          layers.find(({ layer: found, point }) => found === layer && point === wanted)!.states!.data;
        for (let token = 0; token < tokens.length; token++) {
          const span = [token * hidden, (token + 1) * hidden] as const;
          const found = rows("ffn_out").slice(...span);
          const expected = architecture.mlp(
            `blk.${layer}`,
            Float64Array.from(rows(architecture.input).slice(...span)),
          );
          const off = Math.hypot(...expected.map((value, i) => value - found[i]!)) / Math.hypot(...expected);
          assert.ok(off < 2e-6, `block ${layer}, token ${token}: ${off}`);
        }
      }
    } finally {
      await model.close();
    }
  });
}

test.run();
