import { invalid } from "./check.js";
import type { DictionaryPlaces } from "./dictionary.js";
import { type Edit, type LivePositions, nativeEdits, nativePositions } from "./edit.js";
import { NativeError } from "./error.js";
import type { TranslatorPlaces } from "./experiments/experiment.js";
import { checkPoint, type Point } from "./points.js";

/** A linear probe at a point of a block, including its standardisation: sigmoid(h . weight + bias). */
export interface LiveProbe {
  name: string;
  layer: number;
  /** Default: the block's output. */
  point?: Point;
  /** [hidden] */
  weight: Float64Array;
  bias: number;
}

/** Met once a probe has been above or below a bound for a number of consecutive tokens. */
export interface LiveCondition {
  /** Index among the plan's probes. */
  probe: number;
  bound: number;
  above: boolean;
  tokens: number;
}

/** The edits and readings of a request in the server's batches. */
export interface LivePlan {
  /** In order of application; readings at a layer precede its edits. */
  edits?: readonly Edit[];
  /** For each edit the index of the condition that activates it, -1 for always. */
  gates?: readonly number[];
  /** For each edit a JSON object as text, for its entry in the answer. */
  labels?: readonly string[];
  probes?: readonly LiveProbe[];
  conditions?: readonly LiveCondition[];
  /** The condition that ends the answer. */
  stop?: number;
  watch?: {
    /** For norms, lens and states. */
    layers: readonly number[];
    /** Of these layers. Default: the block's output. */
    point?: Point;
    /** For `head_out`, the heads to read, concatenated as one vector. Default: the whole row. */
    heads?: readonly number[];
    /** Tokens of the prompt are read in their rows, generated ones in the rows that predicted them. */
    positions: LivePositions;
    norms?: boolean;
    /** Candidates of the logit lens. */
    lensTop?: number;
    /** Report the scores of the plan's probes. */
    probes?: boolean;
    projections?: readonly { name: string; layer: number; point?: Point; vector: Float32Array }[];
    /** The `top` most active features of each row. */
    dictionaries?: readonly {
      name: string;
      layer: number;
      point?: Point;
      top: number;
      dictionary: DictionaryPlaces;
    }[];
    /** Saved lenses, read with `lensTop` at the layers that have a translator. */
    lenses?: readonly { name: string; translators: readonly ({ index: number } & TranslatorPlaces)[] }[];
    /** Save the watched rows, up to the limit: `keep` is called with those of each completion when it has ended. */
    states?: { id: string; bytes: number; keep(rows: CapturedRows): void };
  };
  /** Also generate each completion without the edits; these choices come after all others. */
  pair?: boolean;
}

/** Saved rows of one completion. */
export interface CapturedRows {
  /** Its name in the answer: the watch's id and the choice's index. */
  id: string;
  promptTokens: number;
  /** Token indices, ascending. */
  rows: Int32Array;
  /** Ids of the tokens at these indices. */
  tokens: Int32Array;
  /** Values [rows, width], NaN if the layer did not compute a row. */
  layers: readonly { layer: number; values: Float32Array }[];
}

/**
 * A plan as the addon reads it (native/napi/plan_args.cpp), each field checked.
 * @throws NativeError INVALID_ARGUMENT
 */
export function nativeLivePlan(plan: LivePlan, { nLayer, nEmbd }: { nLayer: number; nEmbd: number }): object {
  const { edits = [], gates = edits.map(() => -1), labels = edits.map(() => "{}") } = plan;
  const { probes = [], conditions = [], stop = -1, watch, pair = false } = plan;
  if (gates.length !== edits.length || labels.length !== edits.length) {
    throw invalid(`A plan of ${edits.length} edits needs the same number of gates and labels.`);
  }
  const layer = (value: number) => {
    if (Number.isInteger(value) && value >= 0 && value < nLayer) return value;
    throw new NativeError(
      "LAYER_OUT_OF_RANGE",
      `Layer ${value} does not exist: the model has layers 0 to ${nLayer - 1}.`,
    );
  };
  const pointOf = ({ point }: { point?: Point }) => {
    if (point === undefined) return {};
    checkPoint(point);
    return { point };
  };
  const place = (one: { layer: number; point?: Point }) => ({ layer: layer(one.layer), ...pointOf(one) });
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
    probes: probes.map(({ name, bias, ...probe }) => {
      return { name, bias, ...place(probe), weight: wide(probe.weight) };
    }),
    conditions: conditions.map((one) => ({ ...one, probe: index(one.probe, probes.length, 0) })),
    pair,
    stop: index(stop, conditions.length, -1),
    ...(watch && {
      watch: {
        ...watch,
        layers: [...new Set(watch.layers.map(layer))],
        ...pointOf(watch),
        ...(watch.heads && { heads: [...watch.heads] }),
        positions: nativePositions(watch.positions, true),
        ...(watch.states && { states: { id: watch.states.id, bytes: watch.states.bytes } }),
        projections: (watch.projections ?? []).map(({ name, ...one }) => {
          return { name, ...place(one), vector: wide(one.vector) };
        }),
        ...(watch.dictionaries && {
          dictionaries: watch.dictionaries.map((one) => ({ ...one, ...place(one) })),
        }),
        ...(watch.lenses && { lenses: [...watch.lenses] }),
      },
    }),
  };
}
