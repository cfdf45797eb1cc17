import type { ExcludedRows, NativeCancelToken } from "./binding.js";
import { cancellable } from "./cancel.js";
import { checkInteger, checkLayers, tokenIds } from "./check.js";
import { NativeError } from "./error.js";
import { type KeptRows, type LivePlan, nativeLivePlan } from "./live.js";
import { binding } from "./load.js";
import type { Point } from "./points.js";
import { SerialQueue } from "./serial.js";

/** How the serving engine is started. */
export interface EngineOptions {
  /** A .gguf file, or the first part of a split set. */
  path: string;
  /** Name under which the model is served. */
  id: string;
  /** Jinja template instead of the model's own. */
  chatTemplate?: string;
  /** Blocks kept on the GPU; default: as many as fit. */
  gpuLayers?: number;
  /** Map the file instead of reading it; default true. */
  mmap?: boolean;
  /** A smaller model of the same vocabulary that guesses tokens ahead: its .gguf file. */
  draft?: string;
  /** Tokens of one slot; default: what the model was trained with, at most 8192. */
  ctxSize?: number;
  /** Slots: requests generated at the same time; default 4. */
  parallel?: number;
  /** Default: the machine's math cores. */
  threads?: number;
  /** Tokens decoded at once; default 256 on a CPU, 2048 on a GPU. */
  batch?: number;
  /** Memory for prompts kept for reuse, in MiB; default 512. */
  cacheRamMiB?: number;
  /** Default: on, unless the vocabulary makes the output buffer large. */
  embeddings?: boolean;
  /** Whether answers think where the template supports it; default: as the template says. */
  thinking?: boolean;
  /** Longest prompt of a resident capture, in tokens; 0 switches captures off. Default 256. */
  captureTokens?: number;
  /** The model's image encoder: its .gguf file. */
  mmproj?: string;
  /** LoRA adapters: .gguf files, and how strongly each is applied. */
  loras?: readonly { path: string; scale: number }[];
  /** Types of the K and V caches, as ggml names them; default f16. */
  cacheTypeK?: string;
  cacheTypeV?: string;
  /** Default: where it helps. */
  flashAttention?: "on" | "off";
  /** How an embedding is made of a text's tokens; default: the model's, the last token where it says nothing. */
  pooling?: "none" | "mean" | "cls" | "last" | "rank";
  ropeScaling?: "none" | "linear" | "yarn";
  /** How far positions are stretched; default: the model's. */
  ropeScale?: number;
  ropeFreqBase?: number;
  /** Tokens that the model was trained with, where its file says something else. */
  yarnOriginalCtx?: number;
  /** How the model is spread over several GPUs; default: by layers. */
  splitMode?: "none" | "layer" | "row";
  /** Each GPU's share; default: by their memory. */
  tensorSplit?: readonly number[];
  mainGpu?: number;
  /** Blocks whose experts stay in the CPU's memory; negative: all. */
  cpuMoe?: number;
  /**
   * Compute every batch a second time, without anybody's edits, and compare the logits bit by bit: {@link Engine.twin}. A
   * check that doubles the work; prompts that come back from `cacheRamMiB` cannot be followed.
   */
  twin?: boolean;
  /** Called with what is being loaded and the share done, 0..1. */
  onProgress?: (stage: string, fraction: number) => void;
  /** Called once when the scheduler died; the engine then answers nothing any more. */
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
] as const satisfies readonly (keyof EngineOptions)[];

/** What is served. */
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
  /** Tokens that one slot holds, prompt and answer together. */
  readonly slotContext: number;
  readonly batch: number;
  readonly threads: number;
  readonly embeddings: boolean;
  /** How an embedding is made of a text's tokens. */
  readonly pooling: "none" | "mean" | "cls" | "last" | "rank";
  /** Whether chats may hold images. */
  readonly images: boolean;
  readonly templateSupportsThinking: boolean;
  /** The text that begins thinking in the template; empty if there is none. */
  readonly thinkingTag: string;
  /** Whether answers think when a request does not say. */
  readonly thinking: boolean;
  readonly templateCapabilities: Readonly<Record<string, boolean>>;
  /** Whether resident captures are possible; otherwise `noCaptureReason` says why not. */
  readonly captures: boolean;
  readonly noCaptureReason: string;
  /** Points that the model's blocks have; none where no captures are possible. */
  readonly points: readonly Point[];
}

