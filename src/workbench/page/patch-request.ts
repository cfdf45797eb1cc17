/** What the form of a patch sweep says, and the request that it stands for. */

import { alignedPositions, type ChangedPoint, type patchDirections } from "../../contracts/names.js";
import type { PatchSweepConfig } from "../../operations/patch_sweep/contract.js";
import { readMarks } from "../../operations/patch_sweep/contract-marked-text.js";
import { linesOf, numbersOf, parseLayers } from "./lists.js";

export interface PatchForm {
  clean: string;
  corrupted: string;
  /** Whether each line is a pair of its own. */
  several: boolean;
  layers: string;
  points: ChangedPoint[];
  /** Of head_out. */
  heads: string;
  where: "every" | "aligned" | "chosen";
  /** Token indices, where they are chosen. */
  tokens: string;
  direction: (typeof patchDirections)[number];
  controls: boolean;
}

export const patchForm: PatchForm = {
  clean: "The capital of France is",
  corrupted: "The capital of Japan is",
  several: false,
  layers: "",
  points: ["block_out"],
  heads: "",
  where: "every",
  tokens: "-1",
  direction: "denoise",
  controls: true,
};

/** The lines of both texts, each with its like. @throws Error where they are not as many */
export function pairsOf({ clean, corrupted, several }: PatchForm): { clean: string; corrupted: string }[] {
  if (!several) return [{ clean, corrupted }];
  const [ones, others] = [linesOf(clean), linesOf(corrupted)];
  if (ones.length !== others.length) {
    throw new Error(
      `A line is one of a pair: ${ones.length} are clean and ${others.length} corrupted; as many of both are needed.`,
    );
  }
  return ones.map((one, at) => ({ clean: one, corrupted: others[at] as string }));
}

/** The fields of a submission beside its model. @throws Error a sentence where the form says none */
export function patchRequest(form: PatchForm): Record<string, unknown> {
  const pairs = pairsOf(form);
  const layers = parseLayers(form.layers);
  const heads = form.points.includes("head_out") ? parseLayers(form.heads, "Heads") : undefined;
  if (form.points.length === 0) throw new Error("Choose at least one thing that is put in.");
  return {
    operation: "patch_sweep",
    ...(form.several ? { pairs } : pairs[0]),
    direction: form.direction,
    controls: form.controls,
    points: form.points,
    ...(layers !== undefined && { layers }),
    ...(heads !== undefined && { heads }),
    ...(form.where === "aligned" && { positions: alignedPositions }),
    ...(form.where === "chosen" && { positions: numbersOf(form.tokens, "Tokens") }),
  };
}

/** The form that stands for what a job was asked. */
export function patchFormOf(config: PatchSweepConfig): PatchForm {
  const { clean = "", corrupted = "", pairs, positions, layers = [], heads = [] } = config;
  const lines = (side: "clean" | "corrupted") => pairs?.map((pair) => pair[side]).join("\n");
  return {
    clean: lines("clean") ?? clean,
    corrupted: lines("corrupted") ?? corrupted,
    several: pairs !== undefined,
    layers: layers.join(", "),
    // Jobs of earlier versions name none.
    points: [...(config.points ?? patchForm.points)],
    heads: heads.join(", "),
    where: positions === undefined ? "every" : Array.isArray(positions) ? "chosen" : "aligned",
    tokens: Array.isArray(positions) ? positions.join(", ") : patchForm.tokens,
    direction: config.direction,
    controls: config.controls,
  };
}

/** The marked spans of both texts of the first pair, one below the other. @throws Error what is wrong with the marks */
export function spansOf(form: PatchForm): { position: number; clean?: string; corrupted?: string }[] {
  const [pair] = pairsOf(form);
  const marked = (side: "clean" | "corrupted") => readMarks(pair?.[side] ?? "", `The ${side} text`).spans;
  const [clean, corrupted] = [marked("clean"), marked("corrupted")];
  if (clean.length !== corrupted.length) {
    throw new Error(
      `The clean text marks ${clean.length} spans and the corrupted one ${corrupted.length}; each has its like in the other.`,
    );
  }
  return clean.map(({ text }, position) => ({
    position,
    clean: text,
    corrupted: (corrupted[position] as { text: string }).text,
  }));
}
