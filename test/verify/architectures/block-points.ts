import { points as known, type Point } from "../../../src/native/index.js";
import { relativeDistance, sameBits } from "./arithmetic.js";
import { logitsOf, type Subject } from "./check-model.js";
import { settings } from "./eval-callback.js";
import { type Check, tolerances } from "./report.js";

/** Those that are one vector of the hidden size a token. */
const points = known.filter((point) => !["attention", "head_out", "router"].includes(point));

/** float32 [tokens, hidden] of each point that there is, by layer. */
type Captured = Record<Point, Float32Array[]>;

/** a + b as a processor adds float32 numbers. */
const sum = (a: Float32Array, b: Float32Array) => a.map((value, i) => value + (b[i] as number));

/**
 * Every point that a model is said to have, in numbers: a block's input is the output of the block before it; input and
 * what attention adds are the middle, the middle and what the MLP adds the output, to the bit. A half that is taken out
 * leaves the stream as it was before it, to the bit, so that an edit there is an edit of what is added, and nothing
 * else. Capturing all of it changes no logit.
 */
export async function blockPoints(subject: Subject): Promise<Check> {
  const { context, layers, plain, states } = subject;
  const there = points.filter((point) => context.points[point].supported);
  const problems: string[] = [];
  for (const point of points) {
    const { supported, reason } = context.points[point];
    const said = /^The architecture '[^']+' has no proven [a-z_]+: .{20,}\.$/.test(reason);
    if (!supported && !said) problems.push(`${point} is refused with "${reason}"`);
  }
  const { captured, logits } = await capture(subject, there);
  if (!sameBits(logits, plain)) problems.push("capturing every point changes the logits");
  let largest = 0;
  const equal = (what: string, a: Float32Array, b: Float32Array, bound = 0) => {
    const distance = sameBits(a, b) ? 0 : Math.max(relativeDistance(a, b), Number.MIN_VALUE);
    largest = Math.max(largest, distance);
    if (!(distance <= bound)) problems.push(`${what}: off by ${distance}`);
  };
  const { block_in, attn_out, mid, ffn_out, block_out } = captured;
  for (const layer of layers) {
    equal(`block_out ${layer}`, block_out[layer]!, states[layer]!);
    if (layer > 0 && there.includes("block_in"))
      equal(`block_in ${layer}`, block_in[layer]!, states[layer - 1]!);
    if (!there.includes("attn_out")) continue;
    if (there.includes("mid")) {
      equal(`mid ${layer}`, sum(block_in[layer]!, attn_out[layer]!), mid[layer]!);
      equal(`sum ${layer}`, sum(mid[layer]!, ffn_out[layer]!), block_out[layer]!);
    } else {
      const all = sum(block_in[layer]!, sum(attn_out[layer]!, ffn_out[layer]!));
      equal(`sum ${layer}`, all, block_out[layer]!, tolerances.summands);
    }
  }
  if (there.includes("ffn_in")) problems.push(...(await mlpInputs(subject, captured)));
  if (there.includes("attn_out")) {
    for (const layer of new Set([layers[0]!, layers.at(-1)!])) {
      problems.push(...(await withoutHalves(subject, captured, layer, there.includes("mid"))));
    }
  }
  return {
    name: "points",
    ok: problems.length === 0,
    detail: problems.slice(0, 3).join("; "),
    measured: { largest },
  };
}

async function capture({ context, tokens, layers }: Subject, there: Point[]) {
  await context.reset();
  const result = await context.advance({ tokens, layers, points: there, rows: "all", logits: true });
  const captured = Object.fromEntries(points.map((point) => [point, [] as Float32Array[]])) as Captured;
  for (const { layer, point, states } of result.layers) captured[point][layer] = states!.data;
  return { captured, logits: result.logits! };
}

/**
 * What the MLP reads is one linear function per dimension of the normalised stream, whatever the token, and all that it
 * reads: with every token's input set to the first token's, every token has the same output, and `mid` is as before.
 */
async function mlpInputs(
  { context, tokens, layers, model }: Subject,
  { block_in, mid, ffn_in }: Captured,
): Promise<string[]> {
  const width = model.info.nEmbd;
  const row = (rows: Float32Array, token: number) => rows.subarray(token * width, (token + 1) * width);
  const problems: string[] = [];
  for (const layer of layers) {
    const stream = (mid[layer] ?? block_in[layer])!;
    const distance = Math.min(
      ...[false, true].map((centred) => notLinear(stream, ffn_in[layer]!, width, centred)),
    );
    if (!(distance <= tolerances.norm)) problems.push(`ffn_in ${layer} is off its norm by ${distance}`);
  }
  const layer = layers[0]!;
  const vector = row(ffn_in[layer]!, 0).slice();
  await context.reset();
  const found = await context.advance({
    ...{ tokens, layers: [layer], rows: "all", logits: true },
    points: ["ffn_out", mid[layer] === undefined ? "block_in" : "mid"],
    edits: [{ layer, point: "ffn_in", positions: [[0, tokens.length - 1]], scale: 0, vector, strength: 1 }],
  });
  const at = (point: Point) => found.layers.find((one) => one.point === point)!.states!.data;
  const outputs = at("ffn_out");
  for (let token = 1; token < tokens.length; token++) {
    const distance = relativeDistance(row(outputs, token), row(outputs, 0));
    if (!(distance <= tolerances.summands))
      problems.push(`token ${token} with the first's ffn_in: ${distance}`);
  }
  if (mid[layer] !== undefined && !sameBits(at("mid"), mid[layer]!))
    problems.push("a change of ffn_in changes mid");
  return problems;
}

