import { type Edit, type LivePositions, nativeEdits, nativePositions } from "./edit.js";
import { NativeError } from "./error.js";

/** A linear probe at a block output: sigmoid(h . weight + bias). */
export interface LiveProbe {
  name: string;
  layer: number;
  /** [hidden]; its standardisation folded in. */
  weight: Float64Array;
  bias: number;
}

/** Holds once a probe was above or below a bound for so many tokens in a row. */
export interface LiveCondition {
  /** Index among the plan's probes. */
  probe: number;
  bound: number;
  above: boolean;
  tokens: number;
}

/** What a request changes and watches while it is generated in the server's own batches. */
export interface LivePlan {
  /** Applied in this order; what reads at a layer reads before that layer's edits. */
  edits?: readonly Edit[];
  /** For each edit the index of the condition from which on it acts, -1 for always. */
  gates?: readonly number[];
  /** For each edit a JSON object as text that the answer begins its report with. */
  labels?: readonly string[];
  probes?: readonly LiveProbe[];
  conditions?: readonly LiveCondition[];
  /** The condition that ends the answer. */
  stop?: number;
  watch?: {
    /** Of norms and lens. */
    layers: readonly number[];
    /** Tokens of the prompt are read in their own rows, generated ones in the rows that chose them. */
    positions: LivePositions;
    norms?: boolean;
    /** Candidates of the logit lens. */
    lensTop?: number;
    /** Tell the scores of the plan's probes. */
    probes?: boolean;
    projections?: readonly { name: string; layer: number; vector: Float32Array }[];
    /** Keep the watched rows themselves, as many as fit: `keep` is called with those of each completion that has ended. */
    states?: { id: string; bytes: number; keep(rows: KeptRows): void };
  };
  /** Beside each completion the same one without the edits; its choice's index is behind all others. */
  pair?: boolean;
}

/** Rows of block outputs that a completion's watch asked for. */
export interface KeptRows {
  /** What the answer calls them: the watch's id and the choice's index. */
  id: string;
  promptTokens: number;
  /** Token indices, ascending. */
  rows: Int32Array;
  /** Ids of the tokens that stand there. */
  tokens: Int32Array;
  /** Values [rows, hidden], NaN where the layer did not compute a row. */
  layers: readonly { layer: number; values: Float32Array }[];
}

/**
 * A plan as the addon reads it (native/napi/live_args.cpp), each field checked.
 * @throws NativeError INVALID_ARGUMENT
 */
export function nativeLivePlan(plan: LivePlan, { nLayer, nEmbd }: { nLayer: number; nEmbd: number }): object {
  const { edits = [], gates = edits.map(() => -1), labels = edits.map(() => "{}") } = plan;
  const { probes = [], conditions = [], stop = -1, watch, pair = false } = plan;
  if (gates.length !== edits.length || labels.length !== edits.length) {
    throw invalid(`A plan of ${edits.length} edits needs as many gates and labels.`);
  }
  const layer = (value: number) => {
    if (Number.isInteger(value) && value >= 0 && value < nLayer) return value;
    throw new NativeError("LAYER_OUT_OF_RANGE", `Layer ${value} does not exist: 0 to ${nLayer - 1} do.`);
  };
  const wide = <T extends Float32Array | Float64Array>(value: T) => {
    if (value.length === nEmbd) return value;
    throw invalid(`A vector of a plan has ${value.length} values; the hidden size is ${nEmbd}.`);
  };
  const index = (value: number, count: number, least: number) => {
    if (Number.isInteger(value) && value >= least && value < count) return value;
    throw invalid(`A plan names entry ${value} of a list of ${count}.`);
  };
  for (const edit of edits) layer(edit.layer);
  return {
    edits: nativeEdits(edits, nEmbd, true),
    gates: gates.map((gate) => index(gate, conditions.length, -1)),
    labels: [...labels],
    probes: probes.map(({ name, bias, ...probe }) => ({
      name,
      bias,
      layer: layer(probe.layer),
      weight: wide(probe.weight),
    })),
    conditions: conditions.map((condition) => ({
      ...condition,
      probe: index(condition.probe, probes.length, 0),
    })),
    pair,
    stop: index(stop, conditions.length, -1),
    ...(watch && {
      watch: {
        ...watch,
        layers: [...new Set(watch.layers.map(layer))],
        positions: nativePositions(watch.positions, true),
        ...(watch.states && { states: { id: watch.states.id, bytes: watch.states.bytes } }),
        projections: (watch.projections ?? []).map((projection) => ({
          name: projection.name,
          layer: layer(projection.layer),
          vector: wide(projection.vector),
        })),
      },
    }),
  };
}

function invalid(sentence: string): NativeError {
  return new NativeError("INVALID_ARGUMENT", sentence);
}
