import { strided } from "./float.js";
import { FormatError, quoted } from "./format-error.js";
import { type PickleWorld, readPickle, type Unpickled } from "./pickle.js";

/** The place of a tensor in a PyTorch checkpoint: a storage, an offset and strides. */
export interface TorchTensor {
  /** The storage's file in the archive, below its root folder, e.g. `data/0`. */
  file: string;
  dtype: TorchType;
  /** Number of elements in the storage. */
  storage: number;
  /** In elements. */
  offset: number;
  shape: readonly number[];
  /** In elements. */
  stride: readonly number[];
}

const storages = {
  DoubleStorage: "F64",
  FloatStorage: "F32",
  HalfStorage: "F16",
  BFloat16Storage: "BF16",
  LongStorage: "I64",
  IntStorage: "I32",
  ShortStorage: "I16",
  CharStorage: "I8",
  ByteStorage: "U8",
  BoolStorage: "U8",
} as const;

export type TorchType = (typeof storages)[keyof typeof storages];

/** Bytes of an element. */
export const torchWidths: Readonly<Record<TorchType, number>> = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U8: 1,
};

class Storage {
  constructor(
    readonly file: string,
    readonly dtype: TorchType,
    readonly count: number,
  ) {}
}

class Placed implements TorchTensor {
  readonly file: string;
  readonly dtype: TorchType;
  readonly storage: number;
  constructor(
    storage: Storage,
    readonly offset: number,
    readonly shape: readonly number[],
    readonly stride: readonly number[],
  ) {
    this.file = storage.file;
    this.dtype = storage.dtype;
    this.storage = storage.count;
  }
}

const deepest = 4;
/** A dict may contain itself, which would yield endless names. */
const mostNamed = 100_000;
const longestName = 1000;

/**
 * The tensors, numbers and strings of a checkpoint by name, from its `data.pkl`. Names of nested dicts are joined by
 * dots; a checkpoint that is a single tensor is named `tensor`. No code of the pickle is run. (Format: torch.save
 * since PyTorch 1.6; torch/serialization.py, torch/_utils.py.)
 * @throws FormatError
 */
export function readTorchPickle(pickle: Uint8Array): {
  tensors: Map<string, TorchTensor>;
  numbers: Map<string, number>;
  texts: Map<string, string>;
} {
  const tensors = new Map<string, TorchTensor>();
  const numbers = new Map<string, number>();
  const texts = new Map<string, string>();
  let named = 0;
  const visit = (value: Unpickled, name: string, depth: number): void => {
    if (value instanceof Placed) tensors.set(name === "" ? "tensor" : name, value);
    else if (typeof value === "number") numbers.set(name, value);
    else if (typeof value === "string") texts.set(name, value);
    else if (value instanceof Map && depth < deepest) {
      for (const [key, inner] of value) {
        if (typeof key !== "string" && typeof key !== "number") continue;
        const inside = name === "" ? String(key) : `${name}.${key}`;
        if (++named > mostNamed || inside.length > longestName) {
          throw new FormatError(
            `The checkpoint cannot be read: it has more than ${mostNamed} names, or a name of more than ${longestName} characters.`,
          );
        }
        visit(inner, inside, depth + 1);
      }
    }
  };
  visit(readPickle(pickle, world), "", 0);
  return { tensors, numbers, texts };
}

const world: PickleWorld = {
  call(name, args) {
    switch (name) {
      case "collections.OrderedDict":
        return args.length === 0 ? new Map() : undefined;
      case "torch._utils._rebuild_tensor_v2":
        return tensorOf(args);
      case "torch._utils._rebuild_parameter":
        return args[0] instanceof Placed ? args[0] : undefined;
      default:
        return undefined;
    }
  },
  load(id) {
    const [kind, type, key, , count] = Array.isArray(id) ? id : [];
    const name = (type as { name?: unknown } | null | undefined)?.name;
    const dtype = typeof name === "string" ? storages[name.replace(/^torch\./, "") as never] : undefined;
    if (kind !== "storage" || typeof key !== "string" || !/^[\w.-]{1,64}$/.test(key) || !isCount(count)) {
      throw new FormatError("The checkpoint cannot be read: it has an invalid reference to a storage.");
    }
    if (dtype === undefined) {
      throw new FormatError(
        `The checkpoint cannot be read: its storage type ${quoted(String(name))} is not supported.`,
      );
    }
    return new Storage(`data/${key}`, dtype, count);
  },
};

function tensorOf(args: readonly Unpickled[]): Placed {
  const [storage, offset, shape, stride] = args;
  if (!(storage instanceof Storage && isCount(offset) && areCounts(shape) && areCounts(stride))) {
    throw new FormatError("The checkpoint cannot be read: a tensor lacks a storage, an offset or a shape.");
  }
  // The last element reached by its shape and strides.
  const last = shape.reduce((sum, length, i) => sum + (length - 1) * (stride[i] ?? 0), offset);
  const empty = shape.some((length) => length === 0);
  const count = shape.reduce((product, length) => product * length, 1);
  // Strides that visit a number twice would allow any size.
  if (shape.length !== stride.length || count > storage.count || (!empty && last >= storage.count)) {
    throw new FormatError(
      `The checkpoint cannot be read: a tensor of the shape [${shape.slice(0, 8).join(", ")}] exceeds its storage of ${storage.count} numbers.`,
    );
  }
  return new Placed(storage, offset, shape, stride);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function areCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.length <= 8 && value.every(isCount);
}

/** A tensor's numbers in C order, from those that its storage holds from the tensor's offset on. */
export function gather(numbers: Float32Array, { shape, stride }: TorchTensor): Float32Array {
  const count = shape.reduce((product, length) => product * length, 1);
  const plain = shape.map((_, i) => shape.slice(i + 1).reduce((product, length) => product * length, 1));
  if (shape.every((length, i) => length === 1 || stride[i] === plain[i])) return numbers.subarray(0, count);
  return strided(numbers, new Float32Array(count), shape, stride);
}
