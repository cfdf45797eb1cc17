import type { ExcludedRows, NativeCancelToken } from "./binding.js";
import { cancellable } from "./cancel.js";
import { checkInteger, checkLayers, flag, tokenIds } from "./check.js";
import { type Edit, nativeEdits } from "./edit.js";
import { NativeError } from "./error.js";
import {
  type ForwardRequest,
  type ForwardSequence,
  type NativeForward,
  nativeForward,
  type TextSequence,
} from "./experiments/forward.js";
import { type CapturedRows, type LivePlan, nativeLivePlan } from "./live.js";
import { binding } from "./load.js";
import type { Point } from "./points.js";
import { SerialQueue } from "./serial.js";

/** Settings of the serving engine. */
export interface EngineOptions {
  /** A .gguf file, or the first part of a split set. */
  path: string;
  /** The served model's name. */
  id: string;
  /** Jinja template instead of the model's own. */
  chatTemplate?: string;
  /** Blocks on the GPU; default: as many as fit. */
  gpuLayers?: number;
  /** Map the file instead of reading it; default true. */
  mmap?: boolean;
  /** A draft model with the same vocabulary: its .gguf file. */
  draft?: string;
  /** Tokens of one slot; default: the training context, at most 8192. */
  ctxSize?: number;
  /** Slots: requests generated at the same time; default 4. */
  parallel?: number;
  /** Default: the machine's math cores. */
  threads?: number;
  /** Tokens per batch; default 256 on a CPU, 2048 on a GPU. */
  batch?: number;
  /** Memory for prompts to reuse, in MiB; default 512. */
  cacheRamMiB?: number;
  /** Default: on, unless the vocabulary makes the output buffer large. */
  embeddings?: boolean;
  /** Whether answers think if the template supports it; default: as in the template. */
  thinking?: boolean;
  /** Longest prompt of a resident capture, in tokens; 0 switches captures off. Default 256. */
  captureTokens?: number;
  /**
   * Where block outputs are edited and read, in live requests, captures and forward calls: inside the compute graph, or by a
   * callback that stops the graph at each layer. Default: in the graph where a GPU computes blocks. The callback computes
   * what the graph cannot.
   */
  edits?: "graph" | "callback";
  /** The model's image encoder: its .gguf file. */
  mmproj?: string;
  /** LoRA adapters: .gguf files and their scales. */
  loras?: readonly { path: string; scale: number }[];
  /** Types of the K and V caches, by ggml's names; default f16. */
  cacheTypeK?: string;
  cacheTypeV?: string;
  /** Default: automatic. */
  flashAttention?: "on" | "off";
  /** Pooling of embeddings; default: the model's, or the last token. */
  pooling?: "none" | "mean" | "cls" | "last" | "rank";
  ropeScaling?: "none" | "linear" | "yarn";
  /** Scaling of positions; default: the model's. */
  ropeScale?: number;
  ropeFreqBase?: number;
  /** The training context, if the file has a wrong value. */
  yarnOriginalCtx?: number;
  /** How to split the model over several GPUs; default: by layers. */
  splitMode?: "none" | "layer" | "row";
  /** Each GPU's share; default: by their memory. */
  tensorSplit?: readonly number[];
  mainGpu?: number;
  /** Number of blocks with experts in the CPU's memory; negative: all. */
  cpuMoe?: number;
  /**
   * Compute every batch a second time without edits, and compare the logits bit by bit: {@link Engine.twin}. This check
   * doubles the work; it cannot follow prompts that are restored from `cacheRamMiB`.
   */
  twin?: boolean;
  /** Called with the part that is being loaded and its progress, 0..1. */
  onProgress?: (stage: string, fraction: number) => void;
  /** Called once if the scheduler fails; the engine then does not answer. */
  onFailure?: (sentence: string) => void;
}

const counts = [
  "gpuLayers",
  "ctxSize",
  "parallel",
  "threads",
  "batch",
  "cacheRamMiB",
  "captureTokens",
] as const;

