import { createHash } from "node:crypto";
import type { StoredDictionary } from "../contracts/library.js";
import { limits } from "../contracts/limits.js";
import type { BlockPoint, ChangedPoint } from "../contracts/names.js";
import { UserError } from "../contracts/user-error.js";
import {
  type Dictionary,
  dictionaryFiles,
  type RowStream,
  readDictionary,
  transcoderBetween,
} from "../formats/dictionaries/index.js";
import { bytesOf, floatsOf, narrowAs, narrowExactly, narrowTypes } from "../formats/float.js";
import { planSafetensors, type TensorPlace, type WrittenType } from "../formats/safetensors.js";
import type { DictionaryPlaces, FeaturePlace, WeightType } from "../native/index.js";
import { checkBlock, checkWidth, type ModelSize, pointOf } from "./identity.js";
import { asUserError, type FromHub, filesAt } from "./layout-files.js";
import { LargeShelf } from "./shelf.js";
import { readBytes } from "./tensor-files.js";

const pieceBytes = 64 * 1024 ** 2;

/** Properties that the caller supplies if the file does not record them. */
export interface DictionaryClaims {
  /** Block that the dictionary reads. */
  layer?: number | undefined;
  /** The point of that block; by default its output. */
  point?: BlockPoint | undefined;
  /** Features that stay active, for layouts that do not record it. */
  k?: number | undefined;
}

/** A saved dictionary, located for native code. */
export interface OpenDictionary {
  stored: StoredDictionary;
  places: DictionaryPlaces;
}

/**
 * Saved sparse dictionaries by name, each a private .safetensors file in the form of {@link Dictionary}, written
 * atomically. Only the file's head is read here, not its weights.
 */
export class Dictionaries extends LargeShelf<StoredDictionary, OpenDictionary> {
  constructor(home: string) {
    super(home, "dictionary", "dictionaries");
  }

  /**
   * Reads a published dictionary and saves it under a name, replacing any existing one.
   * @param place its folder or weights file, local or on the hub
   * @param fromHub called if there is no such local file
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
      throw new UserError(`According to its publisher it reads ${said}, not ${claims.point}.`);
    }
    const point = pointOf("The dictionary", said ?? claims.point);
    if (dictionary.transcoder && pointOf("The transcoder", dictionary.origin.writes) !== "ffn_out") {
      throw new UserError(`The transcoder predicts ${dictionary.origin.writes}; only ffn_out is supported.`);
    }
    if (own !== undefined && claims.layer !== undefined && own !== claims.layer) {
      throw new UserError(`According to the file it reads block ${own}, not ${claims.layer}.`);
    }
    const layer = own ?? claims.layer;
    if (layer === undefined) {
      throw new UserError(
        "The file does not record its layer; pass --layer or `layer` (see the publisher's page).",
      );
    }
    if (!Number.isInteger(layer) || layer < 0 || layer > limits.layer_index) {
      throw new UserError(
        `According to the file it reads block ${layer}; it must be from 0 to ${limits.layer_index}.`,
      );
    }
    await this.write(name, pieces(dictionary, { layer, point, source })).catch(asUserError);
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
    const optional = {
      ...{ threshold: at("threshold"), gain: at("gain"), magnitudeBias: at("b_mag"), skip: at("W_skip") },
      transcoder: stored.writes === undefined ? undefined : true,
      blocks: stored.writes_blocks,
    };
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
        ...Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined)),
      },
    };
  }

  /**
   * Opens a dictionary that fits a model. Whether the model has the point it reads is known only from its graph.
   * @throws UserError if its width or layer does not fit, or if its features write into several blocks
   */
  async fitting(name: string, model: ModelSize): Promise<OpenDictionary> {
    const found = await this.#anyFitting(name, model);
    if (found.stored.writes_blocks === undefined) return found;
    throw new UserError(
      `The dictionary ${name} is part of a cross-layer transcoder, whose features write into the MLP outputs of several blocks; only graph can use it.`,
    );
  }

