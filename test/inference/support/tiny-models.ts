import { byteTokenizer } from "../../../bench/models/byte-tokenizer.js";
import { type Metadata, type TensorSpec, writeGguf } from "../../../bench/models/gguf-writer.js";
import { TestRandom } from "../../support/random.js";

const hidden = 32;
const head = 16;
const feedForward = 32;
const blocks = 2;
const vocabulary = 320;

export { vocabulary as tinyVocabulary };

/** The numbers that a matrix of this name has in every tiny model. */
export function randomMatrix(name: string, count: number, scale = 0.5): Float32Array {
  const random = new TestRandom([...name].reduce((sum, letter) => sum + letter.charCodeAt(0), 0));
  return Float32Array.from({ length: count }, () => (random.uniform() - 0.5) * scale);
}

/** A tensor of given numbers; dimensions in ggml's order, the fastest first. */
export function tensor(name: string, dimensions: number[], numbers: Float32Array): TensorSpec {
  return { name, dimensions, type: "f32", bytes: () => Buffer.from(numbers.buffer) };
}

const countOf = (dimensions: number[]) => dimensions.reduce((product, size) => product * size, 1);

/** The numbers that a tensor of this name has in every tiny model. */
export const randomTensor = (name: string, dimensions: number[], scale = 0.5): TensorSpec =>
  tensor(name, dimensions, randomMatrix(name, countOf(dimensions), scale));

/** One number everywhere. */
export const filledTensor = (name: string, dimensions: number[], value: number): TensorSpec =>
  tensor(name, dimensions, new Float32Array(countOf(dimensions)).fill(value));

export const ones = (name: string, length: number): TensorSpec => filledTensor(name, [length], 1);
const matrix = (name: string, inner: number, outer: number, scale?: number) =>
  randomTensor(name, [inner, outer], scale);
const eyeOf = (size: number, factor = 1) =>
  Float32Array.from({ length: size * size }, (_, index) => (index % (size + 1) === 0 ? factor : 0));

export interface TinyModel {
  /** Further metadata, or other values for what is there. */
  metadata?: Metadata;
  /** Further tensors, or replacements of those with the same name. */
  tensors?: TensorSpec[];
}

/** The blocks' last matrices with one number everywhere. */
export const filledOutputs = (value: number): TensorSpec[] =>
  Array.from({ length: blocks }, (_, block) =>
    filledTensor(`blk.${block}.ffn_down.weight`, [feedForward, hidden], value),
  );

/** A qwen3 of random weights, a few kilobytes. */
export async function writeTinyModel(
  path: string,
  { metadata = {}, tensors = [] }: TinyModel = {},
): Promise<void> {
  const all = [matrix("token_embd.weight", hidden, vocabulary), ones("output_norm.weight", hidden)];
  for (let block = 0; block < blocks; block++) {
    const blk = `blk.${block}`;
    all.push(
      ones(`${blk}.attn_norm.weight`, hidden),
      ones(`${blk}.ffn_norm.weight`, hidden),
      ones(`${blk}.attn_q_norm.weight`, head),
      ones(`${blk}.attn_k_norm.weight`, head),
      matrix(`${blk}.attn_q.weight`, hidden, head),
      matrix(`${blk}.attn_k.weight`, hidden, head),
      matrix(`${blk}.attn_v.weight`, hidden, head),
      matrix(`${blk}.attn_output.weight`, head, hidden),
      matrix(`${blk}.ffn_gate.weight`, hidden, feedForward),
      matrix(`${blk}.ffn_up.weight`, hidden, feedForward),
      matrix(`${blk}.ffn_down.weight`, feedForward, hidden),
    );
  }
  const others = new Map(tensors.map((one) => [one.name, one]));
  for (const { name } of all) others.delete(name);
  await writeGguf(
    path,
    {
      "general.architecture": "qwen3",
      "general.file_type": 0,
      "qwen3.block_count": blocks,
      "qwen3.context_length": 512,
      "qwen3.embedding_length": hidden,
      "qwen3.feed_forward_length": feedForward,
      "qwen3.attention.head_count": 1,
      "qwen3.attention.head_count_kv": 1,
      "qwen3.attention.key_length": head,
      "qwen3.attention.value_length": head,
      "qwen3.attention.layer_norm_rms_epsilon": { f32: 1e-6 },
      "qwen3.rope.freq_base": { f32: 10_000 },
      ...byteTokenizer(vocabulary),
      ...metadata,
    },
    [...all.map((one) => tensors.find(({ name }) => name === one.name) ?? one), ...others.values()],
  );
}

/**
 * A reranker whose score can be computed by hand: its blocks add nothing, a byte's embedding is the unit vector of
 * its number modulo 32, and the document's last byte alone is looked at. The classifier gives "yes" a tenth of
 * that number and "no" nothing.
 */