/** The served model. */
export interface EngineInfo {
  readonly id: string;
  readonly path: string;
  readonly architecture: string;
  readonly quantization: string;
  readonly nLayer: number;
  readonly nEmbd: number;
  readonly nVocab: number;
  readonly nCtxTrain: number;
  readonly nParams: number;
  readonly bytes: number;
  readonly slots: number;
  /** Tokens of one slot, for prompt and answer together. */
  readonly slotContext: number;
  readonly batch: number;
  readonly threads: number;
  readonly embeddings: boolean;
  readonly pooling: "none" | "mean" | "cls" | "last" | "rank";
  /** Whether chats may contain images. */
  readonly images: boolean;
  /** Whether the model's file or the options have a chat template; without one, chats are the messages' raw texts. */
  readonly chatTemplate: boolean;
  readonly templateSupportsThinking: boolean;
  /** The template's opening tag for thinking; or empty. */
  readonly thinkingTag: string;
  /** Whether answers think by default. */
  readonly thinking: boolean;
  readonly templateCapabilities: Readonly<Record<string, boolean>>;
  /** Whether resident captures are possible; if not, `noCaptureReason` says why. */
  readonly captures: boolean;
  readonly noCaptureReason: string;
  /** Whether additions to the residual stream are normalised, as in Gemma. */
  readonly normed: boolean;
  /** Points of the model's blocks; empty without captures. */
  readonly points: readonly Point[];
}

/** The kinds of requests. Bodies are those of llama-server's endpoints, validated. */
export type EngineRoute =
  | "chat"
  | "completion"
  /** llama-server's `/completion`. */
  | "native-completion"
  | "infill"
  | "rerank"
  | "metrics"
  | "slots"
  | "adapters"
  | "properties"
  | "embeddings"
  | "tokenize"
  | "detokenize"
  | "apply-template";

/** Part of a streamed answer: all server-sent events that were ready; none for delayed text. */
export interface StreamPart {
  readonly data: string;
  /** Per answer, the generated tokens whose text is in `data`; several prompts or choices mean several answers. */
  readonly tokens: readonly number[];
}

/** Times of one answer; `generatedMs` is from its first to its last token. */
export interface AnswerTime {
  readonly tokens: number;
  readonly promptMs: number;
  readonly generatedMs: number;
}

export interface EngineReply {
  readonly status: number;
  readonly contentType: string;
  /** The whole body; empty for a stream. */
  readonly body: string;
  /** Per answer in the whole body; empty for a stream. */
  readonly times: readonly AnswerTime[];
  /** For a stream. Leaving the loop early frees the slot. */
  readonly parts: AsyncIterableIterator<StreamPart> | null;
}

export interface CaptureRequest {
  /** Raw text. */
  prompt: string;
  /** Distinct block indices. */
  layers: readonly number[];
  /** Longer prompts are rejected. */
  maxTokens: number;
  /** Candidates for the next token. */
  nextTop: number;
  /** Takes effect until the pass starts. */
  signal?: AbortSignal;
}

export interface CaptureResult {
  readonly tokenIds: Int32Array;
  readonly pieces: readonly string[];
  readonly layers: readonly {
    readonly layer: number;
    readonly norms: Float32Array;
    /** [hidden]; only if requested. */
    readonly state?: Float32Array;
    /** For a mean. */
    readonly excluded?: ExcludedRows;
  }[];
  readonly nextIds: Int32Array;
  readonly nextProbabilities: Float32Array;
  readonly nextPieces: readonly string[];
  /** Milliseconds until the running scheduler iteration had ended. */
  readonly waitedMs: number;
  /** Milliseconds of the forward pass with its readings. */
  readonly forwardMs: number;
}

export interface ScoreRequest {
  /** Token ids of a prompt, at most `slotContext`. */
  tokens: Int32Array;
  /** Number of alternatives per token. */
  top: number;
  /** Made in the pass; all tokens count as the prompt. */
  edits?: readonly Edit[];
  /** Takes effect between two batches. */
  signal?: AbortSignal;
}

