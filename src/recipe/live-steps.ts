import type { StoredVector } from "../contracts/library.js";
import { randomVector, writeVector } from "../library/index.js";
import { bodiesOf, type LiveStep } from "./index.js";
import type { LiveSession } from "./live-session.js";

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
  if ("vector" in step) {
    await claims.claim("/lab/vectors", step.vector.name);
    return http.json("/lab/vectors", { method: "POST", body: step.vector, signal });
  }
  if ("probe" in step) {
    await claims.claim("/lab/probes", step.probe.name);
    return http.json("/lab/probes", { method: "POST", body: step.probe, signal });
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