export const reranker: TinyModel = {
  metadata: {
    "qwen3.pooling_type": 4,
    "qwen3.classifier.output_labels": ["yes", "no"],
    "tokenizer.chat_template.rerank": "{query}{document}",
  },
  tensors: [
    tensor(
      "token_embd.weight",
      [hidden, vocabulary],
      Float32Array.from({ length: hidden * vocabulary }, (_, index) =>
        index % hidden === Math.floor(index / hidden) % hidden ? 1 : 0,
      ),
    ),
    ...Array.from({ length: blocks }, (_, block) =>
      tensor(`blk.${block}.attn_output.weight`, [head, hidden], new Float32Array(head * hidden)),
    ),
    ...filledOutputs(0),
    tensor(
      "cls.output.weight",
      [hidden, 2],
      Float32Array.from({ length: hidden * 2 }, (_, index) => (index < hidden ? index / 10 : 0)),
    ),
  ],
};

/** A model whose context holds an answer that does not end during a test. */
export const patient: TinyModel = { metadata: { "qwen3.context_length": 16_384 } };

/** A model whose vocabulary has tokens to fill in with. */
export const infiller: TinyModel = {
  metadata: {
    "tokenizer.ggml.fim_pre_token_id": 300,
    "tokenizer.ggml.fim_suf_token_id": 301,
    "tokenizer.ggml.fim_mid_token_id": 302,
  },
};

const adapted = "blk.1.ffn_down.weight";
const rank = 2;
const [down, up] = [randomMatrix("lora_a", rank * feedForward, 8), randomMatrix("lora_b", hidden * rank, 8)];

/** A LoRA adapter of {@link writeTinyModel}'s model that changes one matrix. */
export async function writeTinyAdapter(path: string): Promise<void> {
  await writeGguf(
    path,
    {
      "general.type": "adapter",
      "general.architecture": "qwen3",
      "adapter.type": "lora",
      "adapter.lora.alpha": { f32: rank },
    },
    [tensor(`${adapted}.lora_a`, [feedForward, rank], down), tensor(`${adapted}.lora_b`, [rank, hidden], up)],
  );
}

/** The model that the adapter makes, at a strength, with the two matrices multiplied out. */
export function merged(strength: number): TinyModel {
  const weights = randomMatrix(adapted, feedForward * hidden).map((weight, index) => {
    const [row, column] = [Math.floor(index / feedForward), index % feedForward];
    let sum = 0;
    for (let k = 0; k < rank; k++) {
      sum += (up[row * rank + k] as number) * (down[k * feedForward + column] as number);
    }
    return weight + strength * sum;
  });
  return { tensors: [tensor(adapted, [feedForward, hidden], weights)] };
}

const [imageSize, patchSize] = [28, 14];

/**
 * An image encoder of one linear layer. Without `token`, its four rows are what a patch's colours give; with it, they
 * are that token's embedding whatever the image shows: the chat must then answer as one that says the token four
 * times.
 */
export async function writeTinyProjector(path: string, token?: number): Promise<void> {
  const patch = patchSize * patchSize * 3;
  const blank = (name: string, ...dimensions: number[]) =>
    tensor(name, dimensions, new Float32Array(dimensions.reduce((product, size) => product * size, 1)));
  const embeddings = randomMatrix("token_embd.weight", hidden * vocabulary);
  const said =
    token === undefined ? new Float32Array(hidden) : embeddings.slice(token * hidden, (token + 1) * hidden);
  await writeGguf(
    path,
    {
      "general.architecture": "clip",
      "general.file_type": 0,
      "clip.has_vision_encoder": true,
      "clip.projector_type": "mlp",
      "clip.use_gelu": true,
      "clip.vision.image_size": imageSize,
      "clip.vision.patch_size": patchSize,
      "clip.vision.embedding_length": hidden,
      "clip.vision.feed_forward_length": hidden,
      "clip.vision.block_count": 1,
      "clip.vision.projection_dim": hidden,
      "clip.vision.attention.head_count": 1,
      "clip.vision.attention.layer_norm_epsilon": { f32: 1e-5 },
      "clip.vision.image_mean": new Float32Array([0.5, 0.5, 0.5]),
      "clip.vision.image_std": new Float32Array([0.5, 0.5, 0.5]),
    },
    [
      tensor(
        "v.patch_embd.weight",
        [patchSize, patchSize, 3, hidden],
        randomMatrix("patch", patch * hidden, 0.1),
      ),
      blank("v.position_embd.weight", hidden, 4),
      ...["attn_q", "attn_k", "attn_v", "attn_out", "ffn_up", "ffn_down"].map((name) =>
        blank(`v.blk.0.${name}.weight`, hidden, hidden),
      ),
      ...["ln1", "ln2"].flatMap((name) => [
        ones(`v.blk.0.${name}.weight`, hidden),
        blank(`v.blk.0.${name}.bias`, hidden),
      ]),
      tensor("mm.0.weight", [hidden, hidden], eyeOf(hidden)),
      blank("mm.0.bias", hidden),
      tensor("mm.2.weight", [hidden, hidden], eyeOf(hidden, token === undefined ? 1 : 0)),
      tensor("mm.2.bias", [hidden], said),
    ],
  );
}
