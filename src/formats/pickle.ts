import { FormatError, told } from "./format-error.js";

/** What a file of a checkpoint holds: numbers, texts, containers, and what `build` made of the classes that it knows. */
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

/** A class or function that a pickle names. Only what its reader knows is ever called, and none of it is Python. */
export class Global {
  constructor(readonly name: string) {}
}

/** What a reader makes of the names and references of a pickle. */
export interface PickleWorld {
  /** The names that may be called. @returns undefined for all others, which are refused by name */
  call(name: string, args: readonly Unpickled[]): Unpickled | undefined;
  /** What stands behind a persistent id. @throws FormatError */
  load(id: Unpickled): Unpickled;
}

const mark = Symbol("mark");
type Stacked = Unpickled | typeof mark;

const mostItems = 1_000_000;

/**
 * Reads a pickle of protocol 2 without running anything: exactly the opcodes that checkpoints of tensors, numbers,
 * texts, lists and dicts have. (Format: Python's Lib/pickletools.py.)
 * @throws FormatError for another opcode, another name, a pickle that is cut or has an end of its own
 */
export function readPickle(bytes: Uint8Array, world: PickleWorld): Unpickled {
  return new Unpickler(bytes, world).read();
}

class Unpickler {
  readonly #view: DataView;
  readonly #bytes: Uint8Array;
  readonly #world: PickleWorld;
  readonly #stack: Stacked[] = [];
  readonly #memo = new Map<number, Unpickled>();
  #at = 0;
  #made = 0;

  constructor(bytes: Uint8Array, world: PickleWorld) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#world = world;
  }

  read(): Unpickled {
    if (this.#byte() !== 0x80 || this.#byte() !== 2) throw refuse("it is no pickle of protocol 2");
    for (;;) {
      if (++this.#made > mostItems) throw refuse(`it has more than ${mostItems} steps`);
      const code = this.#byte();
      if (code === 0x2e /* STOP */) return this.#pop();
      this.#step(code);
    }
  }

  #step(code: number): void {
    const pushed = this.#value(code);
    if (pushed !== undefined) {
      this.#stack.push(pushed);
      return;
    }
    switch (code) {
      case 0x61: // APPEND
        this.#append([this.#pop()]);
        break;
      case 0x65: // APPENDS
        this.#append(this.#sinceMark());
        break;
      case 0x73: // SETITEM
        this.#setItems(this.#several(2));
        break;
      case 0x75: // SETITEMS
        this.#setItems(this.#sinceMark());
        break;
      case 0x62: // BUILD: the state of an OrderedDict, which says nothing
        this.#pop();
        if (!(this.#top() instanceof Map)) throw refuse("it sets the state of something that is no dict");
        break;
      case 0x71: // BINPUT
        this.#memo.set(this.#byte(), this.#top());
        break;
      case 0x72: // LONG_BINPUT
        this.#memo.set(this.#take(4).getUint32(0, true), this.#top());
        break;
      default:
        throw refuse(
          `it has the opcode 0x${code.toString(16).padStart(2, "0")}, which no plain checkpoint needs`,
        );
    }
  }

  /** What an opcode puts on the stack; undefined for those that put nothing there. */
  #value(code: number): Stacked | undefined {
    switch (code) {
      case 0x28: // MARK
        return mark;
      case 0x4e: // NONE
        return null;
      case 0x88: // NEWTRUE
        return true;
      case 0x89: // NEWFALSE
        return false;
      case 0x4b: // BININT1
        return this.#byte();
      case 0x4d: // BININT2
        return this.#take(2).getUint16(0, true);
      case 0x4a: // BININT
        return this.#take(4).getInt32(0, true);
      case 0x8a: // LONG1
        return this.#long();
      case 0x47: // BINFLOAT
        return this.#take(8).getFloat64(0, false);
      case 0x58: // BINUNICODE
        return this.#text(this.#take(4).getUint32(0, true));
      case 0x5d: // EMPTY_LIST
      case 0x29: // EMPTY_TUPLE
        return [];
      case 0x7d: // EMPTY_DICT
        return new Map();
      case 0x85: // TUPLE1
      case 0x86: // TUPLE2
      case 0x87: // TUPLE3
        return this.#several(code - 0x84);
      case 0x74: // TUPLE
        return this.#sinceMark();
      case 0x63: // GLOBAL
        return new Global(`${this.#line()}.${this.#line()}`);
      case 0x52: // REDUCE
        return this.#reduce();
      case 0x51: // BINPERSID
        return this.#world.load(this.#pop());
      case 0x68: // BINGET
        return this.#remembered(this.#byte());
      case 0x6a: // LONG_BINGET
        return this.#remembered(this.#take(4).getUint32(0, true));
      default:
        return undefined;
    }
  }

  #reduce(): Unpickled {
    const args = this.#pop();
    const called = this.#pop();
    if (!(called instanceof Global) || !Array.isArray(args)) throw refuse("it calls what is no name");
    const made = this.#world.call(called.name, args);
    if (made === undefined) {
      throw refuse(`it names ${told(called.name)}; only tensors, numbers, texts, lists and dicts are read`);
    }
    return made;
  }

  #append(items: Unpickled[]): void {
    const list = this.#top();
    if (!Array.isArray(list)) throw refuse("it appends to what is no list");
    for (const item of items) list.push(item);
  }

  #setItems(items: Unpickled[]): void {
    const dict = this.#top();
    if (!(dict instanceof Map) || items.length % 2 !== 0) throw refuse("it sets items of what is no dict");
    for (let i = 0; i < items.length; i += 2) dict.set(items[i] as Unpickled, items[i + 1] as Unpickled);
  }

  #several(count: number): Unpickled[] {
    const items = Array.from({ length: count }, () => this.#pop());
    return items.reverse();
  }

  #sinceMark(): Unpickled[] {
    const from = this.#stack.lastIndexOf(mark);
    if (from === -1) throw refuse("it closes what it did not open");
    const items = this.#stack.splice(from).slice(1);
    return items as Unpickled[];
  }

  #pop(): Unpickled {
    const value = this.#stack.pop();
    if (value === undefined || value === mark) throw refuse("it takes more than it has put down");
    return value as Unpickled;
  }

  #top(): Unpickled {
    const value = this.#stack.at(-1);
    if (value === undefined || value === mark) throw refuse("it looks at what is not there");
    return value as Unpickled;
  }

  #remembered(index: number): Unpickled {
    const value = this.#memo.get(index);
    if (value === undefined) throw refuse(`it asks for the place ${index}, where nothing was put`);
    return value;
  }

  #byte(): number {
    return this.#take(1).getUint8(0);
  }

  #take(count: number): DataView {
    if (this.#at + count > this.#bytes.length) throw refuse("it is cut");
    const part = new DataView(this.#view.buffer, this.#view.byteOffset + this.#at, count);
    this.#at += count;
    return part;
  }

  #text(length: number): string {
    const { buffer, byteOffset } = this.#take(length);
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, byteOffset, length));
    } catch {
      throw refuse("it has a text that is no UTF-8");
    }
  }

  #line(): string {
    const end = this.#bytes.indexOf(0x0a, this.#at);
    if (end === -1 || end - this.#at > 256) throw refuse("it has a name without an end");
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
  return new FormatError(`The checkpoint is not read: ${why}.`);
}
