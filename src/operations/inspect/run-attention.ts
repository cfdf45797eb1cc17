import type { AttentionHead, InspectConfig } from "../../contracts/index.js";
import { limits } from "../../contracts/limits.js";
import { UserError } from "../../contracts/user-error.js";
import { writeNpz } from "../../lab/npz.js";
import { checkHeads } from "../../lab/rows/heads.js";
import { inContext } from "../../lab/rows/open-context.js";
import { checkLayers } from "../../lab/rows/tokens.js";
import type { Context, LayerAttention } from "../../native/index.js";
import type { OperationInput } from "../run.js";

/** Number of positions reported for the last token. */
const mostRead = 3;

/**
 * Attention after the softmax, in a separate context, because flash attention does not store weights. The weights and the
 * heads' outputs go to `attention.npz`; the result has each head's score for the classic kinds of heads.
 */
export async function attention(
  input: OperationInput<InspectConfig>,
  tokens: Int32Array,
): Promise<AttentionHead[]> {
  const { config, model, artifacts, clock, progress, signal } = input;
  const { layers = config.layers, heads } = config.attention ?? {};
  checkLayers(model, layers);
  progress({ stage: "attention", done: 0, total: 1 });
  const size = { nCtx: tokens.length, nBatch: tokens.length, keepAttention: true };
  return inContext(input, size, async (context) => {
    checkAttention(context, layers, heads, tokens.length);
    const whole = layers.every((layer) => context.points.head_out.layers.includes(layer));
    const found = await clock.measure("compute", () =>
      context.advance({
        tokens,
        layers: whole ? layers : [],
        points: ["head_out"],
        attention: { layers, ...(heads === undefined ? {} : { heads }) },
        ...(signal === undefined ? {} : { signal }),
      }),
    );
    const weights = found.attention ?? [];
    const count = (layer: number) => headsOf(context, layer);
    await clock.measure("artifact", () =>
      writeNpz(artifacts, "attention.npz", {
        ...Object.fromEntries(
          weights.map(({ layer, weights: { data, shape } }) => [`layer_${layer}`, { shape, data }]),
        ),
        ...Object.fromEntries(
          found.layers.map(({ layer, states }) => {
            const [rows, width] = states!.shape as [number, number];
            const size = width / count(layer);
            const data = heads === undefined ? states!.data : partsOf(states!.data, width, size, heads);
            return [`layer_${layer}_head_out`, { shape: [rows, data.length / rows / size, size], data }];
          }),
        ),
      }),
    );
    return weights.flatMap((layer) => describe(layer, tokens));
  });
}

/** The outputs of some heads, from rows of all heads. */
function partsOf(data: Float32Array, width: number, size: number, heads: readonly number[]): Float32Array {
  const parts = new Float32Array((data.length / width) * heads.length * size);
  let to = 0;
  for (let row = 0; row < data.length; row += width) {
    for (const head of heads) {
      parts.set(data.subarray(row + head * size, row + (head + 1) * size), to);
      to += size;
    }
  }
  return parts;
}

function headsOf({ points }: Context, layer: number): number {
  return points.attention.heads[points.attention.layers.indexOf(layer)] as number;
}

/** Rejects unavailable attention and oversized requests before anything is computed. */
export function checkAttention(
  context: Context,
  layers: number[],
  heads: number[] | undefined,
  tokens: number,
): void {
  const { supported, reason, layers: there } = context.points.attention;
  if (!supported) throw new UserError(reason);
  const without = layers.filter((layer) => !there.includes(layer));
  if (without.length > 0) {
    throw new UserError(
      `attention: ${without.length === 1 ? "block" : "blocks"} ${without.join(", ")} ${without.length === 1 ? "mixes" : "mix"} tokens without attention weights; ` +
        `the model has them in ${there.length === 1 ? "block" : "blocks"} ${there.join(", ")}.`,
    );
  }
  for (const layer of layers) checkHeads("attention.heads", heads, layer, headsOf(context, layer));
  const matrices = layers.reduce((sum, layer) => sum + (heads?.length ?? headsOf(context, layer)), 0);
  const bytes = matrices * tokens ** 2 * 4;
  if (bytes > limits.attention_bytes) {
    throw new UserError(
      `attention: ${matrices} heads of ${layers.length} layers over ${tokens} tokens take ${mebibytes(bytes)} MiB; the limit is ` +
        `${mebibytes(limits.attention_bytes)} MiB. Choose fewer layers or heads.`,
    );
  }
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / 1024 ** 2);
}

/** What each head of a layer attends to: means over tokens, and the last token's top positions. */
function describe({ layer, heads, weights }: LayerAttention, tokens: Int32Array): AttentionHead[] {
  const n = tokens.length;
  const repeats = repeated(tokens);
  return Array.from(heads, (head, row) => {
    const at = (token: number, other: number) => weights.data[(row * n + token) * n + other] as number;
    const mean = (places: readonly (readonly [number, number])[]) =>
      places.length === 0
        ? null
        : places.reduce((sum, [token, other]) => sum + at(token, other), 0) / places.length;
    const later = Array.from({ length: n - 1 }, (_, i) => i + 1);
    return {
      layer,
      head,
      previous: mean(later.map((token) => [token, token - 1])),
      first: mean(later.map((token) => [token, 0])),
      own: mean(Array.from(tokens.keys(), (token) => [token, token])) as number,
      induction: mean(repeats),
      last: Array.from(tokens.keys(), (position) => ({ position, weight: at(n - 1, position) }))
        .sort((a, b) => b.weight - a.weight)
        .slice(0, mostRead),
    };
  });
}

/** Each repeated token with the token after its first occurrence, which an induction head attends to. */
function repeated(tokens: Int32Array): [number, number][] {
  const first = new Map<number, number>();
  const places: [number, number][] = [];
  for (const [at, token] of tokens.entries()) {
    const earlier = first.get(token);
    if (earlier === undefined) first.set(token, at);
    else if (earlier + 1 < at) places.push([at, earlier + 1]);
  }
  return places;
}
