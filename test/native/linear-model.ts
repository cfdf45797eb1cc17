import { byteTokenizer } from "../../bench/models/byte-tokenizer.js";
import { type Metadata, type TensorSpec, writeGguf } from "../../bench/models/gguf-writer.js";
import { type Context, Model } from "../../src/native/index.js";
import { randomMatrix, randomTensor, tensor } from "../inference/support/tiny-models.js";

export const [blocks, hidden, vocabulary] = [3, 32, 320];
const [heads, inner, epsilon] = [4, 48, 1e-6];
const width = hidden / heads;

export interface Architecture {
  /** How many heads have their own values. */
  valueHeads: number;
  /** Norms subtract the mean and add a bias. */
  layerNorm?: boolean;
  /** Queries, keys and values are one matrix with a bias, and the output has one, too. */
  fused?: boolean;
  valueBias?: boolean;
  postNorm?: boolean;
  parallel?: boolean;
  activation: "silu" | "gelu";
  /** Neurons are activation(gate) * up. */
  gated?: boolean;
  metadata: Metadata;
  tensors: TensorSpec[];
  block(name: string): TensorSpec[];
}

const gain = (name: string) =>
  tensor(
    name,
    [hidden],
    randomMatrix(name, hidden, 1).map((value) => 1 + value),
  );
const rms = { "attention.layer_norm_rms_epsilon": { f32: epsilon }, "rope.freq_base": { f32: 10_000 } };
const layer = { "attention.layer_norm_epsilon": { f32: epsilon } };
const gated = (name: string) => [
  gain(`${name}.ffn_norm.weight`),
  randomTensor(`${name}.ffn_gate.weight`, [hidden, inner]),
  randomTensor(`${name}.ffn_up.weight`, [hidden, inner]),
  randomTensor(`${name}.ffn_down.weight`, [inner, hidden]),
];
const separate = (name: string, valueHeads: number) => [
  gain(`${name}.attn_norm.weight`),
  randomTensor(`${name}.attn_q.weight`, [hidden, hidden], 1),
  randomTensor(`${name}.attn_k.weight`, [hidden, width * valueHeads], 1),
  randomTensor(`${name}.attn_v.weight`, [hidden, width * valueHeads]),
  randomTensor(`${name}.attn_output.weight`, [hidden, hidden]),
];
const biased = (name: string) => [
  gain(`${name}.attn_norm.weight`),
  randomTensor(`${name}.attn_norm.bias`, [hidden]),
  randomTensor(`${name}.attn_qkv.weight`, [hidden, 3 * hidden]),
  randomTensor(`${name}.attn_qkv.bias`, [3 * hidden]),
  randomTensor(`${name}.attn_output.weight`, [hidden, hidden]),
  randomTensor(`${name}.attn_output.bias`, [hidden]),
  randomTensor(`${name}.ffn_up.weight`, [hidden, inner]),
  randomTensor(`${name}.ffn_up.bias`, [inner]),
  randomTensor(`${name}.ffn_down.weight`, [inner, hidden]),
  randomTensor(`${name}.ffn_down.bias`, [hidden]),
];
const endBiased = [gain("output_norm.weight"), randomTensor("output_norm.bias", [hidden])];

