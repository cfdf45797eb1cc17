import { createHash } from "node:crypto";
import type { StoredDictionary } from "../contracts/library.js";
import { limits } from "../contracts/limits.js";
import type { BlockPoint, ChangedPoint } from "../contracts/names.js";
import { UserError } from "../contracts/user-error.js";
import { type Dictionary, dictionaryFiles, readDictionary } from "../formats/dictionaries/index.js";
import { bytesOf, floatsOf, narrowExactly } from "../formats/float.js";
import { planSafetensors, type TensorPlace, type WrittenType } from "../formats/safetensors.js";
import type { DictionaryPlaces, FeaturePlace, WeightType } from "../native/index.js";
import { checkBlock, checkWidth, type ModelSize, pointOf } from "./identity.js";
import { asUserError, type FromHub, filesAt } from "./layout-files.js";
import { LargeShelf } from "./shelf.js";
import { readBytes } from "./tensor-files.js";

const pieceBytes = 64 * 1024 ** 2;

/** What the caller says where a file does not. */
export interface DictionaryClaims {
  /** Block that the dictionary reads at. */
  layer?: number | undefined;
  /** The point of that block; its output unless told otherwise. */
  point?: BlockPoint | undefined;
  /** Features that stay active, for layouts whose files do not say. */
  k?: number | undefined;
}

/** A stored dictionary as native code reads it. */
export interface OpenDictionary {
  stored: StoredDictionary;
  places: DictionaryPlaces;
}

/**
 * Sparse dictionaries by name, each one private .safetensors file in the one form of {@link Dictionary}, there whole
 * or not at all. Weights stay in the file; only its head is read here.
 */
export class Dictionaries extends LargeShelf<StoredDictionary, OpenDictionary> {
  constructor(home: string) {
    super(home, "dictionary", "dictionaries");
  }

  /**
   * Reads a published dictionary and keeps it under a name, in place of one that had it.
   * @param place its folder, or its file of weights, on this machine or on the hub
   * @param fromHub looks where there is nothing of that name here
   * @throws UserError
   */
  async add(
    name: string,
    place: string,
    claims: DictionaryClaims = {},
    fromHub?: FromHub,
  ): Promise<StoredDictionary> {
    const { dictionary, source, site } = await readFrom(place, claims.k, fromHub).catch(asUserError);
    const { layer: own } = dictionary.origin;
    const said = dictionary.origin.point ?? site;
    if (said !== undefined && claims.point !== undefined && said !== claims.point) {
      throw new UserError(`Its publisher says that it reads ${said}, not ${claims.point}.`);
    }
    const point = pointOf("The dictionary", said ?? claims.point);
    if (own !== undefined && claims.layer !== undefined && own !== claims.layer) {
      throw new UserError(`The file says that it reads block ${own}, not ${claims.layer}.`);
    }
    const layer = own ?? claims.layer;
    if (layer === undefined) {
      throw new UserError(
        "The file does not say which block it reads: name it (--layer, or `layer`); its publisher's page does.",
      );
    }
    if (!Number.isInteger(layer) || layer < 0 || layer > limits.layer_index) {
      throw new UserError(
        `The file says that it reads block ${layer}; blocks are counted from 0, and ${limits.layer_index} is the last that is known.`,
      );
    }
    await this.write(name, pieces(dictionary, { layer, point, source }));
    return this.get(name);
  }

  protected opened(
    said: StoredDictionary,
    path: string,
    places: ReadonlyMap<string, TensorPlace>,
  ): OpenDictionary {
    const { bytes, created, ...about } = said;
    const stored = { ...about, point: pointOf(`The dictionary ${said.name}`, said.point), bytes, created };
    const at = (tensor: string) => places.get(tensor)?.start;
    const typeOf = (tensor: string) => places.get(tensor)?.dtype.toLowerCase() as WeightType;
    const optional = { threshold: at("threshold"), gain: at("gain"), magnitudeBias: at("b_mag") };
    return {
      stored,
      places: {
        path,
        activation: said.activation,
        rowScaling: said.row_scaling,
        subtractBias: said.subtracts_bias,
        hidden: said.n_embd,
        features: said.features,
        k: said.k ?? 0,
        encoderType: typeOf("W_enc"),
        decoderType: typeOf("W_dec"),
        encoder: at("W_enc") as number,
        encoderBias: at("b_enc") as number,
        decoder: at("W_dec") as number,
        decoderBias: at("b_dec") as number,
        ...Object.fromEntries(Object.entries(optional).filter(([, place]) => place !== undefined)),
      },
    };
  }

  /**
   * A dictionary that fits a model; whether the model has the point that it reads, only its graph says.
   * @throws UserError where its width or its layer does not
   */
  async fitting(name: string, model: ModelSize): Promise<OpenDictionary> {
    const found = await this.open(name);
    checkWidth(`The dictionary ${name}`, found.stored.n_embd, model);
    checkBlock(`The dictionary ${name}`, found.stored.layer, model);
    return found;
  }

