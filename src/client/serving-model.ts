import type { Static } from "typebox";
import type { ChatMessage } from "../contracts/chat.js";
import type { Capabilities, CaptureRequest, CaptureResult } from "../contracts/index.js";
import type { ProbeRequest, StoredProbe, StoredVector, VectorRequest } from "../contracts/library.js";
import { ports } from "../contracts/limits.js";
import { encodeSafetensors } from "../formats/safetensors.js";
import {
  type Answer,
  type ChatDelta,
  type ChatOptions,
  type Question,
  streamAnswer,
  wholeAnswers,
} from "./chat.js";
import { TaplineError } from "./errors.js";
import { type CallOptions, Transport } from "./transport.js";

export interface InspectOptions extends CallOptions {
  /** Distinct block indices; the first block unless told otherwise. */
  layers?: number[];
  maxInputTokens?: number;
  /** The resident model's exact name, where the caller has it from capabilities(). */
  model?: string;
}

/** The model that an inference server on this machine holds in memory. */
export class ServingModel {
  readonly #http: Transport;
  /** For what takes a forward pass a text, each in its turn. */
  readonly #making: Transport;

  /**
   * @param service its port on this machine, or its address: `http://127.0.0.1:8971`
   * @param options.timeoutMs longest silence within one request; 75 s unless told otherwise, since a capture may wait a
   *   minute for its turn, and 10 minutes where a vector or a probe is made
   * @param options.apiKey the server's key, if it has one; TAPLINE_API_KEY unless given
   */
  constructor(
    service: number | string = ports.inference,
    options: { timeoutMs?: number; apiKey?: string } = {},
  ) {
    const url = typeof service === "string" ? service : `http://127.0.0.1:${service}`;
    const { timeoutMs, apiKey } = options;
    const open = (usual: number) =>
      new Transport(url, timeoutMs ?? usual, { service: "serve", ...(apiKey !== undefined && { apiKey }) });
    this.#http = open(75_000);
    this.#making = open(600_000);
  }

  /** Which model is resident, whether it can be captured, and the limits of a capture. */
  capabilities(options: CallOptions = {}): Promise<Capabilities> {
    return this.#http.json("/lab/capabilities", options);
  }

  /**
   * Measures the resident model on a raw prompt: norms of the chosen block outputs and the next-token
   * candidates. It looks up the model's exact name first, so that nothing else is measured by mistake.
   */
  async inspect(prompt: string, options: InspectOptions = {}): Promise<CaptureResult> {
    const { signal, layers, maxInputTokens } = options;
    const model = options.model ?? (await this.capabilities({ signal })).model;
    if (model === null) throw new TaplineError("The server holds no model at the moment.");
    const body: Partial<CaptureRequest> = { model, prompt, layers, max_input_tokens: maxInputTokens };
    return this.#http.json("/lab/activations", { signal, method: "POST", body });
  }

  /**
   * Makes a direction from two lists of texts on the resident model and keeps it under a name, for the `tapline` object
   * of requests. The answer says how well it separates texts that it was not made from.
   */
  makeVector(request: VectorRequest, options: CallOptions = {}): Promise<StoredVector> {
    return this.#making.json("/lab/vectors", { ...options, method: "POST", body: request });
  }

  /** Trains a linear probe on two lists of texts on the resident model and keeps it under a name. */
  makeProbe(request: ProbeRequest, options: CallOptions = {}): Promise<StoredProbe> {
    return this.#making.json("/lab/probes", { ...options, method: "POST", body: request });
  }

  /** Keeps a vector's file (.safetensors, .npz, or a control vector's .gguf), or rows by layer. */
  putVector(
    name: string,
    vector: Uint8Array | Readonly<Record<number, Float32Array>>,
    options: CallOptions = {},
  ): Promise<StoredVector> {
    const rows = vector instanceof Uint8Array ? [] : Object.entries(vector);
    const file =
      vector instanceof Uint8Array
        ? vector
        : encodeSafetensors(
            Object.fromEntries(
              rows.map(([layer, data]) => [`layer_${layer}`, { shape: [data.length], data }]),
            ),
          );
    return this.#http.json(`/lab/vectors/${encodeURIComponent(name)}`, {
      ...options,
      method: "PUT",
      body: file,
    });
  }

  /** Keeps a probe's file: the Lab's probe-layer-<n>.npz with its layer, or .safetensors. */
  putProbe(
    name: string,
    file: Uint8Array,
    { layer, ...options }: CallOptions & { layer?: number } = {},
  ): Promise<StoredProbe> {
    const query = layer === undefined ? "" : `?layer=${layer}`;
    return this.#http.json(`/lab/probes/${encodeURIComponent(name)}${query}`, {
      ...options,
      method: "PUT",
      body: file,
    });
  }

  /** One vector. @throws TaplineError where there is none of that name */
  vector(name: string, options: CallOptions = {}): Promise<StoredVector> {
    return this.#http.json(`/lab/vectors/${encodeURIComponent(name)}`, options);
  }

  /** One probe. @throws TaplineError where there is none of that name */
  probe(name: string, options: CallOptions = {}): Promise<StoredProbe> {
    return this.#http.json(`/lab/probes/${encodeURIComponent(name)}`, options);
  }

  /** Forgets a vector. @throws TaplineError where there is none of that name */
  async removeVector(name: string, options: CallOptions = {}): Promise<void> {
    await this.#http.json(`/lab/vectors/${encodeURIComponent(name)}`, { ...options, method: "DELETE" });
  }

  /** Forgets a probe. @throws TaplineError where there is none of that name */
  async removeProbe(name: string, options: CallOptions = {}): Promise<void> {
    await this.#http.json(`/lab/probes/${encodeURIComponent(name)}`, { ...options, method: "DELETE" });
  }

  /** The vectors that are kept. */
  async vectors(options: CallOptions = {}): Promise<StoredVector[]> {
    const { vectors } = await this.#http.json<{ vectors: StoredVector[] }>("/lab/vectors", options);
    return vectors;
  }

  /** The probes that are kept. */
  async probes(options: CallOptions = {}): Promise<StoredProbe[]> {
    const { probes } = await this.#http.json<{ probes: StoredProbe[] }>("/lab/probes", options);
    return probes;
  }

  /** The file of rows that a request kept (`watch.states`); its answer says the id. */
  capture(
    id: string,
    { format = "safetensors", ...options }: CallOptions & { format?: "safetensors" | "npz" } = {},
  ): Promise<Buffer> {
    const path = `/lab/captures/${encodeURIComponent(id)}?format=${format}`;
    return this.#http.bytes(path, options);
  }

  /** Asks the model in its chat template and gives the answer as it is generated. Leaving the loop ends it. */
  chat(messages: Static<typeof ChatMessage>[], options: ChatOptions = {}): AsyncGenerator<ChatDelta, void> {
    return streamAnswer(this.#http, messages, options);
  }

  /** The same for a chat's messages or a raw prompt, its text or its tokens. */
  stream(question: Question, options: ChatOptions = {}): AsyncGenerator<ChatDelta, void> {
    return streamAnswer(this.#http, question, options);
  }

  /**
   * The whole answers to a chat's messages or to a raw prompt, with what a `tapline` object in `request` was told: one,
   * or as many as `n` and `pair` ask for.
   */
  answers(question: Question, options: ChatOptions = {}): Promise<Answer[]> {
    return wholeAnswers(streamAnswer(this.#http, question, options));
  }
}
