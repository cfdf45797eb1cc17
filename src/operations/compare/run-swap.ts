import type { CompareConfig, CompareResult } from "../../contracts/index.js";
import { limits } from "../../contracts/limits.js";
import { UserError } from "../../contracts/user-error.js";
import { taplineHome } from "../../files/home.js";
import { targetToken } from "../../lab/rows/tokens.js";
import { dot, lengthOf, randomVector } from "../../library/index.js";
import { pulledBack } from "../../library/lens-vectors.js";
import { Lenses } from "../../library/lenses.js";
import type { Context, Edit, EditEffect, LayerCapture, Model } from "../../native/index.js";

/** The smallest share of the second token's direction that must be orthogonal to the first one's. */
const leastApart = 0.01;

/** The plane that two tokens' directions span at a block. */
interface Plane {
  layer: number;
  /** Orthonormal; the first token's direction is `along` times the first of them. */
  axes: readonly [Float32Array, Float32Array];
  along: number;
  /** The second token's direction in terms of the two axes. */
  second: readonly [number, number];
}

/** Two tokens whose coordinates are exchanged, and their planes at each block. */
export interface Swap {
  tokens: readonly [number, number];
  planes: readonly Plane[];
  lens: CompareResult["lens"];
}

/**
 * The directions of two tokens at every selected block: those along which a lens computes their logits, without the
 * final norm's scale, which both share.
 * @throws UserError for tokens, lenses and blocks without directions
 */
export async function swapOf(config: CompareConfig, model: Model, context: Context): Promise<Swap> {
  const [one, other] = config.swap as [string, string];
  const tokens = [
    await targetToken(model, one, "swap[0]"),
    await targetToken(model, other, "swap[1]"),
  ] as const;
  if (tokens[0] === tokens[1]) throw new UserError("swap: the two texts encode to the same token.");
  const lens =
    config.lens === undefined ? undefined : await new Lenses(taplineHome()).fitting(config.lens, model.info);
  const last = model.info.nLayer - 1;
  const without = config.layers.filter((layer) => layer !== last && lens && !lens.translator(layer));
  if (lens !== undefined && without.length > 0) {
    throw new UserError(
      `The lens ${lens.stored.name} covers the blocks ${lens.stored.layers.join(", ")}, not ${without.join(", ")}.`,
    );
  }
  // The norm's scale makes no difference: both directions have it. So any vector will do.
  const anywhere = new Float32Array(model.info.nEmbd).fill(1).map((_, i) => (i % 2 === 0 ? 1 : -0.5));
  const directions: Float64Array[] = [];
  for (const token of tokens) directions.push((await context.logitDirection(anywhere, token)).direction);
  const planes: Plane[] = [];
  for (const layer of config.layers) {
    const [a, b] = (await pulledBack(lens?.translator(layer), directions)) as [Float64Array, Float64Array];
    planes.push(planeOf(layer, a, b));
  }
  const { name, kind, sha256 } = lens?.stored ?? {};
  return { tokens, planes, lens: name && kind && sha256 ? { name, kind, sha256 } : undefined };
}

function planeOf(layer: number, a: Float64Array, b: Float64Array): Plane {
  const along = lengthOf(a);
  const first = Float32Array.from(a, (value) => value / along);
  const shared = dot(b, first);
  const rest = b.map((value, i) => value - shared * (first[i] as number));
  const apart = lengthOf(rest);
  if (!(along > 0 && apart > leastApart * lengthOf(b))) {
    throw new UserError(`swap: at block ${layer} the two tokens have nearly the same direction.`);
  }
  return {
    layer,
    axes: [first, Float32Array.from(rest, (value) => value / apart)],
    along,
    second: [shared, apart],
  };
}

/** The prompt's tokens to edit, in order. @throws UserError if there are none or too many */
export function swapPositions({ positions = "last", layers }: CompareConfig, length: number): number[] {
  const all = Array.from({ length }, (_, i) => i);
  const at = (index: number) => (index < 0 ? index + length : index);
  const chosen =
    positions === "last"
      ? [length - 1]
      : typeof positions === "string"
        ? all
        : all.filter((token) =>
            positions.some(([first, last]) => token >= at(first as number) && token <= at(last as number)),
          );
  if (chosen.length === 0)
    throw new UserError(`positions: none of them is within the prompt's ${length} tokens.`);
  const places = chosen.length * layers.length;
  if (places > limits.swap_places) {
    throw new UserError(
      `swap: ${chosen.length} tokens at ${layers.length} blocks are ${places} places; the limit is ${limits.swap_places}.`,
    );
  }
  return chosen;
}

