import { randomUUID } from "node:crypto";
import { fstatSync, openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../../contracts/user-error.js";
import { memoryFolder } from "../../files/memory-folder.js";

/** A request, as far as the parent needs it to answer with an error. */
export interface WaitingRequest {
  path: string;
  origin?: string | undefined;
}

/** A connection that the serving process has; `waiting`: the request without the first byte of its answer. */
type ConnectionState = { id: number; waiting?: WaitingRequest };

/** The file's descriptor in the serving process. */
export const statesDescriptor = 4;

/** A connection's record, a line of JSON at a multiple of this. */
const recordBytes = 2048;
/** Each character has at most two bytes in a record. */
const longestPath = 512;
const longestOrigin = 256;

/**
 * Creates a file without a name, in which a serving process keeps the states of its connections. The file survives that
 * process; writing it wakes no other process, as a message would.
 * @returns its descriptor
 */
export function createStates(folder = memoryFolder()): number {
  const path = join(folder, `tapline-connections-${randomUUID()}`);
  try {
    const file = openSync(path, "wx+", 0o600);
    unlinkSync(path);
    return file;
  } catch (error) {
    throw new UserError(`No file can be created in ${folder}: ${(error as Error).message}.`);
  }
}

/** The states of a process that has ended, by connection. */
export function readStates(file: number): Map<number, WaitingRequest | undefined> {
  const bytes = Buffer.alloc(fstatSync(file).size);
  readSync(file, bytes, 0, bytes.length, 0);
  const states = new Map<number, WaitingRequest | undefined>();
  for (let start = 0; start < bytes.length; start += recordBytes) {
    const record = bytes.subarray(start, start + recordBytes);
    const line = record.toString("utf8", 0, record.indexOf("\n"));
    if (line === "") continue;
    const { id, waiting } = JSON.parse(line) as ConnectionState;
    states.set(id, waiting);
  }
  return states;
}

/** Writes the states of connections into such a file. */
export class ConnectionStates {
  readonly #file: number;
  readonly #free: number[] = [];
  #records = 0;

  constructor(file: number) {
    this.#file = file;
  }

  /** Adds a connection without a request. */
  add(id: number): { waits(request: WaitingRequest | undefined): void; remove(): void } {
    const record = this.#free.pop() ?? this.#records++;
    let removed = false;
    const waits = (request: WaitingRequest | undefined) => {
      // An answer can still end after its connection, whose record may then be another one's.
      if (removed) return;
      const state: ConnectionState = { id, ...(request && { waiting: shortened(request) }) };
      this.#write(record, JSON.stringify(state));
    };
    waits(undefined);
    return {
      waits,
      remove: () => {
        if (removed) return;
        removed = true;
        this.#write(record, "");
        this.#free.push(record);
      },
    };
  }

  #write(record: number, line: string): void {
    try {
      writeSync(this.#file, `${line}\n`, record * recordBytes);
    } catch {
      // On a full disk, requests are still served; after a crash the client's connection is cut instead of answered.
    }
  }
}

/** No allowed origin is as long as one that is left out. */
function shortened({ path, origin }: WaitingRequest): WaitingRequest {
  const kept = origin !== undefined && origin.length <= longestOrigin;
  return { path: path.slice(0, longestPath), ...(kept && { origin }) };
}
