import { Engine } from "../native/engine.js";
import type { Edit } from "../native/index.js";
import { logitDifferences } from "./compare.js";
import type { Expected, Printed } from "./expected.js";
import { allowed, type Found } from "./found.js";

/** Where the engine computes. Any GPU of the machine may take large products, also without layers on it. */
export interface LivePlace {
  /** Number of the GPU, and the layers on it. */
  gpu?: { index: number; layers: number };
  /** Whether the machine has GPUs. */
  gpus: boolean;
}

interface Choice {
  logprobs: { content: { top_logprobs: { id: number; logprob: number }[] }[] };
}

/**
 * An edited and a plain request in one batch of the serving engine. Their log-probabilities differ from token to token as
 * llama.cpp's logits with and without its control vector; and the plain request's rows have the same bits without the
 * edited one.
 * @param steer the edit of the expected values
 * @param place where the engine computes
 */
export async function checkLive(
  path: string,
  { tokens, plain, steered }: Expected,
  steer: Edit,
  { gpu, gpus }: LivePlace,
): Promise<Found> {
  const engine = await Engine.open({
    ...{ path, id: "model", gpuLayers: gpu?.layers ?? 0, threads: 1, parallel: 2, ctxSize: 128 },
    ...(gpu && { splitMode: "none" as const, mainGpu: gpu.index }),
    ...{ cacheRamMiB: 0, embeddings: false, twin: true },
    // K and V as in the expected values.
    ...{ cacheTypeK: "f32", cacheTypeV: "f32", flashAttention: "off" as const },
  });
  const bound = gpus ? allowed.device : allowed.live;
  try {
    const body = {
      ...{ prompt: tokens, max_tokens: 2, temperature: 0, cache_prompt: false },
      logprobs: plain.logits.width,
    };
    const reply = await engine.request("completion", body, undefined, { edits: [steer], pair: true });
    const { choices } = JSON.parse(reply.body) as { choices?: [Choice, Choice] };
    if (choices === undefined) throw new Error(reply.body);
    const distances = [steered.pass.logits, plain.logits].map((printed, at) =>
      apart(choices[at] as Choice, printed),
    );
    const names = ["the edited request", "the plain request next to it"];
    const problems = distances.flatMap((each, at) =>
      each <= bound ? [] : [`${names[at]}: off by ${each.toPrecision(2)}`],
    );
    const twin = engine.twin();
    if (twin === undefined || twin.plain.beside === 0 || twin.lost > 0 || twin.edited.different === 0)
      problems.push(`the requests were not compared in one batch: ${JSON.stringify(twin)}`);
    else if (twin.plain.different > 0)
      problems.push(`${twin.plain.different} plain rows differ without the edited request`);
    const problem = problems.join("; ");
    return {
      ...{ check: "live batch", ok: problem === "", problem },
      ...{ distance: Math.max(...distances), allowed: bound },
    };
  } finally {
    await engine.close();
  }
}

/** The largest difference between two tokens' log-probabilities and their logits, in parts of the largest one. */
function apart({ logprobs }: Choice, printed: Printed): number {
  const found = new Map(logprobs.content[0]?.top_logprobs.map(({ id, logprob }) => [id, logprob]));
  const expected = [...logitDifferences(printed)];
  const [[first]] = expected as [[number, number]];
  const size = Math.max(...expected.map(([, difference]) => Math.abs(difference)));
  const distances = expected.map(([token, difference]) =>
    Math.abs((found.get(token) ?? Number.NaN) - (found.get(first) ?? Number.NaN) - difference),
  );
  const most = Math.max(...distances) / size;
  return Number.isNaN(most) ? Number.POSITIVE_INFINITY : most;
}
