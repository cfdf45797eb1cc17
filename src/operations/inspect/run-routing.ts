import type { InspectResult, Routing } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import type { Artifacts } from "../../lab/artifacts.js";
import { writeNpz } from "../../lab/npz.js";
import type { Context, LayerRouting } from "../../native/index.js";

/** One layer: number of experts, experts per token, then arrays of [tokens, used]. */
interface Found {
  experts: number;
  used: number;
  chosen: Int32Array;
  weights: Float32Array;
}

/** The experts of every token at some layers, assembled from the chunks of a text. */
export class RoutingReader {
  readonly layers: readonly number[];
  readonly #tokens: number;
  readonly #found = new Map<number, Found>();
  #rows = 0;

  /** @throws UserError if the model, or one of these layers, has no readable router */
  constructor({ points }: Pick<Context, "points">, layers: readonly number[], tokens: number) {
    const { supported, reason, layers: there, widths, experts } = points.router;
    if (!supported) throw new UserError(reason);
    const without = layers.filter((layer) => !there.includes(layer));
    if (without.length > 0) {
      throw new UserError(
        `routing: ${blocks(without)} ${without.length === 1 ? "has" : "have"} no readable router; the model has one in ${blocks(there)}.`,
      );
    }
    this.layers = layers;
    this.#tokens = tokens;
    for (const layer of layers) {
      const used = widths[there.indexOf(layer)] as number;
      this.#found.set(layer, {
        experts: experts[there.indexOf(layer)] as number,
        used,
        chosen: new Int32Array(tokens * used),
        weights: new Float32Array(tokens * used),
      });
    }
  }

  /** Adds the next chunk's tokens. */
  take(chunk: readonly LayerRouting[]): void {
    for (const { layer, chosen, weights } of chunk) {
      const found = this.#found.get(layer);
      found?.chosen.set(chosen.data, this.#rows * found.used);
      found?.weights.set(weights.data, this.#rows * found.used);
    }
    this.#rows += chunk[0]?.chosen.shape[0] ?? 0;
  }

  async write(artifacts: Artifacts): Promise<void> {
    const arrays = this.layers.flatMap((layer) => {
      const found = this.#of(layer);
      const shape = [this.#tokens, found.used];
      return [
        [`layer_${layer}_experts`, { shape, data: found.chosen }],
        [`layer_${layer}_weights`, { shape, data: found.weights }],
        [`layer_${layer}_share`, { shape: [found.experts], data: Float32Array.from(sharesOf(found)) }],
      ] as const;
    });
    await writeNpz(artifacts, "routing.npz", Object.fromEntries(arrays));
  }

  describe(): NonNullable<InspectResult["routing"]> {
    return this.layers.map((layer) => described(layer, this.#of(layer)));
  }

  #of(layer: number) {
    return this.#found.get(layer) as Found;
  }
}

/** Each expert's share of all choices. */
function sharesOf({ experts, chosen }: Found): number[] {
  const counts = new Array<number>(experts).fill(0);
  for (const expert of chosen) (counts[expert] as number)++;
  return counts.map((count) => count / chosen.length);
}

/** The shares of the experts, and the experts of each token. */
function described(layer: number, found: Found): Routing {
  const { experts, used, chosen, weights } = found;
  const rows = <T>(values: ArrayLike<T>) =>
    Array.from({ length: values.length / used }, (_, token) =>
      Array.from({ length: used }, (_, i) => values[token * used + i] as T),
    );
  return {
    layer,
    experts,
    used,
    shares: sharesOf(found),
    chosen: rows(chosen),
    weights: rows(weights),
  };
}

function blocks(layers: readonly number[]): string {
  return `${layers.length === 1 ? "block" : "blocks"} ${layers.join(", ")}`;
}
