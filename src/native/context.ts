import type { NativeContext } from "./binding.js";
import { cancellable } from "./cancel.js";
import { advance } from "./experiments/advance.js";
import { attribution } from "./experiments/attribution.js";
import { attributionGraph, attributionGraphBytes } from "./experiments/attribution-graph.js";
import type { Passes } from "./experiments/experiment.js";
import { embeddingInput, explain } from "./experiments/explain.js";
import { features } from "./experiments/features.js";
import { forward } from "./experiments/forward.js";
import { lensLogits, logitDirection, readLens } from "./experiments/lens.js";
import { patchSweep } from "./experiments/patch-sweep.js";
import { sweep } from "./experiments/sweep.js";
import { transcoderGraph, transcoderGraphBytes } from "./experiments/transcoder-graph.js";
import type { Point } from "./points.js";
import { SerialQueue } from "./serial.js";

export interface ContextOptions {
  /** Tokens in all sequences. Default 512. */
  nCtx?: number;
  /** Tokens per batch. Default: up to 256, fewer for large vocabularies. */
  nBatch?: number;
  /** Sequences at the same time, at most 256. Default 1. */
  maxSequences?: number;
  /** Default: all cores, but one for very small models. */
  threads?: number;
  /** Compute without flash attention, which does not store weights: for `AdvanceRequest.attention`. */
  keepAttention?: boolean;
  /**
   * Where block outputs are edited and read: inside the compute graph where it can do so, or by a callback that stops the
   * graph there. Default: the graph if a GPU computes any block, because a GPU then waits for the host once per pass.
   */
  edits?: "graph" | "callback";
}

/**
 * Whether a model's block outputs were found and proven in its compute graph, and whether the path from them
 * to the logits can be replayed as a logit lens.
 */
export interface Support {
  readonly supported: boolean;
  /** One sentence, when not supported. */
  readonly reason: string;
}

/** Whether a point exists, in which blocks (a hybrid has attention in some), and its size. */
export interface PointSupport extends Support {
  readonly layers: readonly number[];
  /** For each of these layers, the numbers per token; for a router, the chosen experts. */
  readonly widths: readonly number[];
  /** For each of these layers; 0 without heads. */
  readonly heads: readonly number[];
  /** The same for the experts of a router. */
  readonly experts: readonly number[];
}

/**
 * A llama.cpp context with a tap on its blocks, for isolated experiments on a model. Calls run one after another; errors
 * are {@link NativeError}s.
 */
export class Context {
  readonly nCtx: number;
  /** The most tokens for one advance(), and of a sequence for features(). */
  readonly nBatch: number;
  /** Whether a token's row depends only on earlier tokens; in an encoder it depends on the whole text. */
  readonly causal: boolean;
  readonly blockOutputs: Support & {
    /** Other inputs of later blocks in this architecture; empty for most. */
    readonly sidePath: string;
    /** llama.cpp's name of each block output tensor. */
    readonly tensorNames: readonly string[];
  };
  readonly lens: Support;
  /** The points of the model's blocks, each proven in its compute graph. */
  readonly points: Readonly<Record<Point, PointSupport>>;
  readonly form: {
    /** Attention and MLP read the same input, so `mid` does not exist. */
    readonly parallel: boolean;
    /** Additions to the residual stream are normalised or scaled. */
    readonly normed: boolean;
    readonly scaled: boolean;
  };

  // The experiments, each described in its file in experiments/.
  readonly advance = this.#offered(advance);
  readonly attribution = this.#offered(attribution);
  readonly attributionGraph = this.#offered(attributionGraph);
  readonly attributionGraphBytes = this.#offered(attributionGraphBytes);
  readonly transcoderGraph = this.#offered(transcoderGraph);
  readonly transcoderGraphBytes = this.#offered(transcoderGraphBytes);
  readonly features = this.#offered(features);
  readonly forward = this.#offered(forward);
  readonly sweep = this.#offered(sweep);
  readonly patchSweep = this.#offered(patchSweep);
  readonly embeddingInput = this.#offered(embeddingInput);
  readonly explain = this.#offered(explain);
  readonly logitDirection = this.#offered(logitDirection);
  readonly lensLogits = this.#offered(lensLogits);
  readonly readLens = this.#offered(readLens);

  readonly #native: NativeContext;
  readonly #passes: Passes;
  readonly #queue = new SerialQueue("context");
  /** Called when it is freed. */
  readonly #onClosed: () => void;

  /** @internal Use Model.createContext(). */
  constructor(native: NativeContext, hidden: number, onClosed: () => void) {
    const { supported, reason, sidePath, tensorNames, lensSupported, lensReason, ...info } = native.info;
    this.#onClosed = onClosed;
    this.#native = native;
    type Method = (request: object) => Promise<never>;
    const methods = native as unknown as Record<string, Method>;
    this.#passes = {
      hidden,
      run: (method, request, signal) =>
        cancellable(signal, async (cancel) => (methods[method] as Method)({ ...request, cancel })),
    };
    this.nCtx = info.nCtx;
    this.nBatch = info.nBatch;
    this.causal = info.causal;
    this.blockOutputs = { supported, reason, sidePath, tensorNames };
    this.lens = { supported: lensSupported, reason: lensReason };
    const found = info.points.map(
      ({ point, layers, widths, heads, experts, ...support }): [Point, PointSupport] => [
        point,
        {
          ...support,
          layers: [...layers],
          widths: [...widths],
          heads: [...heads],
          experts: [...experts],
        },
      ],
    );
    this.points = Object.fromEntries(found) as Record<Point, PointSupport>;
    this.form = { parallel: info.parallel, normed: info.normed, scaled: info.scaled };
  }

  /** Forgets all tokens. */
  reset(): Promise<void> {
    return this.#queue.run(() => this.#native.reset());
  }

  /** Frees the context after its running operations. Safe to call twice. */
  close(): Promise<void> {
    return this.#queue.close(async () => {
      await this.#native.close();
      this.#onClosed();
    });
  }

  /** An experiment as a method: it runs after earlier calls. */
  #offered<Args extends unknown[], Found>(
    experiment: (passes: Passes, ...args: Args) => Promise<Found>,
  ): (...args: Args) => Promise<Found> {
    return (...args) => this.#queue.run(() => experiment(this.#passes, ...args));
  }
}
