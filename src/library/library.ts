import type { ProfileSettings } from "../contracts/profile.js";
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
import { Profiles } from "./profiles.js";
import { readApart } from "./read-apart.js";
import type { LibraryTask } from "./read-process.js";
import { Vectors } from "./vectors.js";

/** Saved objects with small files. */
export interface Kept {
  vectors: Vectors;
  probes: Probes;
  profiles: Profiles;
  /**
   * Looks up the model that a file is for.
   * @param named its name in the request
   * @returns undefined if the file must record it
   * @throws HttpError, UserError
   */
  modelNamed(named: string | undefined): Promise<ModelIdentity | undefined>;
  /** Checks a profile's settings against the resident model, if there is one. @throws HttpError 400 */
  checkProfile?(settings: ProfileSettings): Promise<void>;
}

/** All saved objects. */
export interface Library extends Kept {
  dictionaries: Dictionaries;
  lenses: Lenses;
  /** Imports a published dictionary or lens; stops if the client disconnects. */
  read(task: Omit<LibraryTask, "home">, signal: AbortSignal): Promise<object>;
}

/** The user's library, without a resident model. */
export function openLibrary(home: string): Library {
  // One at a time: each may need as much memory as its file's size.
  const turns = new SerialQueue("library");
  const parts = {
    vectors: new Vectors(home),
    probes: new Probes(home),
    dictionaries: new Dictionaries(home),
    lenses: new Lenses(home),
  };
  return {
    ...parts,
    profiles: new Profiles(home, parts),
    modelNamed: async (named) => (named === undefined ? undefined : identityOf(named)),
    read: (task, signal) => turns.run(() => readApart({ home, ...task }, signal)),
  };
}

/** The identity of a local model. @throws UserError if there is none of that name, or its file lacks its sizes */
async function identityOf(named: string): Promise<ModelIdentity> {
  const found = await modelHere(named);
  if (found === undefined) {
    throw new UserError(`model: no local model is named ${named.slice(0, 200)}; pass its file.`);
  }
  const { blocks, hidden } = await readGgufHeader(found.path).catch((error) => {
    throw error instanceof FormatError ? new UserError(`model: ${named} is damaged.`) : error;
  });
  if (blocks === null || hidden === null) {
    throw new UserError(`model: the file of ${named} does not record its number of blocks and hidden size.`);
  }
  return { id: named, fingerprint: await modelFingerprint(found.path), nEmbd: hidden, nLayer: blocks };
}
