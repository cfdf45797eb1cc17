import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Some numbers of a tensor as llama.cpp's own program printed them. */
export interface Printed {
  /** llama.cpp computes only the last token's row where no other is needed. */
  rows: number;
  width: number;
  /** The first and last values of the first and last rows. */
  values: Array<[row: number, column: number, value: number]>;
  /** Of all values, in float32. */
  sum: number;
}

/** The block outputs and the logits of one forward pass. */
export interface PrintedPass {
  /** By block. */
  blocks: Printed[];
  logits: Printed;
}

/** A tiny model, and what llama.cpp's own program computes with it. */
export interface Expected {
  model: string;
  /** SHA-256 of the model's file. */
  sha256: string;
  tokens: number[];
  plain: PrintedPass;
  /** A different text of the same length, for patching. */
  donor: { tokens: number[]; pass: PrintedPass };
  /** A control vector that is added to the output of one block, at every token. */
  steered: { layer: number; pass: PrintedPass };
  /** The same model quantised, its weights written back as F32. */
  forms: Partial<Record<QuantisedForm, PrintedPass>>;
}

export const quantisedForms = ["Q8_0", "Q4_K_M"] as const;
export type QuantisedForm = (typeof quantisedForms)[number];

/** The same distance from src/ and from dist/. */
export const expectedFolder = fileURLToPath(new URL("../../models/verify", import.meta.url));

/** The names of the models that a folder has expected values of. */
export function modelNames(folder = expectedFolder): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".json"))
    .map((name) => name.slice(0, -".json".length))
    .sort();
}

export function readExpected(model: string, folder = expectedFolder): Expected {
  return JSON.parse(readFileSync(join(folder, `${model}.json`), "utf8")) as Expected;
}
