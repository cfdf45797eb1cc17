import type { Lab } from "../client/index.js";
import type { Quantisation } from "../native/index.js";
import type { Rounding } from "./rounding.js";

export interface QuantsRequest {
  reference: string;
  /** Files or models that exist. */
  forms: readonly string[];
  /** Forms that are made of the reference. */
  make: readonly Quantisation[];
  /** Forms whose weights are rounded to the nearest of a few values. */
  round: readonly Rounding[];
  /** Made files stay in the folder. */
  keepForms: boolean;
  texts: readonly string[];
  mostTokens: number;
  /** Default: all. */
  layers: readonly number[] | undefined;
  dictionary?: string;
  /** A second dictionary, with which the first one's survival is compared. */
  control?: string;
  /** Labelled texts, for a probe or a vector. */
  examples: readonly Record<string, unknown>[];
  probe?: string;
  vector?: string;
  /** Prompts whose attribution graphs are compared. */
  prompts: readonly string[];
  seed: number;
  rounds: number;
  promptTokens: number;
  generatedTokens: number;
}

export interface QuantsOptions {
  lab: Lab;
  /** For finished parts. */
  folder: string;
  signal: AbortSignal;
  /** Called with the part that begins, and the share that is done. */
  onProgress: (what: string, share: number) => void;
}

/** Resamples of an interval. */
export const resamples = 1000;
