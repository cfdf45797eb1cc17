/** Operations in this process: whole, or in parts that are merged. */
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { checkSubmission, type Provenance } from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { computePart } from "../../src/lab/parts/compute.js";
import { type MergedParts, mergeParts } from "../../src/lab/parts/merge.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { Model } from "../../src/native/index.js";
import { runOf, runOperation } from "../../src/operations/runs.js";

/** A result without artifact names and provenance, as JSON, and the contents of its files. */
export interface Outcome {
  result: string;
  files: Record<string, string>;
}

export async function wholeRun(folder: string, body: object): Promise<Outcome> {
  const { input, close } = await inputOf(folder, body);
  try {
    const result = JSON.stringify(await runOperation(input));
    return { result, files: filesOf(input.place, input.artifacts.names) };
  } finally {
    await close();
  }
}

/** @param order the parts in the order in which they are computed */
export async function inParts(folder: string, body: object, order: readonly number[]): Promise<string> {
  const place = mkdtempSync(join(folder, "parts-"));
  for (const part of order) await onePart(folder, body, [part, order.length], place);
  return place;
}

/** Computes a part into a folder. */
export async function onePart(folder: string, body: object, part: [number, number], place: string) {
  const { input, close } = await inputOf(folder, body);
  const facts = { provenance: {} as Provenance, versions: { backend: "test" } };
  try {
    const { split } = runOf(input.config.operation);
    return await computePart(split as never, input, { part, folder: place }, facts);
  } finally {
    await close();
  }
}

export async function mergedRun(folder: string, place: string): Promise<Outcome & { merged: MergedParts }> {
  const out = mkdtempSync(join(folder, "merged-"));
  const merged = await mergeParts(place, out);
  const { artifacts, provenance: _, ...found } = merged.job.result;
  return { result: JSON.stringify(found), files: filesOf(out, artifacts), merged };
}

async function inputOf(folder: string, body: object) {
  const config = checkSubmission(body);
  const model = await Model.open(config.model);
  const place = mkdtempSync(join(folder, "artifacts-"));
  const input = {
    ...{ config, model, place, artifacts: new Artifacts(place), clock: new StageClock() },
    ...{ progress: () => {}, openOther: (id: string) => Model.open(id) },
  };
  return { input, close: () => model.close() };
}

const filesOf = (folder: string, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), "base64")]));
