import type { InspectConfig } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import { taplineHome } from "../../files/home.js";
import { Lenses, type OpenLens } from "../../library/lenses.js";
import {
  type AdvanceResult,
  type Context,
  type LensReading,
  type LensRequest,
  type Model,
  streamPoints,
} from "../../native/index.js";

/** The readings of one chunk's activations, in the order of the captured layers and points. */
export interface ChunkReading {
  /** Logit lens; undefined for points outside the residual stream. */
  plain?: LensReading;
  /** Through the named lens; undefined for blocks that it does not cover. */
  translated?: LensReading;
}

/** A submission's named lens and measures (entropy, KL to the model's output). */
export interface LensReader {
  lens?: OpenLens;
  /** Further blocks to capture: the last one, whose output is the model's. */
  layers: readonly number[];
  read(captured: AdvanceResult["layers"], targets: Int32Array | undefined): Promise<ChunkReading[]>;
}

/**
 * Reads an inspection's activations if it requests more than the logit lens's candidates.
 * @returns undefined if it does not
 * @throws UserError for a lens that is invalid or made for another model
 */
export async function lensReader(
  { lens: name, measures = name !== undefined, layers }: InspectConfig,
  model: Model,
  context: Context,
  { top, signal }: { top: number; signal: AbortSignal | undefined },
): Promise<LensReader | undefined> {
  if (name === undefined && !measures) return undefined;
  if (!context.lens.supported) throw new UserError(context.lens.reason);
  const lens = name === undefined ? undefined : await new Lenses(taplineHome()).fitting(name, model.info);
  const translated = layers.filter((layer) => lens?.translator(layer) !== undefined);
  if (lens !== undefined && translated.length === 0) {
    throw new UserError(
      `The lens ${lens.stored.name} covers the blocks ${lens.stored.layers.join(", ")}, not ` +
        `${layers.join(", ")}.`,
    );
  }
  const last = model.info.nLayer - 1;
  return {
    ...(lens && { lens }),
    layers: measures && !layers.includes(last) ? [last] : [],
    async read(captured, targets) {
      const rows = ({ states }: AdvanceResult["layers"][number]) => states?.data as Float32Array;
      const output = captured.find(({ layer, point }) => layer === last && point === "block_out");
      const wanted = captured.flatMap((found, index) => {
        if (!layers.includes(found.layer) || !streamPoints.has(found.point)) return [];
        const translator = found.point === "block_out" ? lens?.translator(found.layer) : undefined;
        const states = rows(found);
        return [
          { index, kind: "plain" as const, place: { states } },
          ...(translator === undefined
            ? []
            : [{ index, kind: "translated" as const, place: { states, translator } }]),
        ];
      });
      const request: LensRequest = {
        places: wanted.map(({ place }) => place),
        top,
        entropy: measures,
        ...(measures && output !== undefined && { output: rows(output) }),
        ...(targets && { targets }),
        ...(signal && { signal }),
      };
      const readings = await context.readLens(request);
      const chunk: ChunkReading[] = captured.map(() => ({}));
      for (const [i, { index, kind }] of wanted.entries()) {
        (chunk[index] as ChunkReading)[kind] = readings[i] as LensReading;
      }
      return chunk;
    },
  };
}
