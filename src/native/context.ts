import ndarray, { type NdArray } from "ndarray";
import type {
  ExcludedRows,
  NativeContext,
  NativeEmbeddingInput,
  NativeExplanation,
  NativePatchSweep,
  NativeReading,
  NativeSweepRow,
  NativeSweepTrial,
  NativeTop,
} from "./binding.js";
import { cancellable } from "./cancel.js";
import { checkInteger, checkLayers, invalid } from "./check.js";
import { type Edit, type EditEffect, nativeEdits } from "./edit.js";
import { NativeError } from "./error.js";
import { checkPoint, checkPoints, type Point } from "./points.js";
import { SerialQueue } from "./serial.js";

export interface ContextOptions {
  /** Tokens held over all sequences. Default 512. */
  nCtx?: number;
  /** Tokens computed at once. Default: up to 256, fewer for large vocabularies. */
  nBatch?: number;
  /** Sequences held at once, at most 256. Default 1. */
  maxSequences?: number;
  /** Default: all cores, and one for a model so small that threads would only wait for each other. */
  threads?: number;
  /** Compute without flash attention, which keeps no weights: for {@link AdvanceRequest.attention}. */
  keepAttention?: boolean;
}

/** The k most probable tokens of each row, most probable first: both arrays are [rows, k], row by row. */
export type TopTokens = NativeTop;

/**
 * A lens's translation in a file: where its arrays lie, in bytes from the file's start. A row h of a block output becomes
 * matrix . h + bias, plus h itself where `residual`; then the model's own final norm and head.
 */
export interface TranslatorPlaces {
  path: string;
  /** The matrix is IEEE binary16, else float32; a bias is float32. */
  half: boolean;
  /** [hidden, hidden], a row an output. */
  matrix: number;
  /** [hidden]; none where left out. */
  bias?: number;
  residual: boolean;
}

export interface LensRequest {
  /** float32 [rows, hidden] of each place; without a translator, the logit lens reads them as they are. */
  places: ReadonlyArray<{ states: Float32Array; translator?: TranslatorPlaces }>;
  /** The last block's rows: how far is each reading from what the model says? */
  output?: Float32Array;
  top: number;
  /** A token id a row, whose place is told; negative: none. */
  targets?: Int32Array;
  /** Tell each reading's entropy. */
  entropy?: boolean;
  signal?: AbortSignal;
}

/**
 * What a lens reads of one place's rows: the most probable tokens, and where asked for, each row's entropy and its distance
 * from the model's output, KL(output, reading), both in nats.
 */
export type LensReading = NativeReading;

/** Rows of one point of one block. */
export interface LayerCapture {
  layer: number;
  point: Point;
  /** float32 [rows, hidden], of `head_out` [rows, heads * head size]; one row a token, or the last token's only. Absent with `keepStates: false`. */
  states?: NdArray<Float32Array>;
  /** L2 norm of each row. */
  norms: Float32Array;
  /** Logit lens of each row; absent when not asked for or not supported, or where the point is no residual stream. */
  lens?: TopTokens;
}

/** Attention of some layers: how much each token of a text reads of each, after the softmax. */
export interface AttentionRequest {
  layers: readonly number[];
  /** Of each of these layers. Default: all. */
  heads?: readonly number[];
  /** Also compares the weights times the values with what the heads read, on the host. */
  prove?: boolean;
}

export interface LayerAttention {
  layer: number;
  heads: Int32Array;
  /** float32 [heads, tokens, tokens]: a row for each token, over all of them. */
  weights: NdArray<Float32Array>;
  /** With `prove`: relative L2 distance of the two. */
  apart: number;
}

/** Which experts a layer's router chose for each token, best first, and the weights that their outputs are added with. */
export interface LayerRouting {
  layer: number;
  /** Experts to choose from. */
  experts: number;
  /** int32 [tokens, experts of a token]. */
  chosen: NdArray<Int32Array>;
  /** float32, of the same shape: as the graph multiplies by them. */
  weights: NdArray<Float32Array>;
}