/** Probabilities of a prompt's tokens, each given the earlier ones, from the second token on. */
export interface PromptScores {
  /** Natural logarithms. [tokens - 1] */
  readonly logProbabilities: Float64Array;
  readonly top: number;
  /** Most probable first. [tokens - 1, top] */
  readonly topIds: Int32Array;
  /** [tokens - 1, top] */
  readonly topLogProbabilities: Float64Array;
  /** The bytes of every token in this result. */
  readonly pieces: ReadonlyMap<number, Uint8Array>;
}

/** The scheduler's counters; times in microseconds. */
export type EngineMetrics = Readonly<
  Record<
    | "busy_slots"
    | "deferred"
    | "decodes"
    | `${"prompt" | "cached" | "generated"}_tokens`
    | `${"prompt" | "generated"}_us`
    | "generated_steps",
    number
  >
>;

/** The number of rows of logits that a twin has compared. */
export interface TwinCount {
  readonly rows: number;
  /** In a batch with edited requests. */
  readonly beside: number;
  /** In at least one bit. */
  readonly different: number;
}

/** The comparisons of {@link EngineOptions.twin}, by the edits of the requests. */
export interface TwinReport {
  readonly batches: number;
  /** Without edits: ordinary requests, readings only, baselines of pairs. */
  readonly plain: TwinCount;
  /** Edits that change nothing. */
  readonly neutral: TwinCount;
  readonly edited: TwinCount;
  /** Requests that it could not follow. */
  readonly lost: number;
  /** The first row of a plain or neutral request that differed; empty: none. */
  readonly first: string;
}

interface NativeEvent {
  status?: number;
  contentType?: string;
  stream?: boolean;
  data: string;
  tokens: number[];
  /** For a whole answer. */
  times: { promptMs: number; generatedMs: number }[];
  done: boolean;
  states?: CapturedRows[];
}

export interface ServedForwardRequest extends Omit<ForwardRequest, "sequences"> {
  /** Texts, or token ids. */
  sequences: readonly (TextSequence | ForwardSequence)[];
  /** Whether texts get the model's special tokens, such as BOS. Default true. */
  addSpecial?: boolean;
  /** Also ends a running pass. */
  signal?: AbortSignal;
}

/** Results, with the time waited for the running iteration and the passes themselves. */
export interface ServedForward extends NativeForward {
  tokens: Int32Array[];
  waitedMs: number;
  forwardMs: number;
}

interface NativeEngine {
  /** JSON of {@link EngineInfo}. */
  readonly info: string;
  open(route: EngineRoute, body: string, live?: object): number | undefined;
  read(request: number): Promise<NativeEvent>;
  cancel(request: number): void;
  capture(request: object & { cancel: NativeCancelToken }): Promise<CaptureResult>;
  forward(request: object & { cancel: NativeCancelToken }): Promise<ServedForward>;
  score(
    request: object & { cancel: NativeCancelToken },
  ): Promise<Omit<PromptScores, "pieces"> & { ids: Int32Array; pieces: Uint8Array[] }>;
  twin(): TwinReport | undefined;
  close(): Promise<void>;
}

interface EngineBinding {
  openEngine(options: object): Promise<NativeEngine>;
}

/**
 * llama.cpp's serving engine with one model: continuous batching, prompt cache, grammars, tools, reasoning. Everything
 * runs on separate threads. Errors are {@link NativeError}s.
 */
