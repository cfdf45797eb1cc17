import type { Transport } from "../client/transport.js";
import type { Capabilities } from "../contracts/index.js";
import type { StoredVector } from "../contracts/library.js";
import { UserError } from "../contracts/user-error.js";
import { version } from "../contracts/version.js";
import { randomVector, writeVector } from "../library/index.js";
import { Claims } from "./claims.js";
import { bodiesOf, type LiveStep } from "./live.js";

/** A running or temporary server. */
export interface RunningServer {
  http: Transport;
  url: string;
  /** Stops a temporary server and deletes its data. */
  close?(): Promise<void>;
}

/** The serving model for live steps. */
export interface LiveSession {
  http: Transport;
  /** Its name and runtime, for display. */
  model: string;
  runtime: string;
  /** The names under which the steps save items. */
  claims: Claims;
  close(): Promise<void>;
}

/** Opens a session with a server's model. @throws TaplineError, UserError if no model is loaded */
export async function openLive({ http, url, close }: RunningServer): Promise<LiveSession> {
  const claims = new Claims(http, "run without --url");
  try {
    const capabilities = await http.json<Capabilities>("/lab/capabilities");
    const { model, backend } = capabilities;
    if (model === null) throw new UserError(`The server at ${url} has no model loaded.`);
    const runtime = `tapline ${version}, tapline serve, ${backend}`;
    return { http, model, runtime, claims, close: close ?? (() => claims.release()) };
  } catch (error) {
    await close?.();
    throw error;
  }
}

/**
 * Runs a live step on a serving model.
 * @param onStage called with the progress of several requests
 * @returns the saved item, or `responses`, the complete answers in order
 */
export async function runLiveStep(
  live: LiveSession,
  step: LiveStep,
  signal: AbortSignal,
  onStage: (stage: string) => void,
): Promise<unknown> {
  const { http, claims } = live;
  if ("post" in step) {
    const bodies = bodiesOf(step);
    const responses: unknown[] = [];
    for (const body of bodies) {
      onStage(`${responses.length}/${bodies.length}`);
      responses.push(await http.json(step.post, { method: "POST", body, signal }));
    }
    return { responses };
  }
  onStage("");
  if (!("random" in step)) {
    const [shelf, body] =
      "vector" in step ? (["/lab/vectors", step.vector] as const) : (["/lab/probes", step.probe] as const);
    await claims.claim(shelf, body.name);
    return http.json(shelf, { method: "POST", body, signal });
  }
  const { name, like, seed } = step.random;
  await claims.claim("/lab/vectors", name);
  const other = await http.json<StoredVector>(`/lab/vectors/${encodeURIComponent(like)}`, { signal });
  const tensors = other.layers.map(({ layer, length }, index) => {
    // A different direction for each layer.
    const data = randomVector(other.n_embd, length, seed + index);
    return [`layer_${layer}`, { shape: [data.length], data }] as const;
  });
  const body = writeVector({ tensors: new Map(tensors), metadata: {} }, "safetensors");
  return http.json(`/lab/vectors/${encodeURIComponent(name)}`, { method: "PUT", body, signal });
}
