import { type CaptureRequest, type CaptureResult, limits, topCounts } from "../contracts/index.js";
import { HttpError } from "../http/index.js";
import { provenance } from "../models/provenance.js";
import type { ResolvedModel } from "../models/resolve.js";
import type { Engine } from "../native/engine.js";
import { type BackendInfo, NativeError } from "../native/index.js";
import type { ServingStats } from "./stats.js";

/** Dependencies of captures. */
export interface Captured {
  readonly engine: Engine;
  readonly backend: BackendInfo;
  readonly resolved: ResolvedModel;
  /** The model as given on the command line. */
  readonly requestedModel: string;
  readonly requestedRevision: string | null;
  readonly stats: ServingStats;
  /** Maximum wait of a queued capture, in milliseconds. */
  readonly captureWaitMs: number;
}

/** Runs captures of the resident model, one at a time, with a limited wait. */
export class Captures {
  #pending = false;

  constructor(private readonly service: Captured) {}

  /** Whether a capture is queued or running. */
  get pending(): boolean {
    return this.#pending;
  }

  /** @throws HttpError 400; 408 if it expired in the queue; 409 for another model or while one is pending */
  async run(request: CaptureRequest): Promise<CaptureResult> {
    const { engine, stats, captureWaitMs } = this.service;
    const refuse = (status: number, sentence: string) => {
      stats.captures.rejected++;
      return new HttpError(status, sentence);
    };
    if (request.model !== engine.info.id) {
      throw refuse(409, `The resident model is ${engine.info.id}, not ${request.model.slice(0, 200)}.`);
    }
    if (!engine.info.captures) throw refuse(400, engine.info.noCaptureReason);
    if (this.#pending) throw refuse(409, "A capture is already queued or running; retry when it is done.");
    this.#pending = true;
    const expired = new AbortController();
    const timer = setTimeout(() => expired.abort(), captureWaitMs);
    try {
      const result = await engine.capture({
        prompt: request.prompt,
        layers: request.layers,
        maxTokens: request.max_input_tokens,
        nextTop: topCounts.next_tokens,
        signal: expired.signal,
      });
      stats.captures.served++;
      return this.#describe(request, result);
    } catch (error) {
      if (!(error instanceof NativeError)) throw error;
      if (error.code === "CANCELLED") {
        stats.captures.expired++;
        throw new HttpError(408, `The capture did not start within ${captureWaitMs / 1000} seconds.`);
      }
      if (error.code === "CLOSED" || error.code === "INTERNAL") throw error;
      // Limits of the model or the machine are also reported, in the native error's words.
      throw refuse(error.code === "COMPUTE" || error.code === "OUT_OF_MEMORY" ? 500 : 400, error.message);
    } finally {
      clearTimeout(timer);
      this.#pending = false;
    }
  }

  #describe(request: CaptureRequest, result: Awaited<ReturnType<Engine["capture"]>>): CaptureResult {
    const { engine, backend, resolved, requestedModel, requestedRevision } = this.service;
    return {
      tokens: [...result.pieces],
      token_ids: [...result.tokenIds],
      layers: result.layers.map(({ layer, norms }) => ({ layer, norms: [...norms] })),
      next_tokens: result.nextPieces.map((token, index) => ({
        token_id: result.nextIds[index] as number,
        token,
        probability: result.nextProbabilities[index] as number,
      })),
      note:
        "Norms are L2, one for each token, of the block outputs on the resident weights. " +
        "The pass ran between two scheduler iterations in a separate context.",
      provenance: provenance(
        {
          config: request,
          model: requestedModel,
          revision: requestedRevision,
          layers: request.layers,
          seed: 0,
        },
        { resolved, info: engine.info, backend },
        { queued: result.waitedMs / 1000, forward: result.forwardMs / 1000 },
      ),
    };
  }
}

/** The limit that the contract sets, in milliseconds. */
export const captureWaitMs = limits.capture_queue_seconds * 1000;