/** Small models that differ in what lies between a block's input and what its attention adds. */
export const architectures: Record<string, Architecture> = {
  qwen2: {
    valueHeads: 2,
    valueBias: true,
    activation: "silu",
    gated: true,
    metadata: rms,
    tensors: [gain("output_norm.weight")],
    block: (name) => [
      ...separate(name, 2),
      randomTensor(`${name}.attn_q.bias`, [hidden]),
      randomTensor(`${name}.attn_k.bias`, [2 * width]),
      randomTensor(`${name}.attn_v.bias`, [2 * width]),
      ...gated(name),
    ],
  },
  gpt2: {
    valueHeads: heads,
    layerNorm: true,
    fused: true,
    activation: "gelu",
    metadata: layer,
    tensors: [...endBiased, randomTensor("position_embd.weight", [hidden, 64])],
    block: (name) => [
      ...biased(name),
      gain(`${name}.ffn_norm.weight`),
      randomTensor(`${name}.ffn_norm.bias`, [hidden]),
    ],
  },
  phi2: {
    valueHeads: heads,
    layerNorm: true,
    fused: true,
    activation: "gelu",
    parallel: true,
    metadata: { ...layer, "rope.dimension_count": width / 2 },
    tensors: [
      ...endBiased,
      randomTensor("output.weight", [hidden, vocabulary]),
      randomTensor("output.bias", [vocabulary]),
    ],
    block: biased,
  },
  gemma3: {
    valueHeads: 2,
    postNorm: true,
    activation: "gelu",
    gated: true,
    metadata: { ...rms, "attention.key_length": width, "attention.value_length": width },
    tensors: [gain("output_norm.weight")],
    block: (name) => [
      ...separate(name, 2),
      tensor(`${name}.attn_q_norm.weight`, [width], new Float32Array(width).fill(1)),
      tensor(`${name}.attn_k_norm.weight`, [width], new Float32Array(width).fill(1)),
      gain(`${name}.post_attention_norm.weight`),
      gain(`${name}.post_ffw_norm.weight`),
      ...gated(name),
    ],
  },
};

export async function writeArchitecture(
  path: string,
  name: string,
  besides: TensorSpec[] = [],
): Promise<void> {
  const architecture = architectures[name]!;
  const metadata = {
    ...{ block_count: blocks, context_length: 64, embedding_length: hidden, feed_forward_length: inner },
    ...{ "attention.head_count": heads, "attention.head_count_kv": architecture.valueHeads },
    ...architecture.metadata,
  };
  const all = [
    randomTensor("token_embd.weight", [hidden, vocabulary], 2),
    ...architecture.tensors,
    ...Array.from({ length: blocks }, (_, block) => architecture.block(`blk.${block}`)).flat(),
  ];
  await writeGguf(
    path,
    {
      ...{ "general.architecture": name, "general.file_type": 0, ...byteTokenizer(vocabulary) },
      ...Object.fromEntries(Object.entries(metadata).map(([key, value]) => [`${name}.${key}`, value])),
    },
    all.map((one) => besides.find((other) => other.name === one.name) ?? one),
  );
}

/** Rows of tokens, or a change of them. */
export type Rows = Float64Array[];

export const dot = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Array.from(a).reduce((sum, value, k) => sum + value * b[k]!, 0);
const mean = (row: Float64Array) => row.reduce((sum, value) => sum + value, 0) / row.length;

const made = new Map<string, Float32Array>();
/** The numbers of the tensor of this name in these models. */
function numbers(name: string, count: number): Float32Array {
  const found = made.get(`${name} ${count}`) ?? randomMatrix(name, count);
  made.set(`${name} ${count}`, found);
  return found;
}

/** Rows `from` … of the matrix of this name times a row. */
function product(name: string, row: Float64Array, outputs: number, from = 0, all = outputs): Float64Array {
  const matrix = numbers(name, row.length * all);
  return Float64Array.from({ length: outputs }, (_, i) =>
    row.reduce((sum, value, k) => sum + value * matrix[(from + i) * row.length + k]!, 0),
  );
}

const bias = (name: string, from: number, count: number, all: number) =>
  numbers(name, all).subarray(from, from + count);
const gainOf = (name: string) => randomMatrix(name, hidden, 1).map((value) => 1 + value);

/**
 * The model with its attention weights and norms fixed at one pass, in float64, computed upwards: a change of the stream
 * below a block becomes one above it.
 */
export class LinearModel {
  private constructor(
    private readonly architecture: Architecture,
    readonly tokens: number,
    /** By block: its input, its heads' outputs, what its MLP adds. */
    readonly input: Rows[],
    readonly heads: Rows[],
    readonly ffn: Rows[],
    private readonly mid: Rows[],
    private readonly weights: Float32Array[],
    readonly last: Rows,
  ) {}

