import { TaplineError } from "../client/index.js";
import type { StoredVector } from "../contracts/library.js";
import { UserError } from "../contracts/user-error.js";
import { randomVector, writeVector } from "../library/index.js";
import { bodiesOf, type LiveStep } from "../recipe/index.js";
import type { LiveSession, Shelf } from "./live-session.js";

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
  const { http } = live;
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
    await claim(live, "/lab/vectors", step.vector.name);
    return http.json("/lab/vectors", { method: "POST", body: step.vector, signal });
  }
  if ("probe" in step) {
    await claim(live, "/lab/probes", step.probe.name);
    return http.json("/lab/probes", { method: "POST", body: step.probe, signal });
  }
  const { name, like, seed } = step.random;
  await claim(live, "/lab/vectors", name);
  const other = await http.json<StoredVector>(`/lab/vectors/${encodeURIComponent(like)}`, { signal });
  const tensors = other.layers.map(({ layer, length }, index) => {
    // Each layer a direction of its own.
    const data = randomVector(other.n_embd, length, seed + index);
    return [`layer_${layer}`, { shape: [data.length], data }] as const;
  });
  const body = writeVector({ tensors: new Map(tensors), metadata: {} }, "safetensors");
  return http.json(`/lab/vectors/${encodeURIComponent(name)}`, { method: "PUT", body, signal });
}

/** What somebody keeps under that name is not replaced. */
async function claim(live: LiveSession, shelf: Shelf, name: string): Promise<void> {
  const path = `${shelf}/${encodeURIComponent(name)}`;
  const there = await live.http.json(path).then(
    () => true,
    (error: unknown) => {
      if (error instanceof TaplineError && error.status === 404) return false;
      throw error;
    },
  );
  if (there) {
    const noun = shelf === "/lab/vectors" ? "vector" : "probe";
    throw new UserError(
      `The server keeps a ${noun} ${name} already, which the recipe would replace: remove it with tapline ${noun} rm ${name}, or run without --url.`,
    );
  }
  live.kept.push({ shelf, name });
}