  /**
   * The decoder's row of a feature, [hidden]: what one unit of its activation adds to what the dictionary reads; with the
   * hash of the whole, and where native code reads the feature.
   * @param point what is changed
   * @throws UserError where the dictionary is another layer's, point's or model's, or has no such feature
   */
  async direction(
    name: string,
    feature: number,
    layer: number,
    model: ModelSize,
    point: ChangedPoint = "block_out",
  ): Promise<{ vector: Float32Array; sha256: string; feature: FeaturePlace }> {
    const dictionary = await this.fitting(name, model);
    const { stored, places } = dictionary;
    if (stored.layer !== layer) {
      throw new UserError(
        `The dictionary ${name} reads block ${stored.layer}, not ${layer}: its features are directions of its own ` +
          "block.",
      );
    }
    if (stored.point !== point) {
      throw new UserError(
        `The dictionary ${name} reads ${stored.point} of block ${layer}, not ${point}: its features are directions of ` +
          "what it reads.",
      );
    }
    const vector = await decoderRows(dictionary, feature, feature + 1);
    return { vector, sha256: stored.sha256, feature: { dictionary: places, index: feature } };
  }
}

/**
 * Rows of a dictionary's decoder, [end - first, hidden]: the directions of features.
 * @throws UserError where it has no such feature
 */
export async function decoderRows(
  { stored, places }: OpenDictionary,
  first: number,
  end: number,
): Promise<Float32Array> {
  if (end > stored.features) {
    throw new UserError(
      `The dictionary ${stored.name} has ${stored.features} features, 0 to ${stored.features - 1}; got ${end - 1}.`,
    );
  }
  const { decoder, decoderType = "f32", path } = places;
  const width = stored.n_embd * (decoderType === "f32" ? 4 : 2);
  const bytes = await readBytes(path, decoder + first * width, decoder + end * width);
  return floatsOf(decoderType.toUpperCase(), bytes) as Float32Array;
}

async function readFrom(
  place: string,
  k: number | undefined,
  fromHub: FromHub | undefined,
): Promise<{ dictionary: Dictionary; source: string | null; site: BlockPoint | undefined }> {
  const { files, source } = await filesAt(place, dictionaryFiles, fromHub, siteOf);
  const dictionary = await readDictionary(files, k);
  return { dictionary, source, site: source === null ? undefined : siteOf(place) };
}

/** Gemma Scope's first files do not say what they read; their repositories' names do. @throws UserError for what is not read */
function siteOf(place: string): BlockPoint | undefined {
  const [repository, site] =
    /^google\/gemma-scope-(?:[^/]*-)?(att|mlp|transcoders)(?=$|\/|-)[^/]*/.exec(place) ?? [];
  if (site === undefined || site === "mlp") return site && "ffn_out";
  throw new UserError(
    `${repository} holds dictionaries of ${site}, as its name says; read are those of a block's output (-res) and of its ` +
      "MLP's (-mlp).",
  );
}

/** A dictionary as its file holds it, in pieces. */
function* pieces(
  dictionary: Dictionary,
  place: { layer: number; point: BlockPoint; source: string | null },
): Generator<Uint8Array> {
  const { hidden, features } = dictionary;
  const one = (data: Float32Array) => ({ dtype: "F32" as WrittenType, shape: [data.length], data });
  // Half as large, and half as much to read, where that loses nothing: published in 16 bits, they are kept so.
  const matrix = (data: Float32Array) => ({
    ...(narrowExactly(data) ?? { dtype: "F32" as const, data }),
    shape: [features, hidden],
  });
  // Numbers of 32 bits first: those of 16 may be odd in number, and what lies behind them at no multiple of four.
  const matrices = [
    ["W_enc", matrix(dictionary.encoder)],
    ["W_dec", matrix(dictionary.decoder)],
  ] as const;
  const tensors = {
    ...Object.fromEntries(matrices.filter(([, { dtype }]) => dtype === "F32")),
    b_enc: one(dictionary.encoderBias),
    b_dec: one(dictionary.decoderBias),
    ...(dictionary.threshold && { threshold: one(dictionary.threshold) }),
    ...(dictionary.gain && { gain: one(dictionary.gain) }),
    ...(dictionary.magnitudeBias && { b_mag: one(dictionary.magnitudeBias) }),
    ...Object.fromEntries(matrices.filter(([, { dtype }]) => dtype !== "F32")),
  };
  const data = Object.values(tensors).flatMap(({ data }) => slices(data));
  const hash = createHash("sha256");
  for (const piece of data) hash.update(piece);
  const { origin } = dictionary;
  const said: Omit<StoredDictionary, "name" | "created" | "bytes"> = {
    sha256: hash.digest("hex"),
    layout: dictionary.layout,
    activation: dictionary.activation,
    features,
    n_embd: hidden,
    k: dictionary.k > 0 ? dictionary.k : null,
    row_scaling: dictionary.rowScaling,
    subtracts_bias: dictionary.subtractBias,
    trained_on: origin.model ?? null,
    hook: origin.hook ?? null,
    prepend_bos: origin.prependBos ?? null,
    notes: dictionary.notes,
    ...place,
  };
  yield planSafetensors(tensors, { tapline: "dictionary", dictionary: JSON.stringify(said) }).head;
  yield* data;
}

function slices(numbers: Float32Array | Uint16Array): Uint8Array[] {
  const bytes = bytesOf(numbers);
  const count = Math.ceil(bytes.length / pieceBytes);
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * pieceBytes, (i + 1) * pieceBytes));
}