  static async of(name: string, context: Context, tokens: Int32Array): Promise<LinearModel> {
    const layers = Array.from({ length: blocks }, (_, i) => i);
    const middle = architectures[name]!.parallel ? "attn_out" : "mid";
    const points = ["block_in", "head_out", "ffn_out", "attention", "block_out", middle] as const;
    const captures = points.flatMap((point) => layers.map((at) => ({ layer: at, point })));
    const found = await context.forward({ sequences: [{ tokens }], captures });
    const values = (point: (typeof points)[number]) =>
      layers.map((at) => found.captures[points.indexOf(point) * blocks + at]!.values as Float32Array);
    const rows = (point: (typeof points)[number]): Rows[] =>
      values(point).map((all) =>
        Array.from({ length: tokens.length }, (_, i) =>
          Float64Array.from(all.subarray(i * hidden, (i + 1) * hidden)),
        ),
      );
    const [input, of, ffn, last] = [rows("block_in"), rows("head_out"), rows("ffn_out"), rows("block_out")];
    return new LinearModel(
      architectures[name]!,
      tokens.length,
      input,
      of,
      ffn,
      architectures[name]!.parallel ? input : rows("mid"),
      values("attention"),
      last[blocks - 1]!,
    );
  }

  nothing(): Rows {
    return Array.from({ length: this.tokens }, () => new Float64Array(hidden));
  }

  only(token: number, row: Float64Array): Rows {
    return this.nothing().map((zero, i) => (i === token ? row : zero));
  }

  /** A norm of `row` with its scale fixed at `at`. */
  norm(row: Float64Array, at: Float64Array, name: string, withBias: boolean): Float64Array {
    const { layerNorm } = this.architecture;
    const centred = (values: Float64Array) =>
      layerNorm ? values.map((value) => value - mean(values)) : values;
    const fixed = centred(at);
    const scale = 1 / Math.sqrt(dot(fixed, fixed) / hidden + Math.fround(epsilon));
    const gains = gainOf(`${name}.weight`);
    const added = layerNorm && withBias ? bias(`${name}.bias`, 0, hidden, hidden) : new Float32Array(hidden);
    return centred(row).map((value, k) => value * scale * gains[k]! + added[k]!);
  }

  /** What heads' outputs add to the stream at one token. */
  write(block: number, token: number, row: Float64Array, withBias: boolean): Float64Array {
    const { fused, postNorm } = this.architecture;
    const name = `blk.${block}`;
    const projected = (values: Float64Array, biased: boolean) =>
      product(`${name}.attn_output.weight`, values, hidden).map(
        (value, k) => value + (fused && biased ? bias(`${name}.attn_output.bias`, 0, hidden, hidden)[k]! : 0),
      );
    const added = projected(row, withBias);
    if (!postNorm) return added;
    const at = projected(this.heads[block]![token]!, true);
    return this.norm(added, at, `${name}.post_attention_norm`, withBias);
  }

  /** A change of a block's input, as a change of its heads' outputs. */
  mixed(block: number, change: Rows, withBias = false): Rows {
    const { fused, valueBias, valueHeads } = this.architecture;
    const name = `blk.${block}`;
    const count = valueHeads * width;
    const from = fused ? 2 * hidden : 0;
    const all = fused ? 3 * hidden : count;
    const kind = fused ? "qkv" : "v";
    const values = change.map((row, i) => {
      const normed = this.norm(row, this.input[block]![i]!, `${name}.attn_norm`, withBias);
      const value = product(`${name}.attn_${kind}.weight`, normed, count, from, all);
      if (!withBias || !(fused || valueBias)) return value;
      const added = bias(`${name}.attn_${kind}.bias`, from, count, all);
      return value.map((one, k) => one + added[k]!);
    });
    return change.map((_, reader) => {
      const mixed = new Float64Array(hidden);
      for (let k = 0; k < hidden; k++) {
        const head = Math.floor(k / width);
        const place = Math.floor((head * valueHeads) / heads) * width + (k % width);
        for (let token = 0; token < this.tokens; token++)
          mixed[k]! +=
            this.weights[block]![(head * this.tokens + reader) * this.tokens + token]! *
            values[token]![place]!;
      }
      return mixed;
    });
  }

