import type { Static } from "typebox";
import type { ChatMessage } from "../contracts/chat.js";
import type { ForwardRequest } from "../contracts/forward.js";
import type { Capabilities, CaptureRequest, CaptureResult } from "../contracts/index.js";
import type { ProbeRequest, StoredProbe, StoredVector, VectorRequest } from "../contracts/library.js";
import { ports } from "../contracts/limits.js";
import type { ProfileRequest, StoredProfile } from "../contracts/profile.js";
import type { WeightFiles, WeightList } from "../contracts/weights.js";
import { decodeSafetensors, encodeSafetensors } from "../formats/safetensors.js";
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
  /** Distinct block indices; default: the first block. */
  layers?: number[];
  maxInputTokens?: number;
  /** The resident model's exact name, if already known from capabilities(). */
  model?: string;
}

/** The result of a forward call. */
export interface ForwardRun {
  tensors: Map<string, { shape: readonly number[]; data: Float32Array }>;
  /** By sequence and edit: the number of edited rows, and the mean norms of these rows and of the change. */
  effects: { rows: number; row_norm: number; change_norm: number }[][];
  model: string;
  /** Time of the forward passes. */
  forwardMs: number;
}

/** The model loaded in an inference server on this machine. */
export class ServingModel {
  readonly #http: Transport;
  /** For requests that need one forward pass per text. */
  readonly #making: Transport;

  /**
   * @param service its port on this machine, or its address: `http://127.0.0.1:8971`
   * @param options.timeoutMs longest silence within one request; default: 75 s, since a capture may be queued for a minute,
   *   and 10 minutes for creating vectors and probes
   * @param options.apiKey the server's key, if it has one; default: TAPLINE_API_KEY
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

  /** The resident model, whether it supports captures, and their limits. */
  capabilities(options: CallOptions = {}): Promise<Capabilities> {
    return this.#http.json("/lab/capabilities", options);
  }

  /**
   * Measures the resident model on a raw prompt: norms of block outputs, and next-token candidates. Looks up the model's
   * exact name first, so that no other model is measured by mistake.
   */
  async inspect(prompt: string, options: InspectOptions = {}): Promise<CaptureResult> {
    const { signal, layers, maxInputTokens } = options;
    const model = options.model ?? (await this.capabilities({ signal })).model;
    if (model === null) throw new TaplineError("The server has no model loaded at the moment.");
    const body: Partial<CaptureRequest> = { model, prompt, layers, max_input_tokens: maxInputTokens };
    return this.#http.json("/lab/activations", { signal, method: "POST", body });
  }

  /**
   * Runs up to 64 texts or lists of token ids through the served model.
   * @returns tensors by name: `tokens`, `lengths`, each capture under the requested name, and `logits`. If all sequences have
   *   the same length, they are [sequences, rows, …], else [rows of all sequences, …]. Numbers are converted to float32
   * @throws TaplineError with the service's sentence
   */
  async forward(request: Omit<ForwardRequest, "transfer">, options: CallOptions = {}): Promise<ForwardRun> {
    const bytes = await this.#making.bytes("/lab/forward", { ...options, method: "POST", body: request });
    const { tensors, metadata } = decodeSafetensors(bytes);
    return {
      tensors,
      effects: JSON.parse(metadata.effects as string) as ForwardRun["effects"],
      model: metadata.model as string,
      forwardMs: Number(metadata.forward_ms),
    };
  }

