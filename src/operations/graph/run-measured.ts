import type { GraphConfig, GraphResult, MeasuredNode } from "../../contracts/index.js";
import { bootstrap } from "../../findings/uncertainty.js";
import { openContext } from "../../lab/rows/open-context.js";
import type { Edit, GraphTarget } from "../../native/index.js";
import type { OperationInput } from "../run.js";
import { type FoundGraph, kindOf } from "./run-found.js";

const resamples = 2000;
/** Texts that share a batch. */
const textsTogether = 16;

/**
 * Removes nodes one at a time, with nothing frozen, and reads the first target: a neuron's part of `ffn_out` is taken out of
 * it, with a norm after the MLP computed again; a head's output is set to zero; a feature's part, which is after such a norm,
 * is taken out of `ffn_out`, across layers of every block that it writes into.
 */
export async function measureNodes(
  { config, model, progress, signal }: OperationInput<GraphConfig>,
  tokens: Int32Array,
  target: GraphTarget,
  found: FoundGraph,
  targets: number,
): Promise<GraphResult["measured"]> {
  if (found.tried.length === 0) return null;
  const context = await openContext(model, {
    nCtx: textsTogether * tokens.length,
    nBatch: Math.min(512, textsTogether * tokens.length),
    maxSequences: textsTogether,
  });
  try {
    const plans: Edit[][] = [
      [],
      ...Array.from(found.tried, (node, i) => removal(found, node, i, model.info.nEmbd)),
    ];
    const stage = "measuring removals";
    const values: number[] = [];
    for (let from = 0; from < plans.length; from += textsTogether) {
      progress({ stage, done: from, total: plans.length });
      const some = plans.slice(from, from + textsTogether);
      const { logits } = await context.forward({
        sequences: some.map((edits) => ({ tokens, edits })),
        logits: Int32Array.of(target.position),
        ...(signal && { signal }),
      });
      const { data } = logits!;
      const width = data.length / some.length;
      for (const at of some.keys())
        values.push(readTarget((data as Float32Array).subarray(at * width, (at + 1) * width), target));
    }
    const [baseline, ...removed] = values as [number, ...number[]];
    const { nodes, edges, frozen } = found;
    const rows = targets + nodes.layers.length;
    const measured = Array.from(
      found.tried,
      (node, i): MeasuredNode => ({
        kind: kindOf(nodes, node),
        layer: nodes.layers[node]!,
        position: nodes.tokens[node]!,
        index: nodes.indices[node]!,
        estimate: nodes.relevances[node * targets]!,
        effect: baseline - removed[i]!,
        ...(frozen && { direct: edges.parts[tokens.length + node]!, frozen: frozen[i * rows]! }),
      }),
    );
    return { nodes: measured, baseline, ...correlationOf(measured, config.seed) };
  } finally {
    await context.close();
  }
}

function removal({ nodes, losses }: FoundGraph, node: number, tried: number, width: number): Edit[] {
  const [layer, token] = [nodes.layers[node]!, nodes.tokens[node]!];
  const positions = [[token, token]] as const;
  if (kindOf(nodes, node) === "head")
    return [{ layer, positions, point: "head_out", heads: [nodes.indices[node]!], scale: 0 }];
  const loss = losses[tried]!;
  return Array.from({ length: loss.length / width }, (_, block) => ({
    ...{ layer: layer + block, positions, point: "ffn_out" as const },
    vector: loss.slice(block * width, (block + 1) * width),
  }));
}

/** A target's value in logits. */
export function readTarget(logits: Float32Array, { token, minus }: GraphTarget): number {
  const other =
    minus === undefined
      ? logits.reduce((sum, logit) => sum + logit, 0) / logits.length
      : (logits[minus] as number);
  return (logits[token] as number) - other;
}

function correlationOf(
  measured: readonly MeasuredNode[],
  seed: number,
): Pick<NonNullable<GraphResult["measured"]>, "correlation" | "interval"> {
  if (measured.length < 3) return { correlation: null, interval: null };
  const [found] = bootstrap(measured.length, { resamples, seed }, (times) => [pearson(measured, times)]);
  const { value, low, high } = found!;
  if (![value, low, high].every(Number.isFinite)) return { correlation: null, interval: null };
  return { correlation: value, interval: { low, high } };
}

/** Of estimates and effects, each counted `times`; NaN without variation. */
function pearson(measured: readonly MeasuredNode[], times: Uint32Array): number {
  const total = times.reduce((sum, count) => sum + count, 0);
  const mean = (of: (node: MeasuredNode) => number) =>
    measured.reduce((sum, node, i) => sum + times[i]! * of(node), 0) / total;
  const [x, y] = [mean(({ estimate }) => estimate), mean(({ effect }) => effect)];
  let [xx, xy, yy] = [0, 0, 0];
  for (const [i, { estimate, effect }] of measured.entries()) {
    xx += times[i]! * (estimate - x) ** 2;
    xy += times[i]! * (estimate - x) * (effect - y);
    yy += times[i]! * (effect - y) ** 2;
  }
  return xy / Math.sqrt(xx * yy);
}
