import type { Transport } from "../client/transport.js";
import type { Capabilities } from "../contracts/index.js";
import type { StoredVector } from "../contracts/library.js";
import { UserError } from "../contracts/user-error.js";
import { version } from "../contracts/version.js";
import { randomVector, writeVector } from "../library/index.js";
import { Claims } from "./claims.js";
import { bodiesOf, type LiveStep } from "./live.js";

/** A server that is there, or was started for the run. */
export interface RunningServer {
  http: Transport;
  url: string;
  /** Ends one that was started for the run, with all that it keeps. */
  close?(): Promise<void>;
}

/** A serving model that live steps are run on. */
export interface LiveSession {
  http: Transport;
  /** Its name, and what serves it, for people. */
  model: string;
  runtime: string;
  /** The names that the steps keep something under. */
  claims: Claims;
  close(): Promise<void>;
}

/** Opens a session with a server's model. @throws TaplineError, UserError where it holds none */
export async function openLive({ http, url, close }: RunningServer): Promise<LiveSession> {
  const claims = new Claims(http, "run without --url");
  try {
    const told = await http.json<Capabilities>("/lab/capabilities");
    if (told.model === null) throw new UserError(`The server at ${url} holds no model at the moment.`);
    const runtime = `tapline ${version}, tapline serve, ${told.backend}`;
    return { http, model: told.model, runtime, claims, close: close ?? (() => claims.release()) };
  } catch (error) {
    await close?.();
    throw error;
  }
}

/**
 * Does what a live step asks of a serving model.
 * @param onStage told of each request of several
 * @returns what the model answered: what is kept, or `responses`, the whole answers in order
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
    // Each layer a direction of its own.
    const data = randomVector(other.n_embd, length, seed + index);
    return [`layer_${layer}`, { shape: [data.length], data }] as const;
  });
  const body = writeVector({ tensors: new Map(tensors), metadata: {} }, "safetensors");
  return http.json(`/lab/vectors/${encodeURIComponent(name)}`, { method: "PUT", body, signal });
}
