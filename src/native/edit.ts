import { checkInteger, invalid } from "./check.js";
import type { DictionaryPlaces } from "./dictionary.js";
import { checkPoint, type Point } from "./points.js";

/** The unit of strength: the unit vector, the vector as given, or the length of the edited row. */
export type StrengthUnit = "unit" | "vector" | "row_norm";

/**
 * Which tokens of a sequence an edit changes. `last` is the last row of every forward pass: the prompt's last token
 * and every generated one. Ranges are token indices with both ends included; negative ones count from the end of the
 * prompt, and indices from the prompt's length on are generated tokens.
 */
export type Positions =
  | "last"
  | "all"
  | "prompt"
  | "generated"
  | ReadonlyArray<readonly [first: number, last: number]>;

/** For chats with thinking, the generated tokens of one part; only in live requests. */
export type LivePositions = Positions | "thinking" | "answer";

/**
 * One change of rows h at a point of a block, with vector v and its unit vector u. Every intervention has this form from
 * here to the tap.
 */
export interface Edit {
  layer: number;
  /** Of the block. Default: its output. */
  point?: Point;
  /** For `head_out`, the heads to change, concatenated as one vector. Default: the whole row. */
  heads?: readonly number[];
  /**
   * - `affine` (default): scale * h + strength * v, where `unit` may make v the unit vector or one as long as the row;
   * - `project_out`: h - strength * (h.u) u;
   * - `clamp`: h + strength * (clip(h.u, min, max) - h.u) u, with the bounds in `unit`;
   * - `hold`: h + strength * (clip(f, min, max) - f) v, with the activation f of `feature`, and v in the length that one
   *   unit of it adds to this row.
   */
  kind?: "affine" | "project_out" | "clamp" | "hold";
  /** Default 1. */
  scale?: number;
  /** Default 1. */
  strength?: number;
  /** Default `vector`. */
  unit?: StrengthUnit;
  /** [hidden] */
  vector?: Float32Array;
  /** For `hold`. */
  feature?: FeaturePlace;
  /** Default: no bound. */
  min?: number;
  /** Default: no bound. */
  max?: number;
  /** Default `last`. */
  positions?: LivePositions;
}

/** A feature of a dictionary in a file. */
export interface FeaturePlace {
  dictionary: DictionaryPlaces;
  index: number;
  /** The point of the same block that a transcoder reads, before the edited one. Default: the edited point. */
  point?: Point;
}

/** The effect of an edit: the number of rows, and the mean length (L2) of these rows and of its changes. */
export interface EditEffect {
  rows: number;
  rowLength: number;
  changeLength: number;
}

const fields = "layer,point,heads,kind,scale,strength,unit,vector,feature,min,max,positions".split(",");
const kinds: readonly unknown[] = ["affine", "project_out", "clamp", "hold"];
const units: readonly unknown[] = ["unit", "vector", "row_norm"];

/** The greatest token index, which means the end of the text. */
export const endOfText = 2 ** 31 - 1;

const parts = {
  last: { prompt: true, generated: true, ranges: Int32Array.of(-1, endOfText) },
  all: { prompt: true, generated: true },
  prompt: { prompt: true, generated: false },
  generated: { prompt: false, generated: true },
};
const chatParts = {
  thinking: { prompt: false, generated: true, part: "thinking" },
  answer: { prompt: false, generated: true, part: "answer" },
};

/**
 * Edits as the addon reads them (native/napi/plan_args.cpp), each field checked.
 * @param hidden length of a vector
 * @param live for a live request, which may select parts of a chat's answer
 * @throws NativeError INVALID_ARGUMENT
 */
export function nativeEdits(edits: readonly Edit[] | undefined, hidden: number, live = false): object[] {
  if (edits === undefined) return [];
  if (!Array.isArray(edits)) throw invalid("Edits must be an array.");
  return edits.map((edit) => nativeEdit(edit, hidden, live));
}

