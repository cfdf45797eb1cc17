import { UserError } from "../contracts/user-error.js";
import { FormatError } from "../formats/format-error.js";
import { readGgufHeader } from "../models/gguf-header.js";
import { modelHere } from "../models/resolve.js";
import { SerialQueue } from "../native/serial.js";
import { Dictionaries } from "./dictionaries.js";
import { modelFingerprint } from "./fingerprint.js";
import type { ModelIdentity } from "./identity.js";
import { Lenses } from "./lenses.js";
import { Probes } from "./probes.js";
import { readApart } from "./read-apart.js";
import type { LibraryTask } from "./read-process.js";
import { Vectors } from "./vectors.js";

/** What is kept by name and small. */
export interface Kept {
  vectors: Vectors;
  probes: Probes;
  /**
   * Looks up the model that a file is kept for.
   * @param named what the request calls it
   * @returns nothing where the file itself has to say it
   * @throws HttpError, UserError
   */
  modelNamed(named: string | undefined): Promise<ModelIdentity | undefined>;
}

/** All that is kept by name. */
export interface Library extends Kept {
  dictionaries: Dictionaries;
  lenses: Lenses;
  /** Reads a published dictionary or lens, until its client goes away. */
  read(task: Omit<LibraryTask, "home">, signal: AbortSignal): Promise<object>;
}

/** The user's library, without a model that is resident. */
export function openLibrary(home: string): Library {
  // One at a time: each may need as much memory as its file has bytes.
  const turns = new SerialQueue("library");
  return {
    vectors: new Vectors(home),
    probes: new Probes(home),
    dictionaries: new Dictionaries(home),
    lenses: new Lenses(home),
    modelNamed: async (named) => (named === undefined ? undefined : identityOf(named)),
    read: (task, signal) => turns.run(() => readApart({ home, ...task }, signal)),
  };
}

/**
 * A model on this machine as stored things know it.
 * @throws UserError where there is none of that name, or its file does not say its sizes
 */
async function identityOf(named: string): Promise<ModelIdentity> {
  const found = await modelHere(named);
  if (found === undefined) {
    throw new UserError(`model: there is no model ${named.slice(0, 200)} on this machine; give its file.`);
  }
  const { blocks, hidden } = await readGgufHeader(found.path).catch((error) => {
    throw error instanceof FormatError ? new UserError(`model: ${named} is damaged.`) : error;
  });
  if (blocks === null || hidden === null) {
    throw new UserError(`model: the file of ${named} does not say how many blocks it has, and how wide.`);
  }
  return { id: named, fingerprint: await modelFingerprint(found.path), nEmbd: hidden, nLayer: blocks };
}