  /**
   * A change of a block's input, as a change of the stream after its attention.
   * @param passes whether a head passes changes on at a token
   */
  through(
    block: number,
    change: Rows,
    withBias = false,
    passes: (head: number, token: number) => boolean = () => true,
  ): Rows {
    const outputs = this.mixed(block, change, withBias);
    return change.map((row, reader) => {
      const mixed = outputs[reader]!.map((value, k) => (passes(Math.floor(k / width), reader) ? value : 0));
      const added = this.write(block, reader, mixed, withBias);
      return row.map((value, k) => value + added[k]!);
    });
  }

  /** A change of the stream before block `from`, as a change before block `to`; with or without MLPs. */
  up(change: Rows, from: number, to: number, mlps: boolean, withBias = false): Rows {
    let rows = change;
    for (let block = from; block < to; block++) {
      const middle = this.through(block, rows, withBias);
      rows = mlps
        ? this.throughMlp(block, middle, this.architecture.parallel ? rows : middle, withBias)
        : middle;
    }
    return rows;
  }

  /** The neurons' inputs: with biases, or only what a change makes of them. */
  private branches(block: number, token: number, change: Float64Array, withBias: boolean) {
    const { gated, parallel } = this.architecture;
    const name = `blk.${block}`;
    const norm = `${name}.${parallel ? "attn_norm" : "ffn_norm"}`;
    const normed = this.norm(change, this.mid[block]![token]!, norm, withBias);
    const up = product(`${name}.ffn_up.weight`, normed, inner);
    if (gated) return { gate: product(`${name}.ffn_gate.weight`, normed, inner), up };
    const added = bias(`${name}.ffn_up.bias`, 0, inner, inner);
    return { gate: up.map((value, k) => value + (withBias ? added[k]! : 0)), up };
  }

  /** The neurons of the pass at a token, and what each is of its two inputs: half of each where it is gated. */
  neurons(block: number, token: number): ReturnType<LinearModel["activate"]> {
    const key = `${block} ${token}`;
    const found = this.activated.get(key) ?? this.activate(block, token);
    this.activated.set(key, found);
    return found;
  }

  private readonly activated = new Map<string, ReturnType<LinearModel["activate"]>>();

