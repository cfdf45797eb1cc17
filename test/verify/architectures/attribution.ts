import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Dictionaries } from "../../../src/library/index.js";
import {
  type Context,
  encodeRows,
  type GraphTranscoderUse,
  type LogitTarget,
} from "../../../src/native/index.js";
import { randomTranscoder, writeSetConfig, writeTranscoder } from "../../support/random-transcoders.js";
import { relativeDistance } from "./arithmetic.js";
import type { Subject } from "./check-model.js";
import { settings } from "./eval-callback.js";
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
      ...replaced,
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
      measured: { apart, residual, ...(mlps.targets.length > 0 ? { ffn } : {}) },
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

/** How far the sums of a graph with random transcoders of all blocks are from their values; the points must exist. */
async function replacedMlps(context: Context, tokens: Int32Array, targets: LogitTarget[]): Promise<number[]> {
  const { ffn_in: input, ffn_out: output } = context.points;
  const point = input.supported ? "ffn_in" : "mid";
  if (!context.points[point].supported || !output.supported) return [];
  const folder = mkdtempSync(join(tmpdir(), "tapline-transcoders-"));
  try {
    writeSetConfig(folder, { input: point === "ffn_in" ? "mlp.hook_in" : "hook_resid_mid" });
    const dictionaries = new Dictionaries(join(folder, "home"));
    const { layers, widths } = context.points[point];
    const captures = layers.map((layer) => ({ layer, point }) as const);
    const { captures: rows } = await context.forward({ sequences: [{ tokens }], captures });
    const transcoders: GraphTranscoderUse[] = [];
    for (const [i, layer] of layers.entries()) {
      const width = widths[i] as number;
      const one = randomTranscoder(layer, { width, features: 40, skip: layer % 2 === 0, jump: false });
      writeTranscoder(folder, layer, one);
      await dictionaries.add(`set-${layer}`, join(folder, `layer_${layer}.safetensors`));
      const { places } = await dictionaries.open(`set-${layer}`);
      const states = (rows[i]!.values as Float32Array).subarray(width);
      const { pointers, indices } = await encodeRows(places, states);
      const at = Int32Array.from(indices);
      for (let row = 0; row + 1 < pointers.length; row++) at.fill(1 + row, pointers[row], pointers[row + 1]);
      transcoders.push({ layer, point, dictionary: places, tokens: at, features: indices });
    }
    const graph = await context.transcoderGraph({
      tokens,
      targets,
      transcoders,
      zeros: 1,
      nodes: 60,
      tried: 4,
    });
    return [...graph.edges.residuals];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
