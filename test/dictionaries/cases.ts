import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

/** A dictionary of some layout in a folder, and what its layout's own equations make of some rows. */
export interface Case {
  name: string;
  path: string;
  rows: number[];
  hidden: number;
  /** [rows, features], by the layout's own equations in float64. */
  features: number[];
  decoded: number[];
  claim?: number;
  k?: number;
  layer: number;
  point?: string;
  writes?: string;
}

/** The scripts that write layouts, and what Python needs for them. */
export const layoutScripts = {
  arrays: { script: "./layouts.py", modules: ["numpy"] },
  checkpoints: { script: "./torch_layouts.py", modules: ["numpy", "torch"] },
} as const;

/** Has a script write a dictionary of each of its layouts into a folder, shapes by a seed. */
export function writeLayouts(python: string, script: string, folder: string, seed: number): Case[] {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const said = execFileSync(python, ["-B", path, folder, String(seed)], { maxBuffer: 2 ** 28 });
  return JSON.parse(said.toString()) as Case[];
}
