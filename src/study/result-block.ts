import type { Job, Operation, Result } from "../contracts/index.js";
import { blockLabels, studyLimits } from "../contracts/studies/index.js";
import { wordsOf } from "../report/index.js";
import { characters } from "../text/words.js";

/** JSON on one line, so that nothing in it can close the fence. */
function fenced(label: string, value: unknown, replacer?: (key: string, value: unknown) => unknown): string {
  return `\`\`\`${label}\n${JSON.stringify(value, replacer)}\n\`\`\``;
}

/** A Lab request, for reproductions. */
export function requestBlock(job: string, request: Record<string, unknown>): string {
  return fenced(blockLabels.request, { schemaVersion: 1, job, request });
}

export interface ResultText {
  text: string;
  /** The omitted parts of the result; null if complete. */
  leftOut: string | null;
}

/**
 * A machine-readable result as a fenced block that fits into one field: complete, or shortened step by step, least
 * important parts first. Null if even the shortest form does not fit.
 */
export function resultBlock(job: Job): ResultText | null {
  const { provenance: _, artifacts: __, ...whole } = job.result as Result;
  const block = { schemaVersion: 1, operation: job.operation, job: job.id };
  const text = fenced(blockLabels.result, { ...block, result: whole });
  if (characters(text) <= studyLimits.long_text) return { text, leftOut: null };
  for (const [left_out, result] of shorter(job.operation, whole)) {
    const shorterText = fenced(blockLabels.result, { ...block, left_out, result }, rounded);
    if (characters(shorterText) <= studyLimits.long_text) return { text: shorterText, leftOut: left_out };
  }
  return null;
}

/** Figures do not show more digits. */
function rounded(_key: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value;
}

/** Increasingly short forms of a result, each with what it omits. */
function* shorter(operation: Operation, whole: object): Generator<[leftOut: string, result: object]> {
  const digits = "Numbers are rounded to 5 digits here; other entries contain the full result";
  yield [`${digits}.`, whole];
  for (const [more, result] of wordsOf(operation).shorter?.(whole as never) ?? []) {
    yield [`${digits}, including ${more}.`, result];
  }
}
