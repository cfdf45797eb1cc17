import { UserError } from "../../contracts/user-error.js";
import { taplineHome } from "../../files/home.js";
import { Dictionaries } from "../../library/index.js";
import type { Model } from "../../native/index.js";

/**
 * The decoder row of a stored dictionary's feature, [hidden].
 * @throws UserError where the dictionary is another layer's or another model's, or has no such feature
 */
export async function featureDirection(
  model: Model,
  layer: number,
  name: string,
  feature: number,
): Promise<Float32Array> {
  const dictionaries = new Dictionaries(taplineHome());
  const { nEmbd, nLayer } = model.info;
  const found = await dictionaries.fitting(name, { nEmbd, nLayer });
  if (found.stored.layer !== layer) {
    throw new UserError(
      `The dictionary ${name} reads block ${found.stored.layer}, and layers says ${layer}: its features are directions ` +
        "of its own block's output.",
    );
  }
  return dictionaries.direction(found, feature);
}
