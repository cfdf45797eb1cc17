import type { Static } from "typebox";
import type { ChatMessage } from "../contracts/chat.js";
import type { Capabilities, CaptureRequest, CaptureResult } from "../contracts/index.js";
import { ports } from "../contracts/limits.js";
import { type ChatDelta, type ChatOptions, streamChat } from "./chat.js";
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

  /** @param options.timeoutMs longest silence within one request; a capture may wait a minute for its turn */
  constructor(port: number = ports.inference, options: { timeoutMs?: number } = {}) {
    this.#http = new Transport(`http://127.0.0.1:${port}`, options.timeoutMs ?? 75_000);
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
    const body: Partial<CaptureRequest> = {
      model,
      prompt,
      ...(layers === undefined ? {} : { layers }),
      ...(maxInputTokens === undefined ? {} : { max_input_tokens: maxInputTokens }),
    };
    return this.#http.json("/lab/activations", { signal, method: "POST", body });
  }

  /** Asks the model in its chat template and gives the answer as it is generated. Leaving the loop ends it. */
  chat(messages: Static<typeof ChatMessage>[], options: ChatOptions = {}): AsyncGenerator<ChatDelta, void> {
    return streamChat(this.#http, messages, options);
  }
}
