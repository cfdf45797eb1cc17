import { taplineHome } from "../../files/home.js";
import {
  Dictionaries,
  Lenses,
  type ModelIdentity,
  modelFingerprint,
  Probes,
  Profiles,
  Vectors,
} from "../../library/index.js";

/** The user's library and the identity of the served model, for requests that name vectors and probes. */
export interface LiveLibrary {
  readonly vectors: Vectors;
  readonly probes: Probes;
  readonly dictionaries: Dictionaries;
  readonly lenses: Lenses;
  readonly profiles: Profiles;
  readonly model: ModelIdentity;
}

export async function openLibrary(
  info: { id: string; path: string; nEmbd: number; nLayer: number },
  home = taplineHome(),
): Promise<LiveLibrary> {
  const { id, path, nEmbd, nLayer } = info;
  const parts = {
    vectors: new Vectors(home),
    probes: new Probes(home),
    dictionaries: new Dictionaries(home),
    lenses: new Lenses(home),
  };
  return {
    ...parts,
    profiles: new Profiles(home, parts),
    model: { id, fingerprint: await modelFingerprint(path), nEmbd, nLayer },
  };
}
