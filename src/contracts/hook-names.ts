import type { modelPoints } from "./names.js";

type Point = (typeof modelPoints)[number];

/**
 * TransformerLens's names of points, current ones first, with L for the block. Only those whose values are the same: with norms
 * after attention and MLP, as in Gemma, its `attn.hook_out` and `mlp.hook_out` are before the norm, so that they are no
 * point here.
 */
export const hookNames: Record<Point, { names: readonly string[]; unlessNormed?: readonly string[] }> = {
  block_in: { names: ["blocks.L.hook_in", "blocks.L.hook_resid_pre"] },
  attention: { names: ["blocks.L.attn.hook_pattern"] },
  head_out: { names: ["blocks.L.attn.hook_z"] },
  attn_out: { names: ["blocks.L.hook_attn_out"], unlessNormed: ["blocks.L.attn.hook_out"] },
  mid: { names: ["blocks.L.hook_resid_mid", "blocks.L.ln2.hook_in"] },
  ffn_in: { names: ["blocks.L.mlp.hook_in", "blocks.L.ln2.hook_out"] },
  router: { names: [] },
  ffn_out: { names: ["blocks.L.hook_mlp_out"], unlessNormed: ["blocks.L.mlp.hook_out"] },
  block_out: { names: ["blocks.L.hook_out", "blocks.L.hook_resid_post"] },
};

/** A name of a point with its block or, for all blocks, `*`. */
export interface NamedPoint {
  point: Point;
  layer: number | "*";
  /** The name in the given form, for a block. */
  nameFor(layer: number): string;
}

/**
 * Reads a name of a point: `block_out.5`, TransformerLens's `blocks.5.hook_out`, or either with `*` for the block.
 * @param normed whether the model normalises what attention and MLP add
 */
export function readPointName(name: string, normed: boolean): NamedPoint | null {
  const [, layer] = /(?:^|\.)(\d{1,3}|\*)(?:\.|$)/.exec(name) ?? [];
  if (layer === undefined) return null;
  for (const [point, { names: always, unlessNormed = [] }] of Object.entries(hookNames)) {
    const templates = [`${point}.L`, ...always, ...(normed ? [] : unlessNormed)];
    const template = templates.find((one) => one.replace("L", layer) === name);
    if (template === undefined) continue;
    return {
      point: point as Point,
      layer: layer === "*" ? "*" : Number(layer),
      nameFor: (one) => template.replace("L", String(one)),
    };
  }
  return null;
}