export interface AdvanceRequest {
  /** 1 to `context.nBatch` token ids. */
  tokens: Int32Array;
  /** Distinct block indices to capture; may be empty. */
  layers: readonly number[];
  /** Distinct points of each of these blocks. Default: the block output. */
  points?: readonly Point[];
  /** Capture every token's row (default) or only the last one's. */
  rows?: "all" | "last";
  /** Return the states (default), or only norms and lens. */
  keepStates?: boolean;
  /** Top k of the logit lens for every captured row. */
  lensTopK?: number;
  /** A token whose place in the lens is told for every captured row. */
  lensTarget?: number;
  /** Or that of the pass's own answer for the last row, where `nextTopK` gives one. */
  lensAnswer?: boolean;
  /** Top k of the token after the last one. */
  nextTopK?: number;
  /** Of a text in one pass, from its beginning, in a context with `keepAttention`. */
  attention?: AttentionRequest;
  /** Distinct layers whose router is read, of every token. */
  routing?: readonly number[];
  /** Return the logits after the last token, float32 [vocabulary]. */
  logits?: boolean;
  /**
   * A token id for each token, whose log-probability after it is wanted; -1: none. Such a pass gives no other answer:
   * neither `nextTopK` nor `logits`.
   */
  scored?: Int32Array;
  /** Compute no block behind the deepest captured one; the sequence can then not be continued deeper. */
  earlyExit?: boolean;
  /**
   * Changes applied after capture, in order; their layers and points must be among those captured. For their positions the tokens so
   * far, these included, are the prompt.
   */
  edits?: readonly Edit[];
  signal?: AbortSignal;
}

export interface AdvanceResult {
  /** Layer by layer, and point by point, in the order asked for. */
  layers: LayerCapture[];
  /** Layer by layer, in the order asked for. */
  attention?: LayerAttention[];
  /** Layer by layer, in the order asked for. */
  routing?: LayerRouting[];
  next?: TopTokens;
  logits?: Float32Array;
  /** Of the `scored` tokens, natural logarithm, [tokens]; 0 where none was asked for. */
  logProbabilities?: Float64Array;
  /** What each edit did; absent without edits. */
  effects?: EditEffect[];
}

export interface FeatureRequest {
  /** Token ids of each sequence, 1 to `context.nBatch` each. */
  sequences: readonly Int32Array[];
  layers: readonly number[];
  /** Of each block. Default: the block output. */
  point?: Point;
  /** The last token's row of each sequence (default), every token's, or the mean of its rows that count. */
  rows?: "last" | "all" | "mean";
  /** Of each sequence the first token that its mean, or all its rows, take in. Default: its first. */
  starts?: Int32Array;
  signal?: AbortSignal;
  onProgress?: (done: number, total: number) => void;
}

/** Rows, and how many of all sequences' their means left out. */
export type FeatureRows = NdArray<Float32Array> & { excluded: ExcludedRows };

/**
 * What one prompt did under one plan of edits: target probability after the prompt, and a greedy continuation. Where
 * `finite` is false, a logit was NaN or infinite and the row ended there: its numbers mean nothing. `effects` has one
 * entry an edit, over all of the row's tokens; none in a baseline.
 */
export type SweepRow = NativeSweepRow;

/** One prompt's target token, its baseline, and one row a plan, in the order given. */
export type SweepTrial = NativeSweepTrial;

export interface SweepRequest {
  /** Token ids of each prompt. */
  prompts: readonly Int32Array[];
  /** Plans of edits, each tried on every prompt; the edits of a plan are applied in order. */
  plans: ReadonlyArray<readonly Edit[]>;
  /** One token id a prompt; -1 takes the baseline's most probable token. Default: -1 everywhere. */
  targets?: Int32Array;
  /** Greedy continuation, 0 for none. Ends early at an end-of-generation token, which is left out. */
  maxTokens: number;
  signal?: AbortSignal;
  onProgress?: (done: number, total: number) => void;
}

