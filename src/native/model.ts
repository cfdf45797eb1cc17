import type { ModelInfo, NativeModel } from "./binding.js";
import { cancellable } from "./cancel.js";
import { checkInteger, invalid, tokenIds } from "./check.js";
import { Context, type ContextOptions } from "./context.js";
import { NativeError } from "./error.js";
import { binding } from "./load.js";
import { threadsFor } from "./threads.js";

export interface OpenOptions {
  /** Blocks on GPUs. Default: as many as fit into their free memory. */
  gpuLayers?: number;
  /** Names of the GPUs to use (`backendInfo().devices`). Default: all; `["none"]` means the processor. */
  devices?: readonly string[];
  /** Tokens of the context that must fit together with the blocks. Default 4096. */
  fitTokens?: number;
  /** Map the file into memory (default), so that processes share its pages. */
  mmap?: boolean;
  signal?: AbortSignal;
  /** Called with the loaded share of the weights, 0 to 1. */
  onProgress?: (fraction: number) => void;
}

export interface TokenizeOptions {
  /** Add BOS and EOS as the model requires. Default true. */
  special?: boolean;
  /** Recognise control tokens such as `<|im_start|>` in the text. Default false. */
  parseSpecial?: boolean;
}

const limits = { nCtx: 1 << 20, maxSequences: 256, threads: 512 } as const;

/** One loaded GGUF: weights, vocabulary and metadata. Errors are {@link NativeError}s. */
export class Model {
  readonly info: ModelInfo;
  readonly #contexts = new Set<Context>();
  readonly #pending = new Set<Promise<unknown>>();
  #closing: Promise<void> | undefined;

  private constructor(private readonly native: NativeModel) {
    this.info = native.info;
  }

  /**
   * Loads a `.gguf` file (or the first part of a split set).
   * @throws NativeError MODEL_LOAD with llama.cpp's reason, or CANCELLED.
   */
  static async open(path: string, options: OpenOptions = {}): Promise<Model> {
    if (typeof path !== "string" || path === "" || path.includes("\0")) {
      throw invalid("The path of a model must be a non-empty string.");
    }
    const { signal, ...rest } = options;
    checkInteger("gpuLayers", options.gpuLayers, -1);
    checkInteger("fitTokens", options.fitTokens, 1, limits.nCtx);
    if (options.devices?.some((name) => typeof name !== "string")) throw invalid("Devices must be names.");
    return new Model(await cancellable(signal, (cancel) => binding().openModel({ ...rest, path, cancel })));
  }

  /** Token ids of a text. Lone surrogates count as U+FFFD. */
  tokenize(text: string, options: TokenizeOptions = {}): Promise<Int32Array> {
    if (typeof text !== "string") {
      return Promise.reject(invalid("The text to tokenise must be a string."));
    }
    return this.#track(() =>
      this.native.tokenize(text, options.special ?? true, options.parseSpecial ?? false),
    );
  }

  /** The text of each token; invalid UTF-8 becomes U+FFFD. */
  pieces(tokens: Int32Array): Promise<string[]> {
    return this.#track(() => this.native.pieces(tokenIds(tokens)));
  }

  /** The text of the tokens, including control tokens. */
  detokenize(tokens: Int32Array): Promise<string> {
    return this.#track(() => this.native.detokenize(tokenIds(tokens)));
  }

  /** A place to run experiments on this model. @throws NativeError OUT_OF_MEMORY, INVALID_ARGUMENT */
  async createContext(options: ContextOptions = {}): Promise<Context> {
    checkInteger("nCtx", options.nCtx, 1, limits.nCtx);
    checkInteger("nBatch", options.nBatch, 1, limits.nCtx);
    checkInteger("maxSequences", options.maxSequences, 1, limits.maxSequences);
    checkInteger("threads", options.threads, 1, limits.threads);
    return this.#track(async () => {
      const threads = options.threads ?? threadsFor(this.info.bytes);
      const native = await this.native.createContext({ ...options, threads });
      const context = new Context(native, this.info.nEmbd, () => this.#contexts.delete(context));
      this.#contexts.add(context);
      return context;
    });
  }

  /** Closes the model's contexts, waits for its operations and frees it. Safe to call twice. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      await Promise.allSettled([...this.#pending]);
      await Promise.all([...this.#contexts].map((context) => context.close()));
      await this.native.close();
    })();
    return this.#closing;
  }

  async #track<T>(run: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined) throw new NativeError("CLOSED", "The model is closed.");
    const operation = NativeError.translate(run);
    this.#pending.add(operation);
    return operation.finally(() => this.#pending.delete(operation));
  }
}
