import type { ProbeRequest, StoredProbe } from "../../contracts/library.js";
import type { Engine } from "../../native/engine.js";
import { trainProbe } from "../../native/index.js";
import type { LiveLibrary } from "./library.js";
import { textStates } from "./make-vector.js";

/** One in this many texts of each side is held out. */
const heldOutEvery = 5;
const shuffles = 20;

/**
 * Trains a linear probe on two lists of texts on the resident model and saves it: logistic regression on standardised
 * activations, like the Lab's probe. Every fifth text of each side is held out, and the figures are of the saved
 * probe.
 * @throws NativeError TOKEN_LIMIT, LAYER_OUT_OF_RANGE; UserError
 */
export async function makeProbe(
  engine: Engine,
  library: LiveLibrary,
  request: ProbeRequest,
  signal: AbortSignal,
): Promise<StoredProbe> {
  const { name, positive, negative, layer, position = "last", seed = 0 } = request;
  const texts = [...positive, ...negative];
  const [states] = await textStates(engine, texts, { layers: [layer], position, signal });
  const place = (row: number) => (row < positive.length ? row : row - positive.length);
  const trained = await trainProbe(
    {
      features: (states as NonNullable<typeof states>).data,
      labels: Uint8Array.from(texts, (_, row) => Number(row < positive.length)),
      train: Uint8Array.from(texts, (_, row) => Number((place(row) + 1) % heldOutEvery !== 0)),
      seed,
      permutations: shuffles,
      // In addition to the thread that generates.
      threads: 1,
    },
    { signal },
  );
  const numbers = {
    weight: Float32Array.from(trained.weight),
    mean: Float32Array.from(trained.mean),
    std: Float32Array.from(trained.std),
    bias: trained.bias,
  };
  const shuffled = trained.permutedAucs.reduce((sum, value) => sum + value, 0) / shuffles;
  const note =
    `Logistic regression on ${positive.length} positive and ${negative.length} negative texts, ` +
    `${position === "last" ? "last token" : "mean over tokens without BOS and outliers"}, block outputs; ${trained.testSize} texts held out.`;
  return library.probes.put(name, layer, numbers, library.model, {
    note,
    report: {
      ...{ separation: trained.auc, shuffled_separation: shuffled },
      ...(position === "mean" && { excluded: (states as NonNullable<typeof states>).excluded }),
    },
  });
}