export class Engine {
  readonly info: EngineInfo;
  /** Running captures and scores. */
  readonly #passes = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  private constructor(private readonly native: NativeEngine) {
    this.info = JSON.parse(native.info) as EngineInfo;
  }

  /**
   * Loads a model and starts serving it. Loading cannot be interrupted.
   * @throws NativeError MODEL_LOAD with llama.cpp's reason, OUT_OF_MEMORY
   */
  static async open(options: EngineOptions): Promise<Engine> {
    const { embeddings, thinking, ...rest } = options;
    for (const name of counts) checkInteger(name, options[name], name === "gpuLayers" ? -1 : 0);
    const flags = { embeddings: flag(embeddings), thinking: flag(thinking) };
    const native = binding<EngineBinding>();
    return new Engine(await NativeError.translate(() => native.openEngine({ ...rest, ...flags })));
  }

  /**
   * Sends a request and resolves with the head of its answer. A stream's parts are formatted when they are read, so a
   * slow reader only delays its own tokens.
   * @param signal ends the request and frees its slot, even while its parts are read
   * @param live edits and readings of a chat or a completion; reported in its answer at `choices[0].tapline`
   * @throws NativeError CANCELLED, CLOSED; LAYER_OUT_OF_RANGE, UNSUPPORTED_ARCHITECTURE, INVALID_ARGUMENT of `live`
   */
  async request(
    route: EngineRoute,
    body: object,
    signal?: AbortSignal,
    live?: LivePlan,
  ): Promise<EngineReply> {
    this.#assertOpen();
    if (live !== undefined && !this.info.captures) {
      throw new NativeError("UNSUPPORTED_ARCHITECTURE", this.info.noCaptureReason);
    }
    const plan = live === undefined ? undefined : nativeLivePlan(live, this.info);
    if (signal?.aborted) throw new NativeError("CANCELLED", "The request was cancelled.");
    const native = this.native;
    const read = async (request: number) => {
      const event = await native.read(request);
      for (const rows of event.states ?? []) live?.watch?.states?.keep(rows);
      return event;
    };
    const text = JSON.stringify(body);
    const id = translated(() => native.open(route, text, plan));
    if (id === undefined) throw new NativeError("INVALID_ARGUMENT", `The engine has no route ${route}.`);
    const cancel = () => native.cancel(id);
    signal?.addEventListener("abort", cancel, { once: true });
    const ended = () => signal?.removeEventListener("abort", cancel);
    try {
      const head = await read(id);
      const { status = 500, contentType = "application/json", stream = false } = head;
      if (!stream) {
        ended();
        const times = head.times.map((time, answer) => ({ ...time, tokens: head.tokens[answer] ?? 0 }));
        return { status, contentType, body: head.data, times, parts: null };
      }
      return {
        status,
        contentType,
        body: "",
        times: [],
        parts: readParts({ read, cancel }, id, head, ended),
      };
    } catch (error) {
      ended();
      throw NativeError.from(error);
    }
  }

  /**
   * A forward pass of raw text on the resident weights, between two iterations of the scheduler, in a separate context.
   * @throws NativeError TOKEN_LIMIT, LAYER_OUT_OF_RANGE, UNSUPPORTED_ARCHITECTURE, CANCELLED, CLOSED
   */
  async capture(request: CaptureRequest): Promise<CaptureResult> {
    return this.#capture(request);
  }

  async #capture(request: CaptureRequest & { state?: "last" | "mean" }): Promise<CaptureResult> {
    this.#assertOpen();
    const { signal, ...rest } = request;
    checkLayers(request.layers);
    checkInteger("maxTokens", request.maxTokens ?? null, 1);
    checkInteger("nextTop", request.nextTop ?? null, 0);
    return this.#awaited(cancellable(signal, (cancel) => this.native.capture({ ...rest, cancel })));
  }

  /**
   * Forward passes over texts on the resident weights, in a separate context, one batch at a time between two iterations of
   * the scheduler. Possible if captures are. One call runs at a time.
   * @throws NativeError INVALID_ARGUMENT, TOKEN_LIMIT (also for too many bytes), LAYER_OUT_OF_RANGE,
   *   UNSUPPORTED_ARCHITECTURE, COMPUTE, OUT_OF_MEMORY, CANCELLED, CLOSED
   */
  async forward(request: ServedForwardRequest): Promise<ServedForward> {
    this.#assertOpen();
    const { signal, addSpecial = true, ...rest } = request;
    const asked = { ...nativeForward(rest, this.info.nEmbd), addSpecial };
    return this.#awaited(cancellable(signal, (cancel) => this.native.forward({ ...asked, cancel })));
  }

  /**
   * Probabilities of a prompt's tokens: a forward pass on the resident weights, in a separate context, one batch at a time
   * between two iterations of the scheduler. Possible if captures are.
   * @throws NativeError INVALID_ARGUMENT (also for edits that make numbers infinite), LAYER_OUT_OF_RANGE, TOKEN_LIMIT,
   *   UNSUPPORTED_ARCHITECTURE, COMPUTE, OUT_OF_MEMORY, CANCELLED, CLOSED
   */
  async score({ signal, edits, ...rest }: ScoreRequest): Promise<PromptScores> {
    this.#assertOpen();
    tokenIds(rest.tokens);
    checkInteger("top", rest.top ?? null, 0);
    const request = { ...rest, edits: nativeEdits(edits, this.info.nEmbd) };
    const running = cancellable(signal, (cancel) => this.native.score({ ...request, cancel }));
    const { ids, pieces, ...scores } = await this.#awaited(running);
    return { ...scores, pieces: new Map(pieces.map((piece, index) => [ids[index] as number, piece])) };
  }

  /** Waits for a pass; close() also waits for it. */
  async #awaited<T>(running: Promise<T>): Promise<T> {
    this.#passes.add(running);
    try {
      return await running;
    } finally {
      this.#passes.delete(running);
    }
  }

  /**
   * The states of a text at some layers, [hidden] each: of its last token, or the mean without excluded rows. A forward
   * pass as in {@link capture}.
   * @throws NativeError as capture does
   */
  async states(request: {
    prompt: string;
    /** Distinct block indices; states have this order. */
    layers: readonly number[];
    rows: "last" | "mean";
    maxTokens: number;
    signal?: AbortSignal;
  }): Promise<Array<{ state: Float32Array; excluded: ExcludedRows }>> {
    const { rows, ...rest } = request;
    const { layers } = await this.#capture({ ...rest, state: rows, nextTop: 0 });
    return layers.map(({ state, excluded = { bos: 0, outliers: 0 } }) => ({
      state: state as Float32Array,
      excluded,
    }));
  }

  /** The scheduler's counters and the number of busy slots. Answered even during a decode. */
  async metrics(): Promise<EngineMetrics> {
    const { body } = await this.request("metrics", {});
    return JSON.parse(body) as EngineMetrics;
  }

  /** The twin's comparisons so far; undefined without a twin, or if the engine is closed. */
  twin(): TwinReport | undefined {
    return this.native.twin();
  }

  /** Ends every request, the threads and the model. Safe to call twice. */
  async close(): Promise<void> {
    // Without a thread for closing it throws and stays open.
    this.#closing ??= translated(() => this.native.close()).then(async () => {
      await Promise.allSettled(this.#passes);
    });
    return this.#closing;
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new NativeError("CLOSED", "The engine is closed.");
  }
}

/** Calls the addon; its errors become NativeErrors, thrown immediately. */
function translated<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw NativeError.from(error);
  }
}

/** Not a generator: one that is abandoned before its first part runs no code and would not free the slot. */
function readParts(
  native: { read(id: number): Promise<NativeEvent>; cancel(): void },
  id: number,
  head: NativeEvent,
  ended: () => void,
): AsyncIterableIterator<StreamPart> {
  let event: NativeEvent | undefined = head;
  let done = false;
  const end = (cancel: boolean) => {
    if (done) return;
    done = true;
    ended();
    if (cancel) native.cancel();
  };
  const next = async (): Promise<IteratorResult<StreamPart, undefined>> => {
    try {
      while (!done) {
        const part: NativeEvent = event ?? (await native.read(id));
        event = undefined;
        if (part.done) end(false);
        if (part.data !== "" || part.tokens.some((count) => count > 0))
          return { done: false, value: { data: part.data, tokens: part.tokens } };
      }
      return { done: true, value: undefined };
    } catch (error) {
      end(true);
      throw NativeError.from(error);
    }
  };
  const turns = new SerialQueue("stream");
  return {
    next: () => turns.run(next),
    async return() {
      end(true);
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
