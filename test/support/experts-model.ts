import { byteTokenizer } from "../../bench/models/byte-tokenizer.js";
import { type TensorSpec, writeGguf } from "../../bench/models/gguf-writer.js";
import { TestRandom } from "./random.js";

/** How a model of {@link writeExpertsModel} chooses its experts. */
export interface Choice {
  /** Experts in this many groups of equal size, of which `groupsUsed` may be chosen from; 1: no groups. */
  groups: number;
  groupsUsed: number;
  /** Probabilities by a softmax over all experts, or each by its own sigmoid. */
  gate: "softmax" | "sigmoid";
  /** A bias that counts for the choice and not for the weights. */
  biased: boolean;
  /** Weights of a token's experts are made to sum to 1, then multiplied. */
  normed: boolean;
  scale: number;
}

/** Its sizes: a first block without experts, then `blocks - 1` with. */
export const sizes = {
  blocks: 3,
  hidden: 32,
  feedForward: 16,
  heads: 2,
  experts: 12,
  used: 3,
  vocabulary: 320,
} as const;

/** Values of a model's tensors by name. */
export type Weights = Map<string, Float32Array>;

/**
 * A bailingmoe2 of random weights in F32, the same in every run, whose tokens are bytes. Experts and a shared one, chosen
 * by a router with every feature of routers.
 * @param damaged a token whose embedding is not finite
 * @returns its weights
 */
export async function writeExpertsModel(path: string, choice: Choice, damaged?: number): Promise<Weights> {
  const { blocks, hidden, feedForward, heads, experts, used, vocabulary } = sizes;
  const random = new TestRandom(16);
  const weights: Weights = new Map();
  const tensors: TensorSpec[] = [];
  const tensor = (name: string, dimensions: number[], about: number, deviation: number) => {
    const count = dimensions.reduce((product, length) => product * length, 1);
    const values = random.normals(count).map((value) => about + value * deviation);
    weights.set(name, values);
    tensors.push({
      name,
      dimensions,
      type: "f32",
      bytes: () => Buffer.from(values.buffer, values.byteOffset, values.byteLength),
    });
  };
  const matrix = (name: string, inner: number, ...outer: number[]) =>
    tensor(name, [inner, ...outer], 0, 1 / Math.sqrt(inner));
  const norm = (name: string, length: number) => tensor(name, [length], 1, 0.2);
  matrix("token_embd.weight", hidden, vocabulary);
  if (damaged !== undefined)
    weights.get("token_embd.weight")?.fill(Number.NaN, damaged * hidden, (damaged + 1) * hidden);
  norm("output_norm.weight", hidden);
  matrix("output.weight", hidden, vocabulary);
  for (let block = 0; block < blocks; block++) {
    const blk = `blk.${block}`;
    norm(`${blk}.attn_norm.weight`, hidden);
    matrix(`${blk}.attn_qkv.weight`, hidden, 3 * hidden);
    matrix(`${blk}.attn_output.weight`, hidden, hidden);
    norm(`${blk}.attn_q_norm.weight`, hidden / heads);
    norm(`${blk}.attn_k_norm.weight`, hidden / heads);
    norm(`${blk}.ffn_norm.weight`, hidden);
    const mlp = (kind: string, ...many: number[]) => {
      matrix(`${blk}.ffn_gate${kind}.weight`, hidden, feedForward, ...many);
      matrix(`${blk}.ffn_up${kind}.weight`, hidden, feedForward, ...many);
      matrix(`${blk}.ffn_down${kind}.weight`, feedForward, hidden, ...many);
    };
    if (block === 0) {
      mlp("");
      continue;
    }
    tensor(`${blk}.ffn_gate_inp.weight`, [hidden, experts], 0, 2 / Math.sqrt(hidden));
    if (choice.biased) tensor(`${blk}.exp_probs_b.bias`, [experts], 0, 0.3);
    mlp("_exps", experts);
    mlp("_shexp");
  }
  const metadata = {
    "general.architecture": "bailingmoe2",
    "general.file_type": 0,
    "bailingmoe2.block_count": blocks,
    "bailingmoe2.context_length": 2048,
    "bailingmoe2.embedding_length": hidden,
    "bailingmoe2.feed_forward_length": feedForward,
    "bailingmoe2.attention.head_count": heads,
    "bailingmoe2.attention.head_count_kv": heads,
    "bailingmoe2.attention.layer_norm_rms_epsilon": { f32: 1e-6 },
    "bailingmoe2.rope.freq_base": { f32: 10_000 },
    "bailingmoe2.leading_dense_block_count": 1,
    "bailingmoe2.expert_count": experts,
    "bailingmoe2.expert_used_count": used,
    "bailingmoe2.expert_shared_count": 1,
    "bailingmoe2.expert_feed_forward_length": feedForward,
    "bailingmoe2.expert_shared_feed_forward_length": feedForward,
    "bailingmoe2.expert_gating_func": choice.gate === "softmax" ? 1 : 2,
    "bailingmoe2.expert_weights_norm": choice.normed,
    "bailingmoe2.expert_weights_scale": { f32: choice.scale },
    "bailingmoe2.expert_group_count": choice.groups,
    "bailingmoe2.expert_group_used_count": choice.groupsUsed,
    ...byteTokenizer(vocabulary),
  };
  await writeGguf(path, metadata, tensors);
  return weights;
}

