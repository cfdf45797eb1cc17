import type { InspectLayer, InspectResult, Standing, TranslatedReading } from "../contracts/index.js";
import type { LensView } from "../contracts/names.js";

/** The readings of one lens, deepest layer last. */
export interface LensReading {
  /** `Logit lens`, or the name of a trained lens. */
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

/** What each view shows. */
export const lensViewMeanings: Record<LensView, string> = {
  token: "what each layer predicts next",
  rank: "the rank of the tracked token",
  entropy: "entropy of the reading, in nats",
  divergence: "KL(output ‖ reading), in nats",
};

/** The logit lens and, if the result has one, the trained lens; without layers that have no predictions. */
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

/** The numbers of a view, one per token; undefined if the result has none. */
export function viewValues(
  found: Pick<InspectLayer, "target" | "entropies" | "divergences">,
  view: Exclude<LensView, "token">,
): number[] | undefined {
  if (view === "entropy") return found.entropies;
  if (view === "divergence") return found.divergences;
  return found.target?.map(({ rank }) => rank);
}

/** The layers that track the target at every token, not only after the last one. */
export function followedLayers({
  tokens,
  layers,
}: Pick<InspectResult, "tokens" | "layers">): (InspectLayer & { target: Standing[] })[] {
  return layers.flatMap((found) => {
    const { target } = found;
    return target === undefined || target.length < tokens.length ? [] : [{ ...found, target }];
  });
}
