/** Tiny models with other kinds of memory than the embedded one, by llama.cpp's memory types. */
import { join } from "node:path";
import { byteTokenizer } from "../../bench/models/byte-tokenizer.js";
import { type Metadata, type TensorSpec, writeGguf } from "../../bench/models/gguf-writer.js";
import { filledTensor, randomTensor } from "../inference/support/tiny-models.js";

export const [vocabulary, blocks, hidden] = [320, 2, 32];
const inner = 64;

const everyBlock = (of: (block: string, index: number) => TensorSpec[], count = blocks) =>
  Array.from({ length: count }, (_, block) => of(`blk.${block}`, block)).flat();
const square = (...names: string[]) => names.map((name) => randomTensor(`${name}.weight`, [hidden, hidden]));
const feedForward = (blk: string) => square(...["gate", "up", "down"].map((name) => `${blk}.ffn_${name}`));
const attention = (blk: string) => square(...["q", "k", "v", "output"].map((name) => `${blk}.attn_${name}`));

/** @param last the name of the last norm, and the number of blocks */
async function write(
  folder: string,
  architecture: string,
  more: Metadata,
  tensors: TensorSpec[],
  last = { norm: "output_norm", count: blocks },
  change = (one: TensorSpec) => one,
): Promise<string> {
  const path = join(folder, `${architecture}-${Object.keys(more).length}.gguf`);
  const common = {
    block_count: last.count,
    context_length: 16_384,
    embedding_length: hidden,
    "attention.layer_norm_rms_epsilon": { f32: 1e-6 },
    ...more,
  };
  const metadata = Object.fromEntries(
    Object.entries(common).map(([name, value]) => [`${architecture}.${name}`, value]),
  );
  await writeGguf(
    path,
    {
      "general.architecture": architecture,
      "general.file_type": 0,
      ...metadata,
      ...byteTokenizer(vocabulary),
    },
    [
      randomTensor("token_embd.weight", [hidden, vocabulary], 2),
      filledTensor(`${last.norm}.weight`, [hidden], 1),
      ...everyBlock((blk) => [filledTensor(`${blk}.attn_norm.weight`, [hidden], 1)], last.count),
      ...tensors,
    ].map(change),
  );
  return path;
}

const attending = {
  feed_forward_length: hidden,
  "attention.head_count": 2,
  "attention.head_count_kv": 2,
  "rope.freq_base": { f32: 10_000 },
};

/** A mamba: each text has one state, which cannot be cut back. */
export const writeRecurrent = (folder: string) =>
  write(
    folder,
    "mamba",
    {
      feed_forward_length: 0,
      "attention.head_count": 0,
      "ssm.conv_kernel": 4,
      "ssm.inner_size": inner,
      "ssm.state_size": 8,
      "ssm.time_step_rank": 4,
    },
    everyBlock((blk) => [
      randomTensor(`${blk}.ssm_in.weight`, [hidden, 2 * inner]),
      randomTensor(`${blk}.ssm_conv1d.weight`, [4, inner], 2),
      randomTensor(`${blk}.ssm_conv1d.bias`, [inner]),
      randomTensor(`${blk}.ssm_x.weight`, [inner, 4 + 2 * 8]),
      randomTensor(`${blk}.ssm_dt.weight`, [4, inner]),
      randomTensor(`${blk}.ssm_dt.bias`, [inner]),
      filledTensor(`${blk}.ssm_a`, [8, inner], -1),
      filledTensor(`${blk}.ssm_d`, [inner], 1),
      randomTensor(`${blk}.ssm_out.weight`, [inner, hidden], 2),
    ]),
  );

/** A llada: every token reads every other one of its text. */
export const writeBidirectional = (folder: string) =>
  write(
    folder,
    "llada",
    attending,
    everyBlock((blk) => [
      filledTensor(`${blk}.ffn_norm.weight`, [hidden], 1),
      ...attention(blk),
      ...feedForward(blk),
    ]),
  );

