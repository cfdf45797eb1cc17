/** The form of a patch sweep, and its request. */

import { alignedPositions, type ChangedPoint, type patchDirections } from "../../contracts/names.js";
import { count } from "../../findings/numbers.js";
import type { PatchSweepConfig } from "../../operations/patch_sweep/contract.js";
import { readMarks } from "../../operations/patch_sweep/contract-marked-text.js";
import { linesOf, numbersOf, parseLayers } from "./lists.js";

export interface PatchForm {
  clean: string;
  corrupted: string;
  /** Whether each line is a separate pair. */
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

/** The pairs of both texts. @throws Error if the numbers of lines differ */
export function pairsOf({ clean, corrupted, several }: PatchForm): { clean: string; corrupted: string }[] {
  if (!several) return [{ clean, corrupted }];
  const [ones, others] = [linesOf(clean), linesOf(corrupted)];
  if (ones.length !== others.length) {
    throw new Error(
      `Each line is one of a pair: got ${ones.length} clean and ${others.length} corrupted lines; the numbers must match.`,
    );
  }
  return ones.map((one, at) => ({ clean: one, corrupted: others[at] as string }));
}

/** The fields of a submission, without the model. @throws Error for an invalid form */
export function patchRequest(form: PatchForm): Record<string, unknown> {
  const pairs = pairsOf(form);
  const layers = parseLayers(form.layers);
  const heads = form.points.includes("head_out") ? parseLayers(form.heads, "Heads") : undefined;
  if (form.points.length === 0) throw new Error("Select at least one thing to patch.");
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

/** The form for the configuration of a job. */
export function patchFormOf(config: PatchSweepConfig): PatchForm {
  const { clean = "", corrupted = "", pairs, positions, layers = [], heads = [] } = config;
  const lines = (side: "clean" | "corrupted") => pairs?.map((pair) => pair[side]).join("\n");
  return {
    clean: lines("clean") ?? clean,
    corrupted: lines("corrupted") ?? corrupted,
    several: pairs !== undefined,
    layers: layers.join(", "),
    // Jobs of older versions have no points.
    points: [...(config.points ?? patchForm.points)],
    heads: heads.join(", "),
    where: positions === undefined ? "every" : Array.isArray(positions) ? "chosen" : "aligned",
    tokens: Array.isArray(positions) ? positions.join(", ") : patchForm.tokens,
    direction: config.direction,
    controls: config.controls,
  };
}

/** The matching marked spans of the first pair. @throws Error for invalid marks */
export function spansOf(form: PatchForm): { position: number; clean?: string; corrupted?: string }[] {
  const [pair] = pairsOf(form);
  const marked = (side: "clean" | "corrupted") => readMarks(pair?.[side] ?? "", `The ${side} text`).spans;
  const [clean, corrupted] = [marked("clean"), marked("corrupted")];
  if (clean.length !== corrupted.length) {
    throw new Error(
      `The clean text has ${count(clean.length, "marked span")}, the corrupted one ${corrupted.length}; the numbers must match.`,
    );
  }
  return clean.map(({ text }, position) => ({
    position,
    clean: text,
    corrupted: (corrupted[position] as { text: string }).text,
  }));
}