/** What the engine can be asked. Bodies are those of llama-server's endpoints, validated. */
export type EngineRoute =
  | "chat"
  | "completion"
  /** llama-server's own `/completion`. */
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

/** Part of a streamed answer: whole server-sent events, as many as had become ready; none for held-back text. */
export interface StreamPart {
  readonly data: string;
  /** Generated tokens whose text is in `data`, of each answer: a request with several prompts or choices has many. */
  readonly tokens: readonly number[];
}

/** How long one answer took; its tokens come from its first to its last. */
export interface AnswerTime {
  readonly tokens: number;
  readonly promptMs: number;
  readonly generatedMs: number;
}

/** The answer to a request: its head, and the whole body or a stream of parts. */
export interface EngineReply {
  readonly status: number;
  readonly contentType: string;
  /** The whole body; empty for a stream. */
  readonly body: string;
  /** Of each answer that the whole body holds; empty for a stream. */
  readonly times: readonly AnswerTime[];
  /** For a stream: parts as they are read. Leaving the loop early frees the slot. */
  readonly parts: AsyncIterableIterator<StreamPart> | null;
}

export interface CaptureRequest {
  /** Raw text. */
  prompt: string;
  /** Distinct block indices. */
  layers: readonly number[];
  /** Refused when the prompt has more. */
  maxTokens: number;
  /** Candidates for the next token. */
  nextTop: number;
  /** Takes effect while the capture waits for its turn; a started pass completes. */
  signal?: AbortSignal;
}

export interface CaptureResult {
  readonly tokenIds: Int32Array;
  readonly pieces: readonly string[];
  readonly layers: readonly {
    readonly layer: number;
    readonly norms: Float32Array;
    /** [hidden]; only where one was asked for. */
    readonly state?: Float32Array;
    /** Of a mean. */
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
  /** Token ids of a prompt, at most `slotContext` of them. */
  tokens: Int32Array;
  /** Tokens to tell in the place of each. */
  top: number;
  /** Takes effect between two batches. */
  signal?: AbortSignal;
}

/** How probable the model finds the tokens of a prompt, each after those before it; the first has no place here. */
export interface PromptScores {
  /** Natural logarithms. [tokens - 1] */
  readonly logProbabilities: Float64Array;
  readonly top: number;
  /** Most probable first. [tokens - 1, top] */
  readonly topIds: Int32Array;
  /** [tokens - 1, top] */
  readonly topLogProbabilities: Float64Array;
  /** The bytes of every token that is told of. */
  readonly pieces: ReadonlyMap<number, Uint8Array>;
}

/** The scheduler's counters; times in microseconds. */
export interface EngineMetrics {
  readonly busy_slots: number;
  readonly deferred: number;
  readonly prompt_tokens: number;
  readonly prompt_us: number;
  readonly cached_tokens: number;
  readonly generated_tokens: number;
  readonly generated_steps: number;
  readonly generated_us: number;
  readonly decodes: number;
}

/** Rows of logits that a twin has compared. */
export interface TwinCount {
  readonly rows: number;
  /** In a batch with rows of a request that edits. */
  readonly beside: number;
  /** By at least a bit. */
  readonly different: number;
}

/** What {@link EngineOptions.twin} has seen, by what the requests wear. */
export interface TwinReport {
  readonly batches: number;
  /** No edits: ordinary requests, watching ones, the plain one of a pair. */
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
  /** Of a whole answer. */
  times: { promptMs: number; generatedMs: number }[];
  done: boolean;
  states?: KeptRows[];
}

interface NativeEngine {
  /** JSON of {@link EngineInfo}. */
  readonly info: string;
  open(route: EngineRoute, body: string, live?: object): number | undefined;
  read(request: number): Promise<NativeEvent>;
  cancel(request: number): void;
  capture(request: object & { cancel: NativeCancelToken }): Promise<CaptureResult>;
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
 * llama.cpp's serving engine with one model: continuous batching, prompt cache, grammars, tools, reasoning.
 * Everything runs on threads of its own. Errors are {@link NativeError}s.
 */
export class Engine {
  readonly info: EngineInfo;
  readonly #native: NativeEngine;
  /** Captures and scores under way. */
  readonly #passes = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  private constructor(native: NativeEngine) {
    this.#native = native;
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
    try {
      return new Engine(await binding<EngineBinding>().openEngine({ ...rest, ...flags }));
    } catch (error) {
      throw NativeError.from(error);
    }
  }

