import type { GraphConfig, GraphNode, GraphResult } from "../../contracts/index.js";
import { limits, topCounts } from "../../contracts/limits.js";
import { inContext } from "../../lab/rows/open-context.js";
import { pieceLookup } from "../../lab/rows/tokens.js";
import { decoderRows, type OpenDictionary } from "../../library/index.js";
import type { Context, Model } from "../../native/index.js";
import type { OperationInput } from "../run.js";

/** The active features of a text by transcoder: for each, its token, its number and its activation. */
export interface ActiveFeatures {
  set: readonly OpenDictionary[];
  active: readonly { tokens: Int32Array; features: Int32Array; values: Float32Array }[];
}

type Described = NonNullable<GraphResult["features"]>[number];

/** Rows whose logits are in memory together. */
const rowsTogether = 8;

/**
 * What the most influential features of a graph stand for, as far as the prompt and the model show it: the tokens at which
 * they are most active here, and the tokens that their decoder rows alone raise (the logit lens; a cross-layer feature's
 * rows are summed over the blocks that it writes into).
 * @param nodes of the pruned graph
 */
export async function describeFeatures(
  input: OperationInput<GraphConfig>,
  nodes: readonly GraphNode[],
  { set, active }: ActiveFeatures,
): Promise<Described[]> {
  const at = new Map(set.map(({ stored }, i) => [stored.layer, i]));
  const chosen = strongestFeatures(nodes);
  if (chosen.length === 0) return [];
  const hidden = input.model.info.nEmbd;
  const directions = new Float32Array(chosen.length * hidden);
  for (const [i, { layer, index }] of chosen.entries()) {
    const rows = await decoderRows(set[at.get(layer) as number] as OpenDictionary, index, index + 1);
    for (let k = 0; k < rows.length; k++) directions[i * hidden + (k % hidden)]! += rows[k] as number;
  }
  const { model } = input;
  const raised = await inContext(input, { nCtx: rowsTogether }, (context) =>
    raisedTokens(context, model, directions),
  );
  return chosen.map(({ layer, index }, i) => {
    const { tokens, features, values } = active[at.get(layer) as number] as ActiveFeatures["active"][number];
    const places = [...features.keys()]
      .filter((one) => features[one] === index)
      .map((one) => ({ position: tokens[one] as number, activation: values[one] as number }));
    places.sort((a, b) => b.activation - a.activation || a.position - b.position);
    return {
      ...{ layer, index, active_tokens: places.length },
      strongest: places.slice(0, topCounts.graph_places),
      raised: raised[i] ?? null,
    };
  });
}

/** Features of nodes, each once, the one of the most influential node first. */
function strongestFeatures(nodes: readonly GraphNode[]): { layer: number; index: number }[] {
  const found = new Map<string, { layer: number; index: number }>();
  for (const { layer, index } of nodes
    .filter(({ kind }) => kind === "feature")
    .sort((a, b) => b.influence - a.influence)) {
    found.set(`${layer} ${index}`, { layer: layer as number, index: index as number });
  }
  return [...found.values()].slice(0, limits.graph_described);
}

/** For each direction the tokens whose logits it raises the most; nothing without a logit lens. */
async function raisedTokens(
  context: Context,
  model: Model,
  directions: Float32Array,
): Promise<NonNullable<Described["raised"]>[]> {
  if (!context.lens.supported) return [];
  const width = rowsTogether * model.info.nEmbd;
  const found: { ids: Int32Array; effects: number[] }[] = [];
  for (let from = 0; from < directions.length; from += width) {
    const logits = await context.lensLogits(directions.subarray(from, from + width));
    const vocabulary = model.info.nVocab;
    for (let row = 0; row < logits.length; row += vocabulary)
      found.push(greatest(logits.subarray(row, row + vocabulary), topCounts.graph_raised));
  }
  const piece = await pieceLookup(
    model,
    found.flatMap(({ ids }) => [...ids]),
  );
  return found.map(({ ids, effects }) =>
    Array.from(ids, (id, i) => ({ token_id: id, token: piece(id), effect: effects[i] as number })),
  );
}

/** The greatest logits, less the mean of all. */
function greatest(logits: Float32Array, count: number): { ids: Int32Array; effects: number[] } {
  const mean = logits.reduce((sum, logit) => sum + logit, 0) / logits.length;
  const best: number[] = [];
  for (const [id, logit] of logits.entries()) {
    if (best.length === count && logit <= (logits[best[count - 1] as number] as number)) continue;
    const place = best.findIndex((other) => logit > (logits[other] as number));
    best.splice(place < 0 ? best.length : place, 0, id);
    best.length = Math.min(best.length, count);
  }
  return { ids: Int32Array.from(best), effects: best.map((id) => (logits[id] as number) - mean) };
}
