import { checkInteger, invalid } from "./check.js";
import type { DictionaryPlaces } from "./dictionary.js";
import { checkPoint, type Point } from "./points.js";

/** What one unit of strength is: the unit vector, the vector as it is, or the edited row's own length. */
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

/** Of a chat that thinks before it answers, the generated tokens of one of the two: only live requests know. */
export type LivePositions = Positions | "thinking" | "answer";

/**
 * One change of rows h of a block output, or of another point, with v for the vector and u for the unit vector along it: the one form that
 * every intervention has from here to the tap.
 */
export interface Edit {
  layer: number;
  /** Of the block. Default: its output, the only one that live requests change. */
  point?: Point;
  /** Of `head_out`, the heads whose parts of the row are changed, side by side as one vector. Default: all of it. */
  heads?: readonly number[];
  /**
   * - `affine` (default): scale * h + strength * v, where `unit` may make v the unit vector or one as long as the row;
   * - `project_out`: h - strength * (h.u) u;
   * - `clamp`: h + strength * (clip(h.u, min, max) - h.u) u, with the bounds in `unit`;
   * - `hold`: h + strength * (clip(f, min, max) - f) v, with f for the activation of `feature`, and v in the length that
   *   one unit of it adds to this row.
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
  /** Of a hold. */
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
}

/** What an edit did: rows that it met, and the mean length (L2) of these rows and of its change to them. */
export interface EditEffect {
  rows: number;
  rowLength: number;
  changeLength: number;
}

const fields = "layer,point,heads,kind,scale,strength,unit,vector,feature,min,max,positions".split(",");
const kinds: readonly unknown[] = ["affine", "project_out", "clamp", "hold"];
const units: readonly unknown[] = ["unit", "vector", "row_norm"];

/** The greatest token index: a range that ends there ends with the text. */
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
 * Edits as the addon reads them (native/napi/edit_args.cpp), each field checked.
 * @param hidden length of a vector
 * @param live whether they are a live request's, which may name parts of a chat's answer
 * @throws NativeError INVALID_ARGUMENT
 */
export function nativeEdits(edits: readonly Edit[] | undefined, hidden: number, live = false): object[] {
  if (edits === undefined) return [];
  if (!Array.isArray(edits)) throw invalid("Edits must be an array.");
  return edits.map((edit) => nativeEdit(edit, hidden, live));
}

function nativeEdit(edit: Edit, hidden: number, live: boolean): object {
  if (typeof edit !== "object" || edit === null) throw invalid("An edit must be an object.");
  // A field that nobody reads would leave the model as it is where a change was asked for.
  const unknown = Object.keys(edit).find((field) => !fields.includes(field));
  if (unknown !== undefined) throw invalid(`An edit has no field ${told(unknown)}.`);
  const { layer, point = "block_out", kind = "affine", unit = "vector", vector, positions = "last" } = edit;
  if (!Number.isInteger(layer) || Math.abs(layer) > endOfText) {
    throw invalid(`An edit's layer must be an index, got ${told(layer)}.`);
  }
  checkPoint(point);
  checkHeads(edit.heads, point);
  if (live && point !== "block_out") throw invalid("A live edit changes block outputs only.");
  if (!kinds.includes(kind)) throw invalid(`An edit's kind must be ${kinds.join(", ")}, got ${told(kind)}.`);
  if (!units.includes(unit)) throw invalid(`An edit's unit must be ${units.join(", ")}, got ${told(unit)}.`);
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
    throw invalid(`An edit's min must not exceed its max, got ${told(min)} and ${told(max)}.`);
  }
  return {
    layer,
    point,
    heads: edit.heads && [...edit.heads],
    kind,
    unit,
    vector,
    feature: edit.feature,
    min,
    max,
    scale: finite("scale", edit.scale ?? 1),
    strength: finite("strength", edit.strength ?? 1),
    positions: nativePositions(positions, live),
  };
}

function checkHeads(heads: unknown, point: Point): void {
  if (heads === undefined) return;
  // An empty list would mean the whole row.
  if (!Array.isArray(heads) || heads.length === 0)
    throw invalid("An edit's heads must be a list of indices.");
  for (const head of heads) checkInteger("An edit's head", head ?? null, 0);
  if (point !== "head_out") throw invalid("Heads are those of head_out.");
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
      throw invalid("A range of positions is a first and a last token index.");
  }
  return { prompt: true, generated: true, ranges: Int32Array.from(positions.flat()) };
}

function finite(name: string, value: unknown): number {
  if (typeof value === "number" && Number.isFinite(Math.fround(value))) return value;
  throw invalid(`An edit's ${name} must be a finite number, got ${told(value)}.`);
}

function told(value: unknown): string {
  // JSON has no NaN and no infinity.
  if (typeof value === "number") return String(value);
  return typeof value === "string" ? JSON.stringify(value) : typeof value;
}