/** The effect of a block with experts on a row of the stream, in float64 from its weights alone. */
export interface Routed {
  chosen: number[];
  weights: number[];
  /** What experts and the shared one add. */
  added: number[];
}

export function route(weights: Weights, choice: Choice, block: number, row: ArrayLike<number>): Routed {
  const { hidden, feedForward, experts, used } = sizes;
  const of = (name: string) => weights.get(`blk.${block}.${name}`) as Float32Array;
  const rows = Array.from(row);
  const length = Math.sqrt(rows.reduce((sum, value) => sum + value * value, 0) / hidden + 1e-6);
  const x = rows.map((value, i) => (value / length) * of("ffn_norm.weight")[i]!);
  const product = (matrix: Float32Array, from: number, input: number[], outputs: number) =>
    Array.from({ length: outputs }, (_, o) =>
      input.reduce((sum, value, i) => sum + value * matrix[from + o * input.length + i]!, 0),
    );
  const logits = product(of("ffn_gate_inp.weight"), 0, x, experts);
  const all = logits.reduce((sum, logit) => sum + Math.exp(logit), 0);
  const probabilities = logits.map((logit) =>
    choice.gate === "softmax" ? Math.exp(logit) / all : 1 / (1 + Math.exp(-logit)),
  );
  const scores = probabilities.map(
    (probability, e) => probability + (choice.biased ? of("exp_probs_b.bias")[e]! : 0),
  );
  const best = (values: number[], count: number) =>
    [...values.keys()].sort((a, b) => values[b]! - values[a]!).slice(0, count);
  const size = experts / choice.groups;
  const groupScores = Array.from({ length: choice.groups }, (_, g) => {
    const group = scores.slice(g * size, (g + 1) * size);
    return best(group, 2).reduce((sum, e) => sum + group[e]!, 0);
  });
  const groups = best(groupScores, choice.groupsUsed);
  const chosen = best(
    scores.map((score, e) => (groups.includes(Math.floor(e / size)) ? score : Number.NEGATIVE_INFINITY)),
    used,
  );
  const sum = chosen.reduce((total, e) => total + probabilities[e]!, 0);
  const shares = chosen.map((e) => (probabilities[e]! / (choice.normed ? sum : 1)) * choice.scale);
  const mlp = (kind: string, expert: number) => {
    const at = expert * hidden * feedForward;
    const gate = product(of(`ffn_gate${kind}.weight`), at, x, feedForward);
    const up = product(of(`ffn_up${kind}.weight`), at, x, feedForward);
    const inner = gate.map((value, i) => (value / (1 + Math.exp(-value))) * up[i]!);
    return product(of(`ffn_down${kind}.weight`), at, inner, hidden);
  };
  const added = mlp("_shexp", 0);
  for (const [i, expert] of chosen.entries()) {
    for (const [d, value] of mlp("_exps", expert).entries()) added[d]! += shares[i]! * value;
  }
  return { chosen, weights: shares, added };
}