/**
 * Edits that exchange the two coordinates at every place, for each strength. The activation's component in the tokens' plane
 * is set to the unmodified run's with both coordinates exchanged, regardless of the edits at earlier blocks. If each block
 * exchanged the current coordinates instead, several blocks would undo each other.
 * @returns one plan per strength
 */
export async function swapPlans(
  config: CompareConfig,
  context: Context,
  tokens: Int32Array,
  { planes }: Swap,
  signal: AbortSignal | undefined,
): Promise<Edit[][]> {
  const positions = swapPositions(config, tokens.length);
  await context.reset();
  const { layers } = await context.advance({
    tokens,
    layers: config.layers,
    ...(signal === undefined ? {} : { signal }),
  });
  const places = planes.flatMap((plane, index) => {
    const { data, shape } = (layers[index] as LayerCapture).states as NonNullable<LayerCapture["states"]>;
    const width = shape[1] as number;
    return positions.map((position) => {
      const row = data.subarray(position * width, (position + 1) * width);
      return { plane, position, wanted: exchanged(plane, row) };
    });
  });
  return config.strengths.map((strength) =>
    places.flatMap(({ plane, position, wanted }) =>
      plane.axes.map((vector, axis): Edit => {
        const value = wanted[axis] as number;
        return {
          layer: plane.layer,
          positions: [[position, position]],
          kind: "clamp",
          unit: "unit",
          vector,
          min: value,
          max: value,
          strength,
        };
      }),
    ),
  );
}

/**
 * Random changes at the places of a swap's plan, each with the norm that the swap's change actually had there. At later
 * blocks it differs from that of an exchange in the clean run, because the changes at earlier blocks have arrived.
 * @param effects the measured effects of the plan's edits
 */
export function controlPlan(edits: readonly Edit[], effects: readonly EditEffect[], seed: number): Edit[] {
  return placesOf(edits, effects).map(({ edit: { layer, positions, vector }, square }): Edit => {
    const width = (vector as Float32Array).length;
    const placed = { layer, ...(positions && { positions }) };
    return {
      ...placed,
      vector: randomVector(width, 1, seed + layer),
      unit: "unit",
      strength: Math.sqrt(square),
    };
  });
}

/** The position of a row on a plane's axes after its two coordinates are exchanged. */
function exchanged({ axes, along, second }: Plane, row: Float32Array): readonly [number, number] {
  const [x, y] = [dot(row, axes[0]), dot(row, axes[1])];
  const b = y / second[1];
  const a = (x - b * second[0]) / along;
  return [b * along + a * second[0], a * second[1]];
}

/** The effect of a plan's edits, combined per place. */
export function swapChange(effects: readonly EditEffect[], edits: readonly Edit[]): EditEffect {
  const all = placesOf(edits, effects);
  const rows = all.reduce((sum, place) => sum + place.rows, 0);
  const mean = (of: (place: (typeof all)[number]) => number) =>
    rows === 0 ? 0 : all.reduce((sum, place) => sum + place.rows * of(place), 0) / rows;
  return { rows, changeLength: mean(({ square }) => Math.sqrt(square)), rowLength: mean(({ row }) => row) };
}

interface ChangedPlace {
  /** The first edit there. */
  edit: Edit;
  /** The squared norm of the change there: the edits of a place are orthogonal. */
  square: number;
  row: number;
  rows: number;
}

/** The places of a plan in order, with the effect of its edits at each. */
function placesOf(edits: readonly Edit[], effects: readonly EditEffect[]): ChangedPlace[] {
  const places = new Map<string, ChangedPlace>();
  for (const [index, edit] of edits.entries()) {
    const { rows, changeLength, rowLength } = effects[index] as EditEffect;
    const key = JSON.stringify([edit.layer, edit.positions]);
    const found = places.get(key) ?? { edit, square: 0, row: rowLength, rows };
    found.square += changeLength ** 2;
    places.set(key, found);
  }
  return [...places.values()];
}
