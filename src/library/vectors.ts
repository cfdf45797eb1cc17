import type { StoredVector, VectorLayer } from "../contracts/library.js";
import { UserError } from "../contracts/user-error.js";
import type { Tensor } from "../formats/safetensors.js";
import { checkFinite, checkModel, type ModelIdentity, modelOf } from "./identity.js";
import { type Shelved, SmallShelf } from "./shelf.js";

/** Evaluation of one layer; see VectorLayer. */
export type LayerReport = Omit<VectorLayer, "layer" | "length">;

const layerName = /^layer_(\d{1,3})$/;

/**
 * Saved directions by name, with one vector per layer in the space of the block's output: .safetensors files with a
 * tensor `layer_<n>` [hidden] for each.
 */
export class Vectors extends SmallShelf<StoredVector> {
  constructor(home: string) {
    super(home, "vector");
  }

  /**
   * Saves a vector under a name, replacing any existing one.
   * @throws UserError if a layer or a width does not fit the model, or a number is not finite
   */
  async put(
    name: string,
    layers: ReadonlyMap<number, Float32Array>,
    model: ModelIdentity,
    about: { note: string; reports?: ReadonlyMap<number, LayerReport> },
  ): Promise<StoredVector> {
    const tensors = new Map<string, Tensor>();
    for (const [layer, data] of [...layers].sort(([a], [b]) => a - b)) {
      if (layer >= model.nLayer) {
        throw new UserError(`The vector has layer ${layer}; the model has layers 0 to ${model.nLayer - 1}.`);
      }
      if (data.length !== model.nEmbd) {
        throw new UserError(
          `The vector has ${data.length} values per layer; the model's hidden size is ${model.nEmbd}.`,
        );
      }
      tensors.set(`layer_${layer}`, { shape: [data.length], data });
    }
    if (tensors.size === 0) throw new UserError("The file has no vector for any layer.");
    checkFinite(`The vector ${name}`, tensors);
    await this.keep(name, tensors, {
      tapline: "vector",
      model: model.id,
      model_fingerprint: model.fingerprint,
      point: "block_out",
      operation: "add",
      note: about.note,
      reports: JSON.stringify(Object.fromEntries(about.reports ?? [])),
    });
    return this.inList(name);
  }

  async get(name: string): Promise<StoredVector> {
    return describe(await this.file(name));
  }

  /** Without fields that are only in the answer for a single vector. */
  protected override async inList(name: string): Promise<StoredVector> {
    const vector = await this.get(name);
    return { ...vector, layers: vector.layers.map(({ projections: _, ...layer }) => layer) };
  }

  /**
   * One layer of a vector for a model, [hidden], with the vector's hash.
   * @throws UserError if it has no such layer or was made for another model
   */
  async layer(
    name: string,
    layer: number,
    model: ModelIdentity,
  ): Promise<{ vector: Float32Array; sha256: string }> {
    const file = await this.file(name);
    checkModel(`The vector ${name}`, file.metadata, model);
    const found = file.tensors.get(`layer_${layer}`);
    if (found === undefined) {
      throw new UserError(`The vector ${name} has no layer ${layer}; it has ${layersOf(file).join(", ")}.`);
    }
    if (found.data.length !== model.nEmbd) {
      throw new UserError(
        `The vector ${name} has ${found.data.length} values; the model's hidden size is ${model.nEmbd}.`,
      );
    }
    return { vector: found.data, sha256: file.sha256 };
  }

  /** The layers that a vector has, ascending. */
  async layers(name: string): Promise<number[]> {
    return layersOf(await this.file(name));
  }
}

function layersOf({ tensors }: Shelved): number[] {
  return [...tensors.keys()]
    .flatMap((name) => layerName.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

function describe(file: Shelved): StoredVector {
  const reports = JSON.parse(file.metadata.reports ?? "{}") as Record<string, LayerReport>;
  const layers = layersOf(file);
  const data = (layer: number) => file.tensors.get(`layer_${layer}`)?.data ?? new Float32Array();
  return {
    name: file.name,
    sha256: file.sha256,
    model: modelOf(file.metadata),
    n_embd: data(layers[0] ?? -1).length,
    point: "block_out",
    operation: "add",
    layers: layers.map((layer) => ({ layer, length: Math.hypot(...data(layer)), ...reports[layer] })),
    note: file.metadata.note ?? "",
    created: file.created,
  };
}