/** How far rows are from one linear function per dimension of the normalised stream, relative L2. */
function notLinear(stream: Float32Array, found: Float32Array, width: number, centred: boolean): number {
  const count = stream.length / width;
  const normed = new Float64Array(stream.length);
  for (let token = 0; token < count; token++) {
    const row = stream.subarray(token * width, (token + 1) * width);
    const mean = centred ? row.reduce((sum, x) => sum + x, 0) / width : 0;
    const scale = Math.sqrt(row.reduce((sum, x) => sum + (x - mean) ** 2, 0) / width);
    row.forEach((x, i) => {
      normed[token * width + i] = (x - mean) / scale;
    });
  }
  let [error, square] = [0, 0];
  for (let i = 0; i < width; i++) {
    const column = (rows: ArrayLike<number>) => Array.from({ length: count }, (_, t) => rows[t * width + i]!);
    const [xs, ys] = [column(normed), column(found)];
    const [x, y] = [xs, ys].map((all) => all.reduce((sum, one) => sum + one, 0) / count) as [number, number];
    const slope =
      xs.reduce((sum, one, t) => sum + (one - x) * (ys[t]! - y), 0) /
      xs.reduce((sum, one) => sum + (one - x) ** 2, 0);
    for (let t = 0; t < count; t++) {
      error += (ys[t]! - y - slope * (xs[t]! - x)) ** 2;
      square += ys[t]! ** 2;
    }
  }
  return Math.sqrt(error / square);
}

/** Each half removed alone at every token: the stream after it is the one before it. */
async function withoutHalves(
  { context, tokens, plain, model }: Subject,
  { block_in, mid, attn_out, ffn_out }: Captured,
  layer: number,
  inOrder: boolean,
): Promise<string[]> {
  const width = model.info.nEmbd;
  const last = (rows: Float32Array) => rows.subarray(-width);
  const problems: string[] = [];
  for (const half of ["attn_out", "ffn_out"] as const) {
    // Unread rows are not computed: the last token's alone is.
    const place = [[tokens.length - 1, tokens.length - 1]] as const;
    const behind = inOrder && half === "attn_out" ? "mid" : "block_out";
    await context.reset();
    const found = await context.advance({
      tokens,
      layers: [layer],
      points: [half, behind],
      rows: "last",
      edits: [{ layer, point: half, positions: place, scale: 0 }],
      logits: true,
    });
    const before = inOrder
      ? last((half === "attn_out" ? block_in : mid)[layer]!)
      : sum(last(block_in[layer]!), last((half === "attn_out" ? ffn_out : attn_out)[layer]!));
    const left = found.layers[1]!.states!.data;
    const distance = sameBits(left, before) ? 0 : relativeDistance(left, before);
    if (!(distance <= (inOrder ? 0 : tolerances.summands)))
      problems.push(`block ${layer} without ${half}: ${behind} is off by ${distance}`);
    if (!(relativeDistance(found.logits!, plain) > 0))
      problems.push(`block ${layer} without ${half}: the logits are the same`);
  }
  return problems;
}

/**
 * Attention: each token's weights sum to 1, or to less where it may read a sink; none reads a later one in a causal model;
 * and times the values they are what the heads read. Keeping them changes no logit.
 */
export async function attention({ model, tokens }: Subject): Promise<Check> {
  const context = await model.createContext({ ...settings, keepAttention: true });
  const { supported, reason, layers } = context.points.attention;
  if (!supported) {
    await context.close();
    const ok = /^The architecture '[^']+' has no proven attention: .{20,}\.$/.test(reason);
    return { name: "attention", ok, detail: ok ? "" : `refused with "${reason}"`, note: reason };
  }
  const problems: string[] = [];
  const plain = await logitsOf(context, { tokens, layers: [] });
  let proven: readonly number[] = layers.filter((layer) => context.points.head_out.layers.includes(layer));
  const run = async (wanted: readonly number[], prove: boolean) => {
    await context.reset();
    const attention = { layers: wanted, prove };
    const { logits, attention: found = [] } = await context.advance({
      tokens,
      layers: [],
      attention,
      logits: true,
    });
    if (!sameBits(logits!, plain)) problems.push("keeping attention changes the logits");
    return found;
  };
  // Where the heads' outputs stand nowhere, the weights alone are looked at.
  const found = await run(layers, false);
  if (proven.length > 0) {
    // Without a memory, as where a model attends in both directions, the values are gone before they can be read.
    const more = await run(proven, true).catch((error: Error) => {
      if (/^Attention can only be proven if the V cache is on the host\.$/.test(error.message)) return [];
      throw error;
    });
    if (more.length === 0) proven = [];
    found.push(...more);
  }
  const n = tokens.length;
  // Of V in F16, ggml multiplies the weights in F16, too.
  const bound = model.info.quantization === "all F32" ? tolerances.attention : tolerances.attentionInF16;
  let largest = 0;
  for (const { layer, heads, weights, apart } of found) {
    largest = Math.max(largest, apart);
    if (!(apart <= bound)) problems.push(`block ${layer}: times the values it is off by ${apart}`);
    for (let row = 0; row < heads.length * n; ++row) {
      const sum = weights.data.subarray(row * n, (row + 1) * n).reduce((all, weight) => all + weight, 0);
      if (!(sum <= 1 + 1e-5 && (sum >= 1 - 1e-5 || sinks.has(model.info.architecture))))
        problems.push(`block ${layer}, row ${row} sums to ${sum}`);
    }
  }
  await context.close();
  return {
    name: "attention",
    ok: problems.length === 0,
    detail: problems.slice(0, 3).join("; "),
    measured: { largest, layers: layers.length, proven: proven.length },
  };
}

/** Whose tokens may read a sink, which is not a token. */
const sinks = new Set(["gpt-oss", "granite_swa", "mimo2", "dots3note"]);
