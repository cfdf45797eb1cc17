import type { InspectLayer, InspectResult, Standing, TranslatedReading } from "../contracts/index.js";
import type { LensView } from "../contracts/names.js";

/** What one lens reads of each block, deepest last. */
export interface LensReading {
  /** `Logit lens`, or the name of the one that translates. */
  name: string;
  layers: (Pick<TranslatedReading, "predictions" | "target" | "entropies" | "divergences"> & {
    layer: number;
  })[];
}

/**
 * The layers that pictures draw: all that were measured, with everything known of the selected ones. Of a prompt that was too
 * long to read at all layers, and of older results, the selected ones.
 */
export function drawnLayers(
  result: Pick<InspectResult, "layers" | "all_layers" | "all_layers_from">,
): InspectLayer[] {
  return (result.all_layers_from ?? 0) > 0 ? result.layers : lastTokenLayers(result);
}

/** The layers that say something of the last token: all, also of a long prompt. */
export function lastTokenLayers({
  layers,
  all_layers,
}: Pick<InspectResult, "layers" | "all_layers">): InspectLayer[] {
  if (all_layers === undefined) return layers;
  const selected = new Map(layers.map((found) => [found.layer, found]));
  return all_layers.map((found) => selected.get(found.layer) ?? found);
}

/** What each view shows, in words. */
export const lensViewMeanings: Record<LensView, string> = {
  token: "what each block would say comes next",
  rank: "the rank of the followed token",
  entropy: "entropy of what it reads, in nats",
  divergence: "how far the model's output is from it, KL in nats",
};

/** The logit lens, and the lens that translates where the result has one; blocks without predictions are left out. */
export function lensReadings({ layers, lens }: Pick<InspectResult, "layers" | "lens">): LensReading[] {
  const plain = layers.flatMap((found) =>
    found.predictions === undefined ? [] : [{ ...found, predictions: found.predictions }],
  );
  const translated = layers.flatMap(({ layer, translated }) =>
    translated === undefined ? [] : [{ layer, ...translated }],
  );
  return [
    ...(plain.length === 0 ? [] : [{ name: "Logit lens", layers: plain }]),
    ...(translated.length === 0 || lens === undefined
      ? []
      : [{ name: `Lens ${lens.name} (${lens.kind})`, layers: translated }]),
  ];
}

/** The numbers of a view, one a token; nothing where the result has none of them. */
export function viewValues(
  found: Pick<InspectLayer, "target" | "entropies" | "divergences">,
  view: Exclude<LensView, "token">,
): number[] | undefined {
  if (view === "entropy") return found.entropies;
  if (view === "divergence") return found.divergences;
  return found.target?.map(({ rank }) => rank);
}

/** The layers that tell where the target stands at every token, not after the last token alone, as the answer's do. */
export function followedLayers({
  tokens,
  layers,
}: Pick<InspectResult, "tokens" | "layers">): (InspectLayer & { target: Standing[] })[] {
  return layers.flatMap((found) => {
    const { target } = found;
    return target === undefined || target.length < tokens.length ? [] : [{ ...found, target }];
  });
}