export interface PatchSweepRequest {
  /** Token ids of two prompts; as many in both, unless `corruptedPositions` says what belongs together. */
  clean: Int32Array;
  corrupted: Int32Array;
  /** Clean states go into the corrupted run (default), or corrupted ones into the clean run. */
  denoise?: boolean;
  /** Distinct block indices, points of each (default: the block output) and token indices. */
  layers: readonly number[];
  points?: readonly Point[];
  /** Of `head_out`, the heads, each patched by itself. Required there. */
  heads?: readonly number[];
  positions: readonly number[];
  /** Of the corrupted prompt, one for each of `positions`. Default: the same. */
  corruptedPositions?: readonly number[];
  /** Default: the clean run's most probable token, and the corrupted run's. */
  target?: number;
  foil?: number;
  /** float32 [layers, points, hidden], of each head its size: the direction of each place's random change, which is as long as the patch's. */
  controls?: Float32Array;
  signal?: AbortSignal;
  /** Counts the sites that are computed, and hears what is known of them. */
  onProgress?: (done: number, total: number, growth: PatchGrowth) => void;
}

/** What a patch sweep has found out so far; as in its result, NaN where it is still to be computed. */
export type PatchGrowth = Pick<NativePatchSweep, "clean" | "corrupted" | "patched">;

/**
 * Logit differences, target less foil, after the prompt: of both prompts by themselves, of the run with a row of its own
 * put back, and [layers, points, positions] of every site (of `head_out` [heads, positions] in its point's place), with the L2 length of the row and of its change, NaN where nothing
 * reads the row. `computedSites` took `computedTokens`; the other sites change nothing, by construction.
 */
export type PatchSweep = NativePatchSweep;

/** What stands in the marked place of a prompt: a row in a token's embedding's place, a typed token, or nothing. */
export interface Filling {
  row?: Float32Array;
  token?: number;
}

export interface ExplainRequest {
  /** Token ids before the place and behind it. */
  before: Int32Array;
  after: Int32Array;
  /** Each is answered as if it were the only one. */
  fillings: readonly Filling[];
  /** Of each answer. */
  maxTokens: number;
  /** Answers to each filling. Default 1. */
  samples?: number;
  /** With `draws`: what logits are divided by. */
  temperature?: number;
  /** [samples, maxTokens], uniform from 0 to below 1: where each token is drawn. Default: the most probable token. */
  draws?: Float64Array;
  /** Return the logits of each answer's first token. */
  logits?: boolean;
  signal?: AbortSignal;
  /** Counts tokens of answers. */
  onProgress?: (done: number, total: number) => void;
}

/** What the model says to one filling: `ended` by itself, or cut at `maxTokens`; logits are float32 [vocabulary]. */
export type Explanation = NativeExplanation;

/**
 * Whether a row can stand where a token's embedding does: whether a token's own embedding, put in so, gives the logits of the
 * typed token to the bit. A typed token's embedding is multiplied by `tokenScale` first, a row is not (1 for most).
 */
export type EmbeddingInput = NativeEmbeddingInput;

/**
 * Whether a model's block outputs were found and proven in its compute graph, and whether the path from them
 * to the logits can be replayed as a logit lens.
 */
export interface Support {
  readonly supported: boolean;
  /** One sentence, when not supported. */
  readonly reason: string;
}

/** Whether a point is there, in which blocks (a hybrid has attention in some), and of what size. */
export interface PointSupport extends Support {
  readonly layers: readonly number[];
  /** Of each of these layers, the numbers of a token, of a router the experts; 0 where the point is no such row. */
  readonly widths: readonly number[];
  /** Of each of these layers, 0 where the point has none. */
  readonly heads: readonly number[];
  /** The same: what a router chooses from. */
  readonly experts: readonly number[];
}

/**
 * A llama.cpp context with a tap on its blocks: one isolated place to run experiments on a model. Calls run
 * one after another; errors are {@link NativeError}s.
 */