function nativeEdit(edit: Edit, hidden: number, live: boolean): object {
  if (typeof edit !== "object" || edit === null) throw invalid("An edit must be an object.");
  // A misspelled field would be ignored, and the requested change not made.
  const unknown = Object.keys(edit).find((field) => !fields.includes(field));
  if (unknown !== undefined) throw invalid(`An edit has no field ${shown(unknown)}.`);
  const { layer, point = "block_out", kind = "affine", unit = "vector", vector, positions = "last" } = edit;
  if (!Number.isInteger(layer) || Math.abs(layer) > endOfText) {
    throw invalid(`An edit's layer must be an index, got ${shown(layer)}.`);
  }
  checkPoint(point);
  checkHeads(edit.heads, point);
  if (!kinds.includes(kind)) throw invalid(`An edit's kind must be ${kinds.join(", ")}, got ${shown(kind)}.`);
  if (!units.includes(unit)) throw invalid(`An edit's unit must be ${units.join(", ")}, got ${shown(unit)}.`);
  if (vector === undefined) {
    if (kind !== "affine") throw invalid(`An edit of the kind ${kind} needs a vector.`);
  } else if (!(vector instanceof Float32Array)) {
    throw invalid("An edit's vector must be a Float32Array.");
  } else if (vector.length !== hidden && point !== "head_out") {
    throw invalid(`An edit's vector has ${vector.length} values; the hidden size is ${hidden}.`);
  }
  if ((kind === "hold") !== (edit.feature !== undefined)) {
    throw invalid(
      kind === "hold" ? "A hold needs a feature." : `An edit of the kind ${kind} has no feature.`,
    );
  }
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = edit;
  if (!(typeof min === "number" && typeof max === "number" && min <= max)) {
    throw invalid(`An edit's min must not exceed its max, got ${shown(min)} and ${shown(max)}.`);
  }
  const heads = edit.heads && [...edit.heads];
  const scale = finite("scale", edit.scale ?? 1);
  const strength = finite("strength", edit.strength ?? 1);
  const where = { layer, point, heads, positions: nativePositions(positions, live) };
  return { ...where, kind, unit, vector, feature: edit.feature, min, max, scale, strength };
}

function checkHeads(heads: unknown, point: Point): void {
  if (heads === undefined) return;
  // An empty list would mean the whole row.
  if (!Array.isArray(heads) || heads.length === 0)
    throw invalid("An edit's heads must be a list of indices.");
  for (const head of heads) checkInteger("An edit's head", head ?? null, 0);
  if (point !== "head_out") throw invalid("Heads are only possible at head_out.");
}

/** Positions as the addon reads them. @throws NativeError INVALID_ARGUMENT */
export function nativePositions(positions: LivePositions, live = false): object {
  if (live && (positions === "thinking" || positions === "answer")) return chatParts[positions];
  if (typeof positions === "string" && Object.hasOwn(parts, positions)) {
    return parts[positions as keyof typeof parts];
  }
  if (!Array.isArray(positions) || positions.length === 0) {
    throw invalid(`An edit's positions must be ${Object.keys(parts).join(", ")} or ranges.`);
  }
  for (const range of positions) {
    const ends: unknown[] = Array.isArray(range) ? range : [];
    if (
      ends.length !== 2 ||
      !ends.every((end) => Number.isInteger(end) && Math.abs(Number(end)) <= endOfText)
    )
      throw invalid("A range of positions must be a first and a last token index.");
  }
  return { prompt: true, generated: true, ranges: Int32Array.from(positions.flat()) };
}

function finite(name: string, value: unknown): number {
  if (typeof value === "number" && Number.isFinite(Math.fround(value))) return value;
  throw invalid(`An edit's ${name} must be a finite number, got ${shown(value)}.`);
}

function shown(value: unknown): string {
  // JSON has no NaN and no infinity.
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? JSON.stringify(value) : typeof value;
}