  async #anyFitting(name: string, model: ModelSize): Promise<OpenDictionary> {
    const found = await this.open(name);
    checkWidth(`The dictionary ${name}`, found.stored.n_embd, model);
    const { layer, writes_blocks: blocks } = found.stored;
    checkBlock(`The dictionary ${name}`, layer, model);
    if (blocks !== undefined && layer + blocks !== model.nLayer) {
      throw new UserError(
        `The dictionary ${name} writes into blocks ${layer} to ${layer + blocks - 1}; the model's last block is ${model.nLayer - 1}.`,
      );
    }
    return found;
  }

  /**
   * Opens a set of transcoders that fits a model, by block: the one of that name, or all named NAME-0, NAME-1, ….
   * @throws UserError if there are none, or one does not fit
   */
  async transcoders(name: string, model: ModelSize): Promise<OpenDictionary[]> {
    const all = await this.names();
    const members = all.includes(name) ? [name] : all.filter((one) => isMember(name, one));
    // Without members, the error lists what there is.
    const found: OpenDictionary[] = [];
    // One after another, so that the error is always that of the first one.
    for (const one of members.length > 0 ? members.sort() : [name])
      found.push(await this.#anyFitting(one, model));
    const blocks = new Map<number, string>();
    for (const { stored } of found) {
      if (writtenPoint(stored) !== "ffn_out" || stored.writes === undefined) {
        throw new UserError(`${stored.name} is not a transcoder of an MLP: it reconstructs ${stored.point}.`);
      }
      const other = blocks.get(stored.layer);
      if (other !== undefined) {
        throw new UserError(`${other} and ${stored.name} are both of block ${stored.layer}.`);
      }
      blocks.set(stored.layer, stored.name);
    }
    return found.sort((a, b) => a.stored.layer - b.stored.layer);
  }

  /**
   * The decoder vector of a feature, [hidden]: what one unit of its activation adds to the reconstruction; with the
   * dictionary's hash and the feature's place for native code.
   * @param point the edited point
   * @throws UserError if the dictionary is for another layer, point or model, or has no such feature
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
        `The dictionary ${name} reads block ${stored.layer}, not ${layer}; its features are directions in that block only.`,
      );
    }
    if (writtenPoint(stored) !== point) {
      const does = stored.writes === undefined ? "reads" : "is a transcoder that writes";
      throw new UserError(
        `The dictionary ${name} ${does} ${writtenPoint(stored)} of block ${layer}, not ${point}; its features are directions at that point only.`,
      );
    }
    const vector = await decoderRows(dictionary, feature, feature + 1);
    const read = stored.writes === undefined ? {} : { point: stored.point };
    return { vector, sha256: stored.sha256, feature: { dictionary: places, index: feature, ...read } };
  }
}

/** Whether a name is that of one of a set. */
function isMember(set: string, name: string): boolean {
  return name.startsWith(`${set}-`) && /^\d{1,3}$/.test(name.slice(set.length + 1));
}

/** The point that a dictionary reconstructs or predicts, where its decoder rows are directions. */
export function writtenPoint({ point, writes }: Pick<StoredDictionary, "point" | "writes">): BlockPoint {
  return writes ?? point;
}

/**
 * Feature directions from a dictionary's decoder, [end - first, hidden]; of a cross-layer transcoder, [end - first, blocks,
 * hidden].
 * @throws UserError if it has no such feature
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
  const width = (stored.writes_blocks ?? 1) * stored.n_embd * (decoderType === "f32" ? 4 : 2);
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
  const site = source === null ? undefined : siteOf(place);
  if (site !== "transcoder") return { dictionary, source, site };
  const [, layer] = /\/layer_(\d{1,3})\//.exec(place) ?? [];
  const block = layer === undefined ? "" : `blocks.${layer}.`;
  const { origin, ...form } = transcoderBetween(`${block}ln2.hook_normalized`, `${block}hook_mlp_out`);
  return {
    dictionary: { ...dictionary, ...form, origin: { ...dictionary.origin, ...origin } },
    ...{ source, site: undefined },
  };
}

/**
 * What Gemma Scope's first files read, by their repositories' names: block outputs, MLP outputs, or, for
 * transcoders, the MLP's normalised input before the norm's weight.
 * @throws UserError if it is not supported
 */
function siteOf(place: string): "ffn_out" | "transcoder" | undefined {
  const [repository, site] =
    /^google\/gemma-scope-(?:[^/]*-)?(att|mlp|transcoders)(?=$|\/|-)[^/]*/.exec(place) ?? [];
  if (site === undefined) return undefined;
  if (site !== "att") return site === "mlp" ? "ffn_out" : "transcoder";
  throw new UserError(
    `${repository} has dictionaries of ${site}, judging by its name; those of block outputs (-res), MLP outputs (-mlp) and transcoders are supported.`,
  );
}

/** A tensor of a dictionary's file; its bytes can be read several times. */
interface FileTensor {
  dtype: WrittenType;
  shape: readonly number[];
  bytes(): Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

/** The contents of a dictionary's file, in pieces. */
async function* pieces(
  dictionary: Dictionary,
  place: { layer: number; point: BlockPoint; source: string | null },
): AsyncGenerator<Uint8Array> {
  const { hidden, features, blocks } = dictionary;
  const one = (data: Float32Array): FileTensor => ({
    ...{ dtype: "F32", shape: [data.length] },
    bytes: () => slices(data),
  });
  // 32-bit numbers first: an odd number of 16-bit ones would misalign what follows.
  const matrices = [
    ["W_enc", await matrix(dictionary.encoder, features, hidden)],
    ["W_dec", await matrix(dictionary.decoder, features, ...(blocks === undefined ? [] : [blocks]), hidden)],
  ] as const;
  const { skip } = dictionary;
  const tensors: Record<string, FileTensor> = {
    ...Object.fromEntries(matrices.filter(([, { dtype }]) => dtype === "F32")),
    b_enc: one(dictionary.encoderBias),
    b_dec: one(dictionary.decoderBias),
    ...(dictionary.threshold && { threshold: one(dictionary.threshold) }),
    ...(skip && { W_skip: { ...one(skip), shape: [hidden, hidden] } }),
    ...(dictionary.gain && { gain: one(dictionary.gain) }),
    ...(dictionary.magnitudeBias && { b_mag: one(dictionary.magnitudeBias) }),
    ...Object.fromEntries(matrices.filter(([, { dtype }]) => dtype !== "F32")),
  };
  // The head has the hash, so streamed matrices are read twice.
  const hash = createHash("sha256");
  for (const { bytes } of Object.values(tensors)) for await (const piece of bytes()) hash.update(piece);
  const { origin } = dictionary;
  const said: Omit<StoredDictionary, "name" | "created" | "bytes"> = {
    sha256: hash.digest("hex"),
    layout: dictionary.layout,
    activation: dictionary.activation,
    features,
    n_embd: hidden,
    ...(dictionary.transcoder && {
      writes: pointOf("The transcoder", origin.writes),
      skip: dictionary.skip !== undefined,
      ...(blocks !== undefined && { writes_blocks: blocks }),
      ...(origin.hookOut !== undefined && { hook_out: origin.hookOut }),
    }),
    k: dictionary.k > 0 ? dictionary.k : null,
    row_scaling: dictionary.rowScaling,
    subtracts_bias: dictionary.subtractBias,
    trained_on: origin.model ?? null,
    hook: origin.hook ?? null,
    prepend_bos: origin.prependBos ?? null,
    ...(origin.zeroPositions !== undefined && { zero_positions: origin.zeroPositions }),
    notes: dictionary.notes,
    ...place,
  };
  yield planSafetensors(tensors, { tapline: "dictionary", dictionary: JSON.stringify(said) }).head;
  for (const { bytes } of Object.values(tensors)) yield* bytes();
}

/** A matrix in 16 bits if these represent all of its numbers exactly: half the size, without loss. */
async function matrix(data: Float32Array | RowStream, ...shape: number[]): Promise<FileTensor> {
  if (data instanceof Float32Array) {
    const narrow = narrowExactly(data);
    return { dtype: narrow?.dtype ?? "F32", shape, bytes: () => slices(narrow?.data ?? data) };
  }
  let types: readonly (typeof narrowTypes)[number][] = narrowTypes;
  for await (const piece of data.pieces()) {
    types = types.filter((type) => narrowAs(piece, type) !== null);
    if (types.length === 0) break;
  }
  const [dtype] = types;
  return {
    ...{ dtype: dtype ?? "F32", shape },
    async *bytes() {
      for await (const piece of data.pieces())
        yield bytesOf(dtype === undefined ? piece : (narrowAs(piece, dtype) as Uint16Array));
    },
  };
}

function slices(numbers: Float32Array | Uint16Array): Uint8Array[] {
  const bytes = bytesOf(numbers);
  const count = Math.ceil(bytes.length / pieceBytes);
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * pieceBytes, (i + 1) * pieceBytes));
}