export class Context {
  readonly nCtx: number;
  /** Tokens that one advance() takes, and the longest sequence for features(). */
  readonly nBatch: number;
  /** Whether a token's row is of the tokens up to there alone; an encoder's are of the whole text. */
  readonly causal: boolean;
  readonly blockOutputs: Support & {
    /** What else reaches later blocks by the architecture's design; empty for most. */
    readonly sidePath: string;
    /** llama.cpp's name of each block output tensor. */
    readonly tensorNames: readonly string[];
  };
  readonly lens: Support;
  /** Which points of its blocks the model has, each proven in its compute graph by itself. */
  readonly points: Readonly<Record<Point, PointSupport>>;
  readonly form: {
    /** Attention and MLP read the same input, so that there is no middle. */
    readonly parallel: boolean;
    /** What is added to the stream has gone through a norm, or was scaled. */
    readonly normed: boolean;
    readonly scaled: boolean;
  };
  readonly #native: NativeContext;
  readonly #hidden: number;
  readonly #queue = new SerialQueue("context");
  /** Called when it is freed. */
  readonly #onClosed: () => void;

  /** @internal Use Model.createContext(). */
  constructor(native: NativeContext, hidden: number, onClosed: () => void) {
    const info = native.info;
    this.#onClosed = onClosed;
    this.#native = native;
    this.#hidden = hidden;
    this.nCtx = info.nCtx;
    this.nBatch = info.nBatch;
    this.causal = info.causal;
    this.blockOutputs = {
      supported: info.supported,
      reason: info.reason,
      sidePath: info.sidePath,
      tensorNames: info.tensorNames,
    };
    this.lens = { supported: info.lensSupported, reason: info.lensReason };
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

  /**
   * Continues the context's one sequence. Call in chunks of up to `nBatch` tokens; the K/V cache is kept.
   * Cancelling or failing forgets the whole sequence.
   * @throws NativeError LAYER_OUT_OF_RANGE, TOKEN_LIMIT, UNSUPPORTED_ARCHITECTURE, CANCELLED, …
   */
  advance(request: AdvanceRequest): Promise<AdvanceResult> {
    return this.#queue.run(async () => {
      const { signal, rows, ...rest } = request;
      checkLayers(request.layers);
      if (request.points !== undefined) checkPoints(request.points);
      checkInteger("lensTopK", request.lensTopK, 0);
      checkInteger("lensTarget", request.lensTarget, 0);
      checkInteger("nextTopK", request.nextTopK, 0);
      if (request.scored !== undefined) tokenIds(request.scored);
      if (request.attention !== undefined) checkAttention(request.attention);
      if (request.routing !== undefined) checkLayers(request.routing);
      const result = await cancellable(signal, (cancel) =>
        this.#native.advance({
          ...rest,
          tokens: tokenIds(request.tokens),
          edits: nativeEdits(request.edits, this.#hidden),
          allRows: rows !== "last",
          cancel,
        }),
      );
      const { attention, routing, layers, ...others } = result;
      const length = request.tokens.length;
      return {
        ...others,
        layers: layers.map(({ rows: count, width, states, ...layer }) =>
          states === undefined ? layer : { ...layer, states: ndarray(states, [count, width]) },
        ),
        ...(attention === undefined
          ? {}
          : {
              attention: attention.map(({ weights, heads, ...layer }) => ({
                ...layer,
                heads,
                weights: ndarray(weights, [heads.length, length, length]),
              })),
            }),
        ...(routing === undefined
          ? {}
          : {
              routing: routing.map(({ used, chosen, weights, ...layer }) => ({
                ...layer,
                chosen: ndarray(chosen, [length, used]),
                weights: ndarray(weights, [length, used]),
              })),
            }),
      };
    });
  }

  /**
   * Block outputs of many sequences, computed in packed batches that stop behind the deepest layer. Forgets the
   * context's sequence.
   * @returns float32 [rows, hidden] for each layer, in the order asked for: a row a sequence, or with `rows: "all"` a
   *   row a token, sequence by sequence; and what means left out
   */
  features(request: FeatureRequest): Promise<Map<number, FeatureRows>> {
    return this.#queue.run(async () => {
      const { signal, ...rest } = request;
      checkLayers(request.layers);
      if (request.point !== undefined) checkPoint(request.point);
      if (request.starts !== undefined) tokenIds(request.starts);
      const layers = await cancellable(signal, (cancel) =>
        this.#native.features({ ...rest, sequences: request.sequences.map(tokenIds), cancel }),
      );
      return new Map(
        layers.map(({ layer, states, excluded }) => [
          layer,
          Object.assign(ndarray(states, [states.length / this.#hidden, this.#hidden]), { excluded }),
        ]),
      );
    });
  }

  /**
   * Compares every prompt's baseline with every plan of edits: prompts are computed once up to the first token that
   * is edited, their K/V is shared, and all rows are generated in lockstep as one batch a step. A plan of neutral
   * edits (scale 1, strength 0) is the baseline itself. The context needs `1 + plans` sequences, and {@link sweepCells}
   * tokens a prompt; more of both lets several prompts run at once. Forgets the context's sequence.
   */
  sweep(request: SweepRequest): Promise<SweepTrial[]> {
    return this.#queue.run(async () => {
      const { signal, ...rest } = request;
      checkInteger("maxTokens", request.maxTokens ?? null, 0);
      if (request.targets !== undefined) tokenIds(request.targets);
      return cancellable(signal, (cancel) =>
        this.#native.sweep({
          ...rest,
          prompts: request.prompts.map(tokenIds),
          plans: request.plans.map((plan) => nativeEdits(plan, this.#hidden)),
          cancel,
        }),
      );
    });
  }

  /**
   * Puts single rows of one prompt's blocks, or single heads' parts of them, into another prompt's run, a site at a time. A site at token p has
   * the run's K/V before p and computes the tokens from p on; many sites share a batch. The context needs
   * {@link patchCells} tokens, batches of at least the prompt's, and two sequences; more of each lets more sites share a
   * batch. Forgets the context's sequence.
   */
  patchSweep(request: PatchSweepRequest): Promise<PatchSweep> {
    return this.#queue.run(async () => {
      const { signal, layers, points, heads, positions, corruptedPositions, ...rest } = request;
      checkLayers(layers);
      if (points !== undefined) checkPoints(points);
      checkIndices("Positions", positions);
      if (heads !== undefined) checkIndices("Heads", heads);
      if (corruptedPositions !== undefined) checkIndices("Positions", corruptedPositions);
      checkInteger("target", request.target, 0);
      checkInteger("foil", request.foil, 0);
      const [clean, corrupted] = [tokenIds(request.clean), tokenIds(request.corrupted)];
      if (corruptedPositions === undefined && clean.length !== corrupted.length) {
        throw invalid(
          `The clean prompt has ${clean.length} tokens and the corrupted one ${corrupted.length}; positions need as many in both.`,
        );
      }
      return cancellable(signal, (cancel) =>
        this.#native.patchSweep({
          ...rest,
          clean,
          corrupted,
          places: patchPlaces({ layers, points, heads }),
          cleanPositions: [...positions],
          corruptedPositions: [...(corruptedPositions ?? positions)],
          cancel,
        }),
      );
    });
  }

  /** Whether rows can stand where tokens' embeddings do. Found out once; forgets the context's sequence then. */
  embeddingInput(): Promise<EmbeddingInput> {
    return this.#queue.run(() => cancellable(undefined, (cancel) => this.#native.embeddingInput({ cancel })));
  }

  /**
   * What the model says to a prompt in which a row stands in a token's embedding's place. The tokens before it, the row and
   * the tokens behind it are a pass each. Forgets the context's sequence.
   * @throws NativeError UNSUPPORTED_ARCHITECTURE where {@link embeddingInput} says no, TOKEN_LIMIT, INVALID_ARGUMENT, …
   */
  explain(request: ExplainRequest): Promise<Explanation[]> {
    return this.#queue.run(async () => {
      const { signal, ...rest } = request;
      checkInteger("maxTokens", request.maxTokens ?? null, 1);
      checkInteger("samples", request.samples, 1);
      const [before, after] = [tokenIds(request.before), tokenIds(request.after)];
      return cancellable(signal, (cancel) => this.#native.explain({ ...rest, before, after, cancel }));
    });
  }

  /**
   * How a token's logit depends on the last block's output, with the final norm's scale kept as it is for that state:
   * logit = direction . state + constant. In float64, from the weights as they are, without any product's rounding.
   * @param state float32 [hidden]
   * @throws NativeError UNSUPPORTED_ARCHITECTURE where the way from there to the logits is not linear then
   */
  logitDirection(state: Float32Array, token: number): Promise<{ direction: Float64Array; constant: number }> {
    return this.#queue.run(async () => {
      checkInteger("token", token ?? null, 0);
      return cancellable(undefined, () => this.#native.logitDirection({ state, token }));
    });
  }

  /**
   * What the final norm and the output head make of rows of a block output.
   * @param rows float32 [rows, hidden]
   * @returns logits, [rows, vocabulary]
   * @throws NativeError UNSUPPORTED_ARCHITECTURE where there is no logit lens
   */
  lensLogits(rows: Float32Array): Promise<Float32Array> {
    return this.#queue.run(() => cancellable(undefined, () => this.#native.lensLogits({ rows })));
  }

  /**
   * Reads rows of several places through a lens: the most probable tokens of each row, its entropy, its distance from the
   * model's output. The head is computed for all places at once.
   * @returns a reading a place
   * @throws NativeError UNSUPPORTED_ARCHITECTURE where there is no logit lens
   */
  readLens(request: LensRequest): Promise<LensReading[]> {
    return this.#queue.run(async () => {
      const { signal, ...rest } = request;
      checkInteger("top", request.top ?? null, 1);
      if (request.targets !== undefined) tokenIds(request.targets);
      return cancellable(signal, (cancel) => this.#native.readLens({ ...rest, cancel }));
    });
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
}