  /** A text's tokens. @param options.special whether the model's special tokens, such as BOS, are added; default true */
  async tokenize(text: string, { special = true, ...options }: CallOptions & { special?: boolean } = {}) {
    const body = { prompt: text, add_special_tokens: special };
    const { tokens } = await this.#http.json<{ tokens: number[] }>("/tokenize", {
      ...options,
      method: "POST",
      body,
    });
    return tokens;
  }

  /** The text of tokens. */
  async detokenize(tokens: readonly number[], options: CallOptions = {}): Promise<string> {
    const body = { tokens };
    return (await this.#http.json<{ content: string }>("/detokenize", { ...options, method: "POST", body }))
      .content;
  }

  /** A chat as the model's chat template formats it. @throws TaplineError if the model has none */
  async formatChat(messages: Static<typeof ChatMessage>[], options: CallOptions = {}): Promise<string> {
    const body = { messages };
    return (
      await this.#http.json<{ prompt: string }>("/apply-template", { ...options, method: "POST", body })
    ).prompt;
  }

  /** The model's weights by name with their shapes, and the GGUF file's metadata. */
  weights(options: CallOptions = {}): Promise<WeightList> {
    return this.#http.json("/lab/weights", options);
  }

  /**
   * Weights as .npy files on the server's machine, float32, in NumPy's order of dimensions: [out, in] for a matrix. The server
   * dequantises each once, into its cache.
   * @throws TaplineError if the model has no weight of a name
   */
  async weightFiles(names: readonly string[], options: CallOptions = {}): Promise<WeightFiles["files"]> {
    const body = { tensors: names };
    const { files } = await this.#making.json<WeightFiles>("/lab/weights", {
      ...options,
      method: "POST",
      body,
    });
    return files;
  }

  /**
   * Creates a direction from two lists of texts on the resident model and saves it under a name, for the `tapline` object
   * of requests. The result includes how well it separates held-out texts.
   */
  makeVector(request: VectorRequest, options: CallOptions = {}): Promise<StoredVector> {
    return this.#making.json("/lab/vectors", { ...options, method: "POST", body: request });
  }

  /** Trains a linear probe on two lists of texts on the resident model and saves it under a name. */
  makeProbe(request: ProbeRequest, options: CallOptions = {}): Promise<StoredProbe> {
    return this.#making.json("/lab/probes", { ...options, method: "POST", body: request });
  }

  /** Saves a vector: a file (.safetensors, .npz, or a control vector's .gguf), or vectors by layer. */
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

  /** Saves a probe's file: the Lab's probe-layer-<n>.npz with its layer, or .safetensors. */
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

  /** One saved vector. @throws TaplineError if there is none with that name */
  vector(name: string, options: CallOptions = {}): Promise<StoredVector> {
    return this.#http.json(`/lab/vectors/${encodeURIComponent(name)}`, options);
  }

  /** One saved probe. @throws TaplineError if there is none with that name */
  probe(name: string, options: CallOptions = {}): Promise<StoredProbe> {
    return this.#http.json(`/lab/probes/${encodeURIComponent(name)}`, options);
  }

  /** Deletes a vector. @throws TaplineError if there is none with that name */
  async removeVector(name: string, options: CallOptions = {}): Promise<void> {
    await this.#http.json(`/lab/vectors/${encodeURIComponent(name)}`, { ...options, method: "DELETE" });
  }

  /** Deletes a probe. @throws TaplineError if there is none with that name */
  async removeProbe(name: string, options: CallOptions = {}): Promise<void> {
    await this.#http.json(`/lab/probes/${encodeURIComponent(name)}`, { ...options, method: "DELETE" });
  }

  /** Facts of the served model as in /v1/models. */
  async meta(options: CallOptions = {}): Promise<{ architecture: string; quantization: string }> {
    const { data } = await this.#http.json<{
      data: { meta: { architecture: string; quantization: string } }[];
    }>("/v1/models", options);
    const [first] = data;
    if (first === undefined) throw new TaplineError("The server has no model loaded at the moment.");
    return first.meta;
  }

  /** The saved vectors. */
  async vectors(options: CallOptions = {}): Promise<StoredVector[]> {
    const { vectors } = await this.#http.json<{ vectors: StoredVector[] }>("/lab/vectors", options);
    return vectors;
  }

  /** The saved probes. */
  async probes(options: CallOptions = {}): Promise<StoredProbe[]> {
    const { probes } = await this.#http.json<{ probes: StoredProbe[] }>("/lab/probes", options);
    return probes;
  }

  /**
   * Saves edits and readings as a profile: requests whose `model` is MODEL@NAME run with them. Replaces a profile of that
   * name.
   */
  putProfile(name: string, profile: ProfileRequest, options: CallOptions = {}): Promise<StoredProfile> {
    return this.#http.json(`/lab/profiles/${encodeURIComponent(name)}`, {
      ...options,
      method: "PUT",
      body: profile,
    });
  }

  /** One saved profile. @throws TaplineError if there is none with that name */
  profile(name: string, options: CallOptions = {}): Promise<StoredProfile> {
    return this.#http.json(`/lab/profiles/${encodeURIComponent(name)}`, options);
  }

  /** The saved profiles. */
  async profiles(options: CallOptions = {}): Promise<StoredProfile[]> {
    const { profiles } = await this.#http.json<{ profiles: StoredProfile[] }>("/lab/profiles", options);
    return profiles;
  }

  /** Deletes a profile. @throws TaplineError if there is none with that name */
  async removeProfile(name: string, options: CallOptions = {}): Promise<void> {
    await this.#http.json(`/lab/profiles/${encodeURIComponent(name)}`, { ...options, method: "DELETE" });
  }

  /** The file of activations that a request captured (`watch.states`); its answer contains the id. */
  capture(
    id: string,
    { format = "safetensors", ...options }: CallOptions & { format?: "safetensors" | "npz" } = {},
  ): Promise<Buffer> {
    const path = `/lab/captures/${encodeURIComponent(id)}?format=${format}`;
    return this.#http.bytes(path, options);
  }

  /** Sends a chat and yields the answer as it is generated. Leaving the loop cancels it. */
  chat(messages: Static<typeof ChatMessage>[], options: ChatOptions = {}): AsyncGenerator<ChatDelta, void> {
    return streamAnswer(this.#http, messages, options);
  }

  /** The same for a chat's messages, or for a raw prompt as text or tokens. */
  stream(question: Question, options: ChatOptions = {}): AsyncGenerator<ChatDelta, void> {
    return streamAnswer(this.#http, question, options);
  }

  /**
   * Complete answers to a chat or a raw prompt, with the readings that a `tapline` object in `request` asked for: one answer,
   * or several with `n` or `pair`.
   */
  answers(question: Question, options: ChatOptions = {}): Promise<Answer[]> {
    return wholeAnswers(streamAnswer(this.#http, question, options));
  }
}
