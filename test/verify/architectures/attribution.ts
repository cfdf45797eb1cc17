import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Context, LogitTarget } from "../../../src/native/index.js";
import { relativeDistance } from "./arithmetic.js";
import type { Subject } from "./check-model.js";
import { settings } from "./eval-callback.js";
import { randomSet } from "./random-set.js";
import { type Check, tolerances } from "./report.js";

/**
 * The parts of two logits and of a function of a block's input add up to their values, and each block's attention is what
 * its linear path computes, and each dense MLP what its neurons add; every node of a graph of neurons and heads is the sum of its edges, and every node of a graph with random transcoders, which also cover experts; or a sentence says why there is no such path. A difference of two logits is the pass's own.
 */
export async function attribution(
  { model, tokens, plain }: Subject,
  _tool: string,
  path: string,
): Promise<Check> {
  const context = await model.createContext({ ...settings, keepAttention: true });
  const { nEmbd, nLayer, architecture } = model.info;
  const position = tokens.length - 1;
  const direction = Float32Array.from({ length: nEmbd }, (_, k) => Math.sin(k));
  const targets = [
    { position, token: 5 },
    { position, token: 7, minus: 9 },
    { position: 3, layer: nLayer - 1, point: "block_in" as const, direction },
  ];
  try {
    const found = await context.attribution({ tokens, targets });
    const apart = Math.max(...found.apart);
    const problems: string[] = [];
    const mlps = await context.attribution({ tokens, targets, neurons: 8 }).catch((error: Error) => {
      if (
        !/-moe\.gguf$/.test(path) ||
        !/ has no proven path through a dense MLP in block \d+: /.test(error.message)
      )
        problems.push(error.message);
      return { targets: [], ffnApart: [0] };
    });
    const ffn = Math.max(...mlps.ffnApart);
    if (!(ffn <= tolerances.dense)) problems.push(`an MLP is ${ffn} from its linear path`);
    // Where MLPs have a path, a graph of neurons and heads closes at every node, too.
    const graph =
      mlps.targets.length === 0
        ? { edges: { residuals: new Float64Array(1) } }
        : await context.attributionGraph({
            tokens,
            targets: targets.slice(0, 2) as LogitTarget[],
            nodes: 40,
          });
    const replaced = await replacedMlps(context, tokens, targets.slice(0, 2) as LogitTarget[]);
    const residual = Math.max(
      replaced ?? 0,
      ...[...found.targets, ...mlps.targets].map((target) => target.residual),
      ...graph.edges.residuals,
    );
    if (withoutPath.has(architecture)) problems.push("has a path that is listed as missing");
    if (!(apart <= tolerances.linear)) problems.push(`attention is ${apart} from its linear path`);
    if (!(residual <= tolerances.closes)) problems.push(`a sum is off by ${residual}`);
    const difference = found.targets[1]!.value;
    const own = plain[7]! - plain[9]!;
    const off = relativeDistance(Float32Array.of(difference), Float32Array.of(own));
    if (!capped.has(architecture) && !(off <= tolerances.logitDifference))
      problems.push(`a difference of logits is ${difference}, not ${own}`);
    return {
      name: "attribution",
      ok: problems.length === 0,
      detail: problems.join("; "),
      measured: {
        ...{ apart, residual },
        ...(mlps.targets.length > 0 && { ffn, graph: Math.max(...graph.edges.residuals) }),
        ...(replaced !== undefined && { replaced }),
      },
    };
  } catch (error) {
    const reason = (error as Error).message;
    const ok = withoutPath.has(architecture) && /^The architecture '[^']+' .{15,}\.$/.test(reason);
    return { name: "attribution", ok, detail: ok ? "" : `refused with "${reason}"`, note: reason };
  } finally {
    await context.close();
  }
}

/** Whose logits pass through a soft cap; their parts are of those before it. */
const capped = new Set(["gemma2", "grok"]);

/** By hand: the architectures without a linear path from a block's input through attention. */
const withoutPath = new Set([
  // gated after attention
  ...["afmoe", "laguna", "muse-glimmer", "spark2_5"],
  // latent attention
  ...["bailingmoe3", "deepseek2", "deepseek32", "dots3note", "glm-dsa", "kimi-linear", "mistral4"],
  // values are clamped
  ...["dbrx", "mpt", "olmo"],
  // recurrent blocks, or a recurrent half
  ...[
    "falcon-h1",
    "granitehybrid",
    "jamba",
    "lfm2",
    "lfm2moe",
    "mamba",
    "mamba2",
    "nemotron_h",
    "nemotron_h_moe",
  ],
  ...["plamo2", "qwen35", "qwen35moe", "qwen3next", "minimax-01"],
  // blocks that are not the sum of their input and two halves
  ...["arctic", "hrm_text", "smallthinker", "talkie"],
  // attend in both directions
  ...["dream", "llada", "llada-moe", "rnd1"],
]);

/** How far the sums of a graph with random transcoders of all blocks are from their values; undefined without the points. */
async function replacedMlps(
  context: Context,
  tokens: Int32Array,
  targets: LogitTarget[],
): Promise<number | undefined> {
  const folder = mkdtempSync(join(tmpdir(), "tapline-transcoders-"));
  try {
    const transcoders = await randomSet(context, tokens, folder);
    if (transcoders === undefined) return undefined;
    const request = { tokens, targets, transcoders, zeros: 1, nodes: 60, tried: 4 };
    const graph = await context.transcoderGraph(request);
    return Math.max(...graph.edges.residuals);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
