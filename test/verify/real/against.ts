import { fileURLToPath } from "node:url";
import { runProgram } from "../../support/real/cache.js";
import { type EnvironmentName, environment } from "../../support/real/environments.js";
import type { Figure } from "../numerics/check.js";
import type { Ours } from "./ours.js";

export const peers = ["transformers", "transformer-lens", "nnsight"] as const satisfies EnvironmentName[];

/** The bounds of a model's figures: relative L2, and differences of probabilities. */
export interface Bounds {
  distance: number;
  /** The worst token's own relative L2: long activations of a BOS token hide nothing here. */
  token: number;
  probability: number;
}

const script = fileURLToPath(new URL("./against.py", import.meta.url));

/** What tapline computed of the F32 model against the same model in one of the peers. */
export async function against(
  peer: (typeof peers)[number],
  { cases, values }: Ours,
  { folder, bounds, chats }: { folder: string; bounds: Bounds; chats: boolean },
): Promise<Figure[]> {
  const python = await environment(peer);
  const offline = { HF_HUB_OFFLINE: "1", TRANSFORMERS_OFFLINE: "1" };
  const said = await runProgram(python, ["-B", script, peer, cases, values, folder], offline);
  const seen = JSON.parse(said.trim().split("\n").at(-1) as string) as Record<string, number>;
  const most = (key: string, what: string, bound: number): Figure => {
    return { what, value: seen[key] ?? Number.NaN, bound };
  };
  const kinds = ["scale", "ablate", "patch", "steer"];
  return [
    most("differing", "texts whose tokens differ", 0),
    ...(chats ? [most("template", "chats whose filled template or tokens differ", 0)] : []),
    most("blocks", "block outputs: relative L2, worst prompt and block", bounds.distance),
    most("token", "block outputs: relative L2, worst token of all prompts and blocks", bounds.token),
    // nnsight has the same modules as transformers.
    ...(peer === "nnsight"
      ? []
      : ["attn_out", "mid", "ffn_in", "ffn_out"].map((point) =>
          most(point, `${point}: relative L2, worst prompt and block`, bounds.distance),
        )),
    ...(peer === "nnsight"
      ? []
      : [most("attention", "attention weights: relative L2, worst prompt and block", bounds.distance)]),
    most("features", "packed final-token outputs: relative L2, worst text", bounds.distance),
    most("variation", "next token: total variation, worst prompt", bounds.probability),
    most("lens", "logit lens, ten tokens a block: greatest difference of a probability", bounds.probability),
    most("lens_order", "logit lens: how far its first token is from the most probable", bounds.probability),
    ...kinds.map((kind) => most(kind, `${kind}: greatest difference of a probability`, bounds.probability)),
    ...kinds.map(
      (kind): Figure => ({
        ...most(`moved_${kind}`, `${kind}: greatest effect (total variation)`, 0.05),
        atLeast: true,
      }),
    ),
    most(
      "continuation",
      "greedy continuations: how far a token is from the most probable",
      bounds.probability,
    ),
  ];
}