/** A deepseek2 whose memory holds compressed keys, and no values. */
export function writeCompressed(folder: string): Promise<string> {
  const [heads, compressed, rotated, plain] = [2, 16, 8, 8];
  return write(
    folder,
    "deepseek2",
    {
      ...attending,
      "attention.head_count_kv": 1,
      "attention.q_lora_rank": 0,
      "attention.kv_lora_rank": compressed,
      "attention.key_length": compressed + rotated,
      "attention.value_length": compressed,
      "attention.key_length_mla": plain + rotated,
      "attention.value_length_mla": plain,
      "rope.dimension_count": rotated,
      leading_dense_block_count: blocks,
      expert_feed_forward_length: hidden,
      expert_shared_count: 0,
    },
    everyBlock((blk) => [
      filledTensor(`${blk}.ffn_norm.weight`, [hidden], 1),
      filledTensor(`${blk}.attn_kv_a_norm.weight`, [compressed], 1),
      randomTensor(`${blk}.attn_q.weight`, [hidden, heads * (plain + rotated)]),
      randomTensor(`${blk}.attn_kv_a_mqa.weight`, [hidden, compressed + rotated]),
      randomTensor(`${blk}.attn_k_b.weight`, [plain, compressed, heads]),
      randomTensor(`${blk}.attn_v_b.weight`, [compressed, plain, heads]),
      randomTensor(`${blk}.attn_output.weight`, [heads * plain, hidden]),
      ...feedForward(blk),
    ]),
  );
}

/**
 * A cohere2: the first and the last of three blocks read eight tokens, the one between them all. What changes behind
 * the first one is in both of its memories.
 */
export const writeWindowed = (folder: string) =>
  write(
    folder,
    "cohere2",
    {
      ...attending,
      "attention.layer_norm_epsilon": { f32: 1e-6 },
      "attention.sliding_window": 8,
      "attention.sliding_window_pattern": 2,
      logit_scale: { f32: 1 },
    },
    everyBlock((blk) => [...attention(blk), ...feedForward(blk)], 3),
    { norm: "output_norm", count: 3 },
  );

/**
 * An lfm2: the second of three blocks keeps a state, the others attend.
 * @param window how many tokens they read; 0: all
 * @param change what is done to each tensor
 */
export const writeHybrid = (folder: string, window = 0, change = (one: TensorSpec) => one) =>
  write(
    folder,
    "lfm2",
    {
      ...attending,
      "attention.head_count_kv": new Int32Array([2, 0, 2]),
      "shortconv.l_cache": 3,
      ...(window > 0 && { "attention.sliding_window": window }),
    },
    everyBlock(
      (blk, index) => [
        filledTensor(`${blk}.ffn_norm.weight`, [hidden], 1),
        ...feedForward(blk),
        ...(index === 1
          ? [
              randomTensor(`${blk}.shortconv.conv.weight`, [3, hidden], 2),
              randomTensor(`${blk}.shortconv.in_proj.weight`, [hidden, 3 * hidden]),
              ...square(`${blk}.shortconv.out_proj`),
            ]
          : [
              ...attention(blk),
              filledTensor(`${blk}.attn_q_norm.weight`, [hidden / 2], 1),
              filledTensor(`${blk}.attn_k_norm.weight`, [hidden / 2], 1),
            ]),
      ],
      3,
    ),
    { norm: "token_embd_norm", count: 3 },
    change,
  );

/**
 * The same with a window of 8 and a trapdoor: a row overflows in the second block where its last number is not zero, which
 * no row's is unless an edit makes it so.
 */
export const writeTrapdoor = (folder: string) =>
  writeHybrid(folder, 8, (one) => {
    const numbers = new Float32Array(
      new Uint8Array(one.bytes(4 * one.dimensions.reduce((product, size) => product * size))).buffer,
    );
    if (one.name === "token_embd.weight") {
      for (let last = hidden - 1; last < numbers.length; last += hidden) numbers[last] = 0;
    } else if (/attn_output|out_proj|ffn_down/.test(one.name)) {
      numbers.fill(0, numbers.length - hidden);
    } else if (/^blk\.1\.ffn_(gate|up)/.test(one.name)) {
      numbers[hidden - 1] = 1e30;
    }
    return { ...one, bytes: () => Buffer.from(numbers.buffer) };
  });
