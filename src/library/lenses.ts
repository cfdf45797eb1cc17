import { createHash } from "node:crypto";
import { basename } from "node:path";
import type { LensFit, StoredLens } from "../contracts/library.js";
import { limits } from "../contracts/limits.js";
import { UserError } from "../contracts/user-error.js";
import { bytesOf, narrowExactly } from "../formats/float.js";
import { type Lens, lensFiles, readLens, type Translation } from "../formats/lens.js";
import { planSafetensors, type TensorPlace, type WrittenType } from "../formats/safetensors.js";
import type { TranslatorPlaces } from "../native/index.js";
import { checkBlock, checkWidth, type ModelSize } from "./identity.js";
import { asUserError, type FromHub, filesAt } from "./layout-files.js";
import { LargeShelf } from "./shelf.js";

/** A saved lens, located for native code. */
export interface OpenLens {
  stored: StoredLens;
  /** The place of a block's translator; undefined if the lens has none. */
  translator(layer: number): TranslatorPlaces | undefined;
}

/** What is known of a lens besides its file. */
interface About {
  source: string | null;
  fit?: LensFit[];
}

/**
 * Saved lenses by name, each a private .safetensors file written atomically: `layer_<n>` [hidden, hidden] and
 * `bias_<n>` [hidden] per block. Only the file's head is read here.
 */
export class Lenses extends LargeShelf<StoredLens, OpenLens> {
  constructor(home: string) {
    super(home, "lens", "lenses");
  }

  /**
   * Reads a published lens and saves it under a name, replacing any existing one.
   * @param place its folder or weights file, local or on the hub
   * @param fromHub called if there is no such local file
   * @throws UserError
   */
  async add(name: string, place: string, fromHub?: FromHub): Promise<StoredLens> {
    const { files, path, source } = await filesAt(place, lensFiles, fromHub).catch(asUserError);
    try {
      const named = basename(path);
      const weights = files.names.includes(named) ? named : (lensFiles(files.names, "").at(-1) as string);
      await this.keep(name, await readLens(files, weights), { source });
    } catch (error) {
      asUserError(error);
    }
    return this.get(name);
  }

  /** Saves a lens under a name. @throws UserError, FormatError */
  async keep(name: string, lens: Lens, about: About): Promise<void> {
    const head = await headOf(lens, about);
    await this.write(name, pieces(lens, head));
  }

  protected opened(stored: StoredLens, path: string, places: ReadonlyMap<string, TensorPlace>): OpenLens {
    return {
      stored,
      translator(layer) {
        const matrix = places.get(`layer_${layer}`);
        const bias = places.get(`bias_${layer}`);
        if (matrix === undefined) return undefined;
        const [half, { residual }] = [matrix.dtype === "F16", stored];
        return { path, half, matrix: matrix.start, residual, ...(bias && { bias: bias.start }) };
      },
    };
  }

  /** Opens a lens that fits a model. @throws UserError if its width or blocks do not fit */
  async fitting(name: string, model: ModelSize): Promise<OpenLens> {
    const found = await this.open(name);
    const { n_embd: width, layers, model_layers: blocks } = found.stored;
    checkWidth(`The lens ${name}`, width, model);
    if (blocks !== null && blocks !== model.nLayer) {
      throw new UserError(
        `The lens ${name} is for a model with ${blocks} blocks; this one has ${model.nLayer}.`,
      );
    }
    checkBlock(`The lens ${name}`, Math.max(...layers), model);
    return found;
  }
}

/** One block's tensors as written: in 16 bits if that loses nothing, as for most published lenses. */
function written({ matrix, bias }: Translation, layer: number, hidden: number) {
  for (const numbers of [matrix, bias ?? new Float32Array()]) {
    if (!numbers.every(Number.isFinite)) {
      throw new UserError(`The lens's translation of block ${layer} contains numbers that are not finite.`);
    }
  }
  // An odd number of them would misalign what follows.
  const half = hidden % 2 === 0 ? narrowExactly(matrix) : null;
  const narrow = half?.dtype === "F16" ? half : { dtype: "F32" as const, data: matrix };
  return {
    ...(bias && { [`bias_${layer}`]: { dtype: "F32" as WrittenType, shape: [hidden], data: bias } }),
    [`layer_${layer}`]: { dtype: narrow.dtype as WrittenType, shape: [hidden, hidden], data: narrow.data },
  };
}

/**
 * The head of a lens's file. Every block is read once for it and again to be written, so that only one is in memory
 * at a time.
 */
async function headOf(lens: Lens, { source, fit }: About): Promise<Buffer> {
  const deepest = lens.layers.at(-1) as number;
  if (deepest > limits.layer_index) {
    throw new UserError(
      `The lens reads block ${deepest}; the largest supported index is ${limits.layer_index}.`,
    );
  }
  const hash = createHash("sha256");
  const tensors: Record<string, { dtype: WrittenType; shape: readonly number[] }> = {};
  for (const layer of lens.layers) {
    const parts = written(await lens.read(layer), layer, lens.hidden);
    for (const [name, { dtype, shape, data }] of Object.entries(parts)) {
      tensors[name] = { dtype, shape };
      hash.update(bytesOf(data));
    }
  }
  const said: Omit<StoredLens, "name" | "created" | "bytes"> = {
    sha256: hash.digest("hex"),
    layout: lens.layout,
    kind: lens.kind,
    n_embd: lens.hidden,
    model_layers: lens.modelLayers ?? null,
    layers: lens.layers,
    residual: lens.residual,
    trained_on: lens.model ?? null,
    texts: lens.texts ?? null,
    fit: fit ?? null,
    notes: lens.notes,
    source,
  };
  return planSafetensors(tensors, { tapline: "lens", lens: JSON.stringify(said) }).head;
}

async function* pieces(lens: Lens, head: Buffer): AsyncGenerator<Uint8Array> {
  yield head;
  for (const layer of lens.layers) {
    const parts = written(await lens.read(layer), layer, lens.hidden);
    for (const { data } of Object.values(parts)) yield bytesOf(data);
  }
}