  /**
   * Asks the engine and resolves with the head of its answer. A stream's parts are made as they are read, so a
   * slow reader holds nothing but its own tokens.
   * @param signal ends the request and frees its slot, also while its parts are read
   * @param live what a chat or a completion changes and watches; its answer tells at `choices[0].tapline`
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
    const native = this.#native;
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
   * A forward pass of raw text on the resident weights, between two iterations of the scheduler, in a context
   * of its own.
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
    return this.#awaited(cancellable(signal, (cancel) => this.#native.capture({ ...rest, cancel })));
  }

  /**
   * How probable the model finds a prompt: its forward pass on the resident weights, in a context of its own, a batch
   * at a time between two iterations of the scheduler. Possible where captures are.
   * @throws NativeError TOKEN_LIMIT, UNSUPPORTED_ARCHITECTURE, COMPUTE, OUT_OF_MEMORY, CANCELLED, CLOSED
   */
  async score({ signal, ...request }: ScoreRequest): Promise<PromptScores> {
    this.#assertOpen();
    tokenIds(request.tokens);
    checkInteger("top", request.top ?? null, 0);
    const running = cancellable(signal, (cancel) => this.#native.score({ ...request, cancel }));
    const { ids, pieces, ...scores } = await this.#awaited(running);
    return { ...scores, pieces: new Map(pieces.map((piece, index) => [ids[index] as number, piece])) };
  }

  /** Waits for a pass that close() waits for, too. */
  async #awaited<T>(running: Promise<T>): Promise<T> {
    this.#passes.add(running);
    try {
      return await running;
    } finally {
      this.#passes.delete(running);
    }
  }

  /**
   * The states of a text at some layers, [hidden] each: of its last token, or the mean over those that count. A forward pass as
   * {@link capture} makes it.
   * @throws NativeError as capture does
   */
  async states(request: {
    prompt: string;
    /** Distinct block indices; states come in their order. */
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

  /** The scheduler's counters, and how many slots are busy. Answered during a decode, too. */
  async metrics(): Promise<EngineMetrics> {
    const { body } = await this.request("metrics", {});
    return JSON.parse(body) as EngineMetrics;
  }

  /** What the twin has compared so far; nothing where there is none, or the engine is closed. */
  twin(): TwinReport | undefined {
    return this.#native.twin();
  }

  /** Ends every request, the threads and the model. Safe to call twice. */
  async close(): Promise<void> {
    // Where there is no thread to close it on, it throws and is open still.
    this.#closing ??= translated(() => this.#native.close()).then(async () => {
      await Promise.allSettled(this.#passes);
    });
    return this.#closing;
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw new NativeError("CLOSED", "The engine is closed.");
  }
}

/** What a call that the addon answers at once throws, as a NativeError. */
function translated<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw NativeError.from(error);
  }
}

/** -1 lets native code choose. */
function flag(value: boolean | undefined): number {
  return value === undefined ? -1 : Number(value);
}

/** An iterator by hand: a generator that is left before its first part runs nothing, and would keep the slot. */
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
