/** What the form of Steer says, and the comparisons that it stands for: one a layer. */
import type { CompareConfig } from "../../operations/compare/contract.js";
import { linesOf, parseLayers } from "./lists.js";

export interface SteerForm {
  name: string;
  positive: string;
  negative: string;
  layers: string;
  /** What the direction of these texts is tried on, a prompt a line. */
  prompts: string;
  strengths: string;
  /** The token whose probability is measured; empty: the model's own answer. */
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

/** Layers of one grid: a comparison, and so a job, each. */
export const mostGridLayers = 12;

/** @throws Error where a part is no number */
function parseStrengths(text: string): number[] {
  const parts = text.split(/[\s,]+/).filter((part) => part !== "");
  const odd = parts.find((part) => !Number.isFinite(Number(part)));
  if (odd !== undefined) throw new Error(`Strengths are numbers as -0.4, 0, 0.4; got ${odd}.`);
  if (parts.length === 0) throw new Error("Strengths: name at least one.");
  return [...new Set(parts.map(Number))];
}

/**
 * What every layer is asked, without the layer.
 * @throws Error a sentence where the form says none
 */
export function doseRequest(form: SteerForm): Record<string, unknown> {
  const prompts = linesOf(form.prompts);
  if (prompts.length === 0) throw new Error("Write at least one prompt that the direction is tried on.");
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

/** The layers of a grid. @throws Error where they are too many */
export function gridLayers(form: SteerForm, usual: readonly number[]): number[] {
  const layers = parseLayers(form.layers) ?? [...usual];
  if (layers.length > mostGridLayers) {
    throw new Error(
      `A grid has at most ${mostGridLayers} layers, each of which is a job; got ${layers.length}.`,
    );
  }
  return layers;
}

/** The form that stands for what a comparison was asked. */
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

/** The jobs of a grid, as an address has them: the first in the path, the others behind it. */
export function gridJobs(id: string | undefined, query: URLSearchParams): string[] {
  const others = (query.get("with") ?? "").split(",").filter((other) => /^[0-9a-f]{32}$/.test(other));
  return id === undefined ? [] : [...new Set([id, ...others])];
}

export function gridPath([first = "", ...others]: readonly string[]): string {
  return `/steer/${first}${others.length === 0 ? "" : `?with=${others.join(",")}`}`;
}
