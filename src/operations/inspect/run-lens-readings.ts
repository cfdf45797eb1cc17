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

/** What is read of the rows of one chunk, layer by layer and point by point as they were captured. */
export interface ChunkReading {
  /** Through the model's own norm and head alone; none where the point is no residual stream. */
  plain?: LensReading;
  /** Through the named lens before them; none where it has no translation of the block. */
  translated?: LensReading;
}

/** A lens that a submission names, and whether entropies and distances from the model's output are told. */
export interface LensReader {
  lens?: OpenLens;
  /** Blocks beside the submission's own that have to be captured: the last one says what the model's output is. */
  layers: readonly number[];
  read(captured: AdvanceResult["layers"], targets: Int32Array | undefined): Promise<ChunkReading[]>;
}

/**
 * How an inspection's rows are read where it asks for more than the logit lens's candidates.
 * @returns nothing where it does not
 * @throws UserError for a lens that is none, or is not this model's
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
      `The lens ${lens.stored.name} translates the blocks ${lens.stored.layers.join(", ")}; asked for ` +
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
