import type { InspectConfig, InspectResult } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import { taplineHome } from "../../files/home.js";
import { Lenses } from "../../library/lenses.js";
import type { AdvanceRequest, Context, Model } from "../../native/index.js";

/** A submission's named lens and measures (entropy, KL to the model's output). */
export interface LensExtras {
  lens?: InspectResult["lens"];
  request: NonNullable<AdvanceRequest["lensExtras"]>;
}

/**
 * The readings that an inspection requests beyond the logit lens's candidates.
 * @returns undefined if it requests none
 * @throws UserError for a lens that is invalid or made for another model
 */
export async function lensExtras(
  { lens: name, measures = name !== undefined, layers }: InspectConfig,
  model: Model,
  context: Context,
): Promise<LensExtras | undefined> {
  if (name === undefined && !measures) return undefined;
  if (!context.lens.supported) throw new UserError(context.lens.reason);
  if (name === undefined) return { request: { measures } };
  const lens = await new Lenses(taplineHome()).fitting(name, model.info);
  const translators = layers.flatMap((layer) => {
    const translator = lens.translator(layer);
    return translator === undefined ? [] : [{ layer, ...translator }];
  });
  const { kind, sha256, layers: covered } = lens.stored;
  if (translators.length === 0) {
    throw new UserError(
      `The lens ${lens.stored.name} covers the blocks ${covered.join(", ")}, not ${layers.join(", ")}.`,
    );
  }
  return { lens: { name: lens.stored.name, kind, sha256 }, request: { translators, measures } };
}