/**
 * The most tokens that a sweep holds for one prompt: the prompt, every row's continuation, and for every plan that
 * edits earlier rows than the prompt's last one the prompt once more.
 */
export function sweepCells(promptTokens: number, plans: SweepRequest["plans"], maxTokens: number): number {
  const recomputed = plans.filter((plan) =>
    plan.some(({ positions = "last" }) => positions !== "last"),
  ).length;
  return promptTokens * (1 + recomputed) + (1 + plans.length) * maxTokens;
}

/** What a patch sweep puts in: each point of each layer, of `head_out` each head. */
export interface PatchPlace {
  layer: number;
  point: Point;
  head?: number;
}

/** Layer by layer, point by point and head by head, in the order asked for. @throws NativeError INVALID_ARGUMENT */
export function patchPlaces({
  layers,
  points = ["block_out"],
  heads,
}: {
  layers: readonly number[];
  points?: readonly Point[] | undefined;
  heads?: readonly number[] | undefined;
}): PatchPlace[] {
  if (points.includes("head_out") && (heads === undefined || heads.length === 0)) {
    throw invalid("Patching head_out needs heads.");
  }
  return layers.flatMap((layer) =>
    points.flatMap((point): PatchPlace[] =>
      point === "head_out"
        ? (heads as readonly number[]).map((head) => ({ layer, point, head }))
        : [{ layer, point }],
    ),
  );
}

/** The tokens that a patch sweep holds: the prompt, and a batch of sites. */
export function patchCells(promptTokens: number, batchTokens: number): number {
  return promptTokens + Math.max(promptTokens, batchTokens);
}

function checkAttention({ layers, heads = [] }: AttentionRequest): void {
  checkLayers(layers);
  checkIndices("Heads", heads);
}

function checkIndices(what: string, list: unknown): void {
  if (!Array.isArray(list)) throw invalid(`${what} must be an array of indices.`);
  for (const one of list) checkInteger(`One of the ${what.toLowerCase()}`, one ?? null, 0);
}

/** The ids as the addon wants them. */
export function tokenIds(value: unknown): Int32Array {
  if (value instanceof Int32Array) return value;
  throw new NativeError("INVALID_ARGUMENT", "Token ids must be an Int32Array.");
}