  private activate(block: number, token: number) {
    const { activation, gated } = this.architecture;
    const { gate, up } = this.branches(block, token, this.mid[block]![token]!, true);
    const slope = gate.map((x) =>
      activation === "silu"
        ? 1 / (1 + Math.exp(-x))
        : (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))) / 2,
    );
    return {
      values: gate.map((x, k) => x * slope[k]! * (gated ? up[k]! : 1)),
      ofGate: slope.map((one, k) => (gated ? (one * up[k]!) / 2 : one)),
      ofUp: slope.map((one, k) => (gated ? (one * gate[k]!) / 2 : 0)),
    };
  }

  /** What neurons add to the stream at a token. */
  writeNeurons(block: number, token: number, row: Float64Array, withBias: boolean): Float64Array {
    const { gated, postNorm } = this.architecture;
    const name = `blk.${block}`;
    const projected = (values: Float64Array, biased: boolean) =>
      product(`${name}.ffn_down.weight`, values, hidden).map(
        (value, k) => value + (!gated && biased ? bias(`${name}.ffn_down.bias`, 0, hidden, hidden)[k]! : 0),
      );
    const added = projected(row, withBias);
    if (!postNorm) return added;
    const at = projected(this.neurons(block, token).values, true);
    return this.norm(added, at, `${name}.post_ffw_norm`, withBias);
  }

  /** What a change of an MLP's input makes of its neurons at a token. */
  change(block: number, token: number, row: Float64Array): Float64Array {
    const { ofGate, ofUp } = this.neurons(block, token);
    const { gate, up } = this.branches(block, token, row, false);
    return gate.map((value, k) => value * ofGate[k]! + up[k]! * ofUp[k]!);
  }

  /** How what the MLP adds at a token changes without a neuron, norms computed again. */
  loss(block: number, token: number, neuron: number): Float64Array {
    const { values } = this.neurons(block, token);
    const without = values.map((value, k) => (k === neuron ? 0 : value));
    const [added, all] = [without, values].map((row) => {
      const sum = product(`blk.${block}.ffn_down.weight`, row, hidden);
      return this.architecture.postNorm ? this.norm(sum, sum, `blk.${block}.post_ffw_norm`, false) : sum;
    }) as [Float64Array, Float64Array];
    return added.map((value, k) => value - all[k]!);
  }

  /** A change of what attention adds in a block, as a change of the block's output. */
  after(block: number, change: Rows, mlps: boolean): Rows {
    if (!mlps || this.architecture.parallel) return change;
    return this.throughMlp(block, change, change, false);
  }

  private throughMlp(block: number, stream: Rows, input: Rows, withBias: boolean): Rows {
    return stream.map((row, token) => {
      const { ofGate, ofUp } = this.neurons(block, token);
      const { gate, up } = this.branches(block, token, input[token]!, withBias);
      const change = gate.map((value, k) => value * ofGate[k]! + up[k]! * ofUp[k]!);
      const added = this.writeNeurons(block, token, change, withBias);
      return row.map((value, k) => value + added[k]!);
    });
  }

  /** One head's part of its block's outputs at a token. */
  head(block: number, head: number, token: number): Float64Array {
    const row = this.heads[block]![token]!;
    return row.map((value, k) => (Math.floor(k / width) === head ? value : 0));
  }
}

export const sum = (values: ArrayLike<number>) => Array.from(values).reduce((all, value) => all + value, 0);

/** A function of the stream before a block, or of the last one's output. */
export interface Reading {
  /** Blocks below it; with `mid`, also the first half of this block. */
  before: number;
  mid?: boolean;
  position: number;
  direction: Float64Array;
  constant: number;
}

/** The logit of a token, less another's or the mean of all, as the final norm and the head compute it. */
export function logitReading(
  name: string,
  linear: LinearModel,
  { position, token, minus: other }: { position: number; token: number; minus?: number },
): Reading {
  const separate = name === "phi2";
  const head = separate
    ? randomMatrix("output.weight", hidden * vocabulary)
    : randomMatrix("token_embd.weight", hidden * vocabulary, 2);
  const bias = separate ? randomMatrix("output.bias", vocabulary) : new Float32Array(vocabulary);
  const row = (id: number) => Float64Array.from(head.subarray(id * hidden, (id + 1) * hidden));
  const all = Array.from({ length: vocabulary }, (_, id) => id);
  const mean = Float64Array.from(
    { length: hidden },
    (_, k) => sum(all.map((id) => row(id)[k]!)) / vocabulary,
  );
  const less = other === undefined ? mean : row(other);
  const difference = row(token).map((value, k) => value - less[k]!);
  const at = linear.last[position]!;
  const zero = new Float64Array(hidden);
  const unit = (k: number) => zero.map((_, i) => (i === k ? 1 : 0));
  const direction = zero.map((_, k) => dot(difference, linear.norm(unit(k), at, "output_norm", false)));
  const constant =
    dot(difference, linear.norm(zero, at, "output_norm", true)) +
    bias[token]! -
    (other === undefined ? sum(bias) / vocabulary : bias[other]!);
  return { before: blocks, position, direction, constant };
}

/** Opens a model with a context that keeps attention, for as long as `use` runs. */
export async function opened<T>(
  path: string,
  use: (context: Context, model: Model) => Promise<T>,
): Promise<T> {
  const model = await Model.open(path, { gpuLayers: 0 });
  try {
    return await use(await model.createContext({ nCtx: 64, threads: 2, keepAttention: true }), model);
  } finally {
    await model.close();
  }
}

export { heads as headCount, inner as neuronCount, width as headWidth };
