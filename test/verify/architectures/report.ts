import { type Context, type Model, type Point, points } from "../../../src/native/index.js";

/** The findings of a check. `measured` holds the worst figures seen, whether or not they pass. */
export interface Check {
  name: string;
  ok: boolean;
  /** The problems; empty when ok. */
  detail: string;
  /** Why a check that passes had less to check. */
  note?: string;
  measured?: Record<string, number>;
}

export interface ModelReport {
  architecture: string;
  nLayer: number;
  tensorNames: string[];
  /** What reaches later blocks beside the block output, by the architecture's design. */
  sidePath: string;
  /** The reason for a missing logit lens; empty where there is one. */
  lens: string;
  /** Of each point of a block, why there is none; empty where there is. */
  points?: Record<Point, string>;
  /** How the halves of its blocks add to the stream: parallel, normed, scaled. */
  form?: string[];
  /** What of a graph's wiring it has, by name. */
  wiring?: string[];
  /** Why the model is refused; empty where it is supported. */
  refused: string;
  checks: Check[];
}

/** The descriptions of a model and its context, before anything is checked. */
export function reportOf(model: Model, context: Context): ModelReport {
  const { architecture, nLayer } = model.info;
  const { supported, reason, sidePath, tensorNames } = context.blockOutputs;
  return {
    architecture,
    nLayer,
    tensorNames: [...tensorNames],
    sidePath,
    lens: context.lens.supported ? "" : context.lens.reason,
    points: Object.fromEntries(
      points.map((point) => [point, context.points[point].supported ? "" : context.points[point].reason]),
    ) as Record<Point, string>,
    form: Object.entries(context.form).flatMap(([name, is]) => (is ? [name] : [])),
    refused: supported ? "" : reason,
    checks: [],
  };
}

export interface Outcome {
  /** File name without its ending, e.g. "qwen3moe-moe". */
  model: string;
  verdict: "holds" | "refused" | "failed";
  /** What failed, or the sentence of the refusal. */
  reason: string;
  seconds: number;
  report?: ModelReport;
}

/** How `--quantised` quantises: two that the processor repacks for its products, and two more of most files. */
export const quantisations = ["Q4_0", "Q8_0", "Q4_K", "Q2_K"] as const;

export const tolerances = {
  /** Printed values have four decimals: half of the last one comes on top of everything else. */
  printedDigit: 0.5e-4,
  value: 1e-4,
  /** Of a printed sum, relative to the sum … */
  sum: 1e-4,
  /** … plus, because positive and negative values cancel, relative to the sum of the absolute values. */
  sumOfAbsolute: 1e-6,
  /** Least relative change of the logits that counts as an effect; without one they do not change by a bit. */
  effect: 1e-2,
  sufficient: 1e-5,
  /** K and V are kept in F16: a difference in the last float32 bit can flip a rounding of 5e-4. */
  packed: 1e-3,
  chunked: 1e-3,
  /** A block's three summands, added in another order than the graph's. */
  summands: 1e-6,
  /** A row that is normalised without the epsilon of its norm. */
  norm: 1e-3,
  /** Attention times values, added up in float64 and in float32. */
  attention: 1e-5,
  attentionInF16: 1e-3,
  /** Attention from its linear path (L2): V is in F16, and so are the heads' weights then. */
  linear: 1e-3,
  /** A sum of parts from its value, over the L2 norm of all. */
  closes: 1e-5,
  /** A dense MLP from what its neurons add (L2). */
  dense: 1e-5,
  /** Of a value in float64 from the pass's own difference of two logits. */
  logitDifference: 1e-3,
  /** Total variation between two next-token distributions. */
  lens: 1e-5,
  /** Of one token's probability, between a batched comparison and a generation one by one. */
  probability: 1e-4,
  /** Of a logit difference, between a patch sweep and a pass for each site, over the largest one. */
  patched: 1e-3,
  /** Products with quantised weights round their other side, too, to eight bits in blocks. */
  quantised: 0.02,
  quantisedPacked: 5e-4,
  /** hrm_text computes its blocks over and over: roundings add up, alike in every type. */
  quantisedCycles: 0.1,
} as const;
