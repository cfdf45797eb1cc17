import { FormatError, quoted } from "./format-error.js";

/** A value in a checkpoint: numbers, strings, containers, and objects made by {@link PickleWorld}. */
export type Unpickled =
  | null
  | boolean
  | number
  | bigint
  | string
  | Unpickled[]
  | Map<Unpickled, Unpickled>
  | Global
  | object;

/** A class or function named in a pickle. Only known names are accepted, and no Python is run. */
export class Global {
  constructor(readonly name: string) {}
}

/** How a reader resolves the names and references of a pickle. */
export interface PickleWorld {
  /** Makes an object for a called name. @returns undefined for unknown names, which are refused */
  call(name: string, args: readonly Unpickled[]): Unpickled | undefined;
  /** Resolves a persistent id. @throws FormatError */
  load(id: Unpickled): Unpickled;
}

const mark = Symbol("mark");
type Stacked = Unpickled | typeof mark;

const mostItems = 1_000_000;

/**
 * Reads a pickle of protocol 2 without running anything. Supports exactly the opcodes in checkpoints of tensors,
 * numbers, strings, lists and dicts. (Format: Python's Lib/pickletools.py.)
 * @throws FormatError for other opcodes, unknown names, and truncated pickles
 */
export function readPickle(bytes: Uint8Array, world: PickleWorld): Unpickled {
  return new Unpickler(bytes, world).read();
}

class Unpickler {
  readonly #view: DataView;
  readonly #stack: Stacked[] = [];
  readonly #memo = new Map<number, Unpickled>();
  #at = 0;
  #made = 0;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly world: PickleWorld,
  ) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  read(): Unpickled {
    if (this.#byte() !== 0x80 || this.#byte() !== 2) throw refuse("it is not a pickle of protocol 2");
    for (;;) {
      if (++this.#made > mostItems) throw refuse(`it has more than ${mostItems} steps`);
      const code = this.#byte();
      if (code === 0x2e /* STOP */) return this.#pop();
      const [push, step] = [this.#pushed[code], this.#steps[code]];
      if (push !== undefined) this.#stack.push(push());
      else if (step !== undefined) step();
      else {
        const opcode = `0x${code.toString(16).padStart(2, "0")}`;
        throw refuse(`it has the opcode ${opcode}, which plain checkpoints do not need`);
      }
    }
  }

  /** Opcodes that push a value. */
  readonly #pushed: Readonly<Record<number, () => Stacked>> = {
    40: () => mark, // MARK
    78: () => null, // NONE
    136: () => true, // NEWTRUE
    137: () => false, // NEWFALSE
    75: () => this.#byte(), // BININT1
    77: () => this.#take(2).getUint16(0, true), // BININT2
    74: () => this.#take(4).getInt32(0, true), // BININT
    138: () => this.#long(), // LONG1
    71: () => this.#take(8).getFloat64(0, false), // BINFLOAT
    88: () => this.#text(this.#take(4).getUint32(0, true)), // BINUNICODE
    93: () => [], // EMPTY_LIST
    41: () => [], // EMPTY_TUPLE
    125: () => new Map(), // EMPTY_DICT
    133: () => this.#several(1), // TUPLE1
    134: () => this.#several(2), // TUPLE2
    135: () => this.#several(3), // TUPLE3
    116: () => this.#sinceMark(), // TUPLE
    99: () => new Global(`${this.#line()}.${this.#line()}`), // GLOBAL
    82: () => this.#reduce(), // REDUCE
    81: () => this.world.load(this.#pop()), // BINPERSID
    104: () => this.#remembered(this.#byte()), // BINGET
    106: () => this.#remembered(this.#take(4).getUint32(0, true)), // LONG_BINGET
  };

  /** Opcodes that change values on the stack or in the memo. */
  readonly #steps: Readonly<Record<number, () => void>> = {
    97: () => this.#append([this.#pop()]), // APPEND
    101: () => this.#append(this.#sinceMark()), // APPENDS
    115: () => this.#setItems(this.#several(2)), // SETITEM
    117: () => this.#setItems(this.#sinceMark()), // SETITEMS
    98: () => this.#build(), // BUILD
    113: () => this.#memo.set(this.#byte(), this.#top()), // BINPUT
    114: () => this.#memo.set(this.#take(4).getUint32(0, true), this.#top()), // LONG_BINPUT
  };

  /** Drops the state of an OrderedDict, which carries no information. */
  #build(): void {
    this.#pop();
    if (!(this.#top() instanceof Map)) throw refuse("it sets the state of an object that is not a dict");
  }

  #reduce(): Unpickled {
    const args = this.#pop();
    const called = this.#pop();
    if (!(called instanceof Global) || !Array.isArray(args))
      throw refuse("it calls something that is not a name");
    const made = this.world.call(called.name, args);
    if (made === undefined) {
      throw refuse(
        `it names ${quoted(called.name)}; only tensors, numbers, strings, lists and dicts are supported`,
      );
    }
    return made;
  }

  #append(items: Unpickled[]): void {
    const list = this.#top();
    if (!Array.isArray(list)) throw refuse("it appends to something that is not a list");
    for (const item of items) list.push(item);
  }

  #setItems(items: Unpickled[]): void {
    const dict = this.#top();
    if (!(dict instanceof Map) || items.length % 2 !== 0)
      throw refuse("it sets items of something that is not a dict");
    for (let i = 0; i < items.length; i += 2) dict.set(items[i] as Unpickled, items[i + 1] as Unpickled);
  }

  #several(count: number): Unpickled[] {
    const items = Array.from({ length: count }, () => this.#pop());
    return items.reverse();
  }

  #sinceMark(): Unpickled[] {
    const from = this.#stack.lastIndexOf(mark);
    if (from === -1) throw refuse("it closes a group that was never opened");
    const items = this.#stack.splice(from).slice(1);
    return items as Unpickled[];
  }

  #pop(): Unpickled {
    const value = this.#stack.pop();
    if (value === undefined || value === mark) throw refuse("it pops more values than it pushed");
    return value as Unpickled;
  }

  #top(): Unpickled {
    const value = this.#stack.at(-1);
    if (value === undefined || value === mark) throw refuse("it reads an empty stack");
    return value as Unpickled;
  }

  #remembered(index: number): Unpickled {
    const value = this.#memo.get(index);
    if (value === undefined) throw refuse(`it reads memo ${index}, which is empty`);
    return value;
  }

  #byte(): number {
    return this.#take(1).getUint8(0);
  }

  #take(count: number): DataView {
    if (this.#at + count > this.bytes.length) throw refuse("it is truncated");
    const part = new DataView(this.#view.buffer, this.#view.byteOffset + this.#at, count);
    this.#at += count;
    return part;
  }

  #text(length: number): string {
    const { buffer, byteOffset } = this.#take(length);
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, byteOffset, length));
    } catch {
      throw refuse("it has a string that is not UTF-8");
    }
  }

  #line(): string {
    const end = this.bytes.indexOf(0x0a, this.#at);
    if (end === -1 || end - this.#at > 256) throw refuse("it has an unterminated name");
    const text = this.#text(end - this.#at);
    this.#at = end + 1;
    return text;
  }

  #long(): number | bigint {
    const length = this.#byte();
    const part = this.#take(length);
    let value = 0n;
    for (let i = length - 1; i >= 0; i--) value = (value << 8n) | BigInt(part.getUint8(i));
    if (length > 0 && part.getUint8(length - 1) >= 0x80) value -= 1n << BigInt(8 * length);
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : value;
  }
}

function refuse(why: string): FormatError {
  return new FormatError(`The checkpoint cannot be read: ${why}.`);
}
