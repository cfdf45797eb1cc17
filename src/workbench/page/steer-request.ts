/** The form of Steer, and its comparisons: one per layer. */
import type { CompareConfig } from "../../operations/compare/contract.js";
import { linesOf, parseLayers } from "./lists.js";

export interface SteerForm {
  name: string;
  positive: string;
  negative: string;
  layers: string;
  /** Test prompts, one per line. */
  prompts: string;
  strengths: string;
  /** The token whose probability is measured; empty for the model's answer. */
  target: string;
}

const country = (names: string[]) => names.map((name) => `The capital of ${name} is`).join("\n");

export const steerForm: SteerForm = {
  name: "unknown",
  positive: country(["Brovia", "Zondia", "Keltora", "Marvenia", "Ostrania", "Velmora"]),
  negative: country(["Spain", "Italy", "Japan", "Poland", "Norway", "Greece"]),
  layers: "",
  prompts: "The capital of Sweden is",
  strengths: "-0.8, -0.4, -0.2, 0, 0.2, 0.4, 0.8",
  target: "",
};

/** Maximum number of layers of a grid; each is a separate job. */
export const mostGridLayers = 12;

/** @throws Error for a part that is not a number */
function parseStrengths(text: string): number[] {
  const parts = text.split(/[\s,]+/).filter((part) => part !== "");
  const odd = parts.find((part) => !Number.isFinite(Number(part)));
  if (odd !== undefined) throw new Error(`Strengths: expected numbers such as -0.4, 0, 0.4; got ${odd}.`);
  if (parts.length === 0) throw new Error("Strengths: enter at least one.");
  return [...new Set(parts.map(Number))];
}

/**
 * The submission for each layer, without the layer.
 * @throws Error for an invalid form
 */
export function doseRequest(form: SteerForm): Record<string, unknown> {
  const prompts = linesOf(form.prompts);
  if (prompts.length === 0) throw new Error("Test prompts: enter at least one.");
  return {
    operation: "compare",
    prompt: prompts[0],
    ...(prompts.length > 1 && { prompts }),
    intervention: "steer",
    strengths: parseStrengths(form.strengths),
    strength_unit: "row_norm",
    positives: linesOf(form.positive),
    negatives: linesOf(form.negative),
    controls: true,
    ...(form.target !== "" && { target_token: form.target }),
  };
}

/** The layers of a grid. @throws Error if there are too many */
export function gridLayers(form: SteerForm, usual: readonly number[]): number[] {
  const layers = parseLayers(form.layers) ?? [...usual];
  if (layers.length > mostGridLayers) {
    throw new Error(`Layers: at most ${mostGridLayers} per grid (one job each), got ${layers.length}.`);
  }
  return layers;
}

/** The form for the configuration of a comparison. */
export function steerFormOf(config: CompareConfig): Partial<SteerForm> {
  const { prompt, prompts = [prompt], positives, negatives, strengths, target_token = "" } = config;
  return {
    prompts: prompts.join("\n"),
    strengths: strengths.join(", "),
    target: target_token,
    ...(positives !== undefined && { positive: positives.join("\n") }),
    ...(negatives !== undefined && { negative: negatives.join("\n") }),
  };
}

/** The jobs of a grid in an address: the first in the path, the others in the query. */
export function gridJobs(id: string | undefined, query: URLSearchParams): string[] {
  const others = (query.get("with") ?? "").split(",").filter((other) => /^[0-9a-f]{32}$/.test(other));
  return id === undefined ? [] : [...new Set([id, ...others])];
}

export function gridPath([first = "", ...others]: readonly string[]): string {
  return `/steer/${first}${others.length === 0 ? "" : `?with=${others.join(",")}`}`;
}
