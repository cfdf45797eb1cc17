import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { StoredDictionary } from "../contracts/library.js";
import { UserError } from "../contracts/user-error.js";
import { absent } from "../files/absent.js";
import type { Dictionaries } from "./dictionaries.js";
import type { FromHub } from "./layout-files.js";

/** Weights of one block in the folder of a set: circuit-tracer's, also across layers, and tapline's own. */
const member = /^(?:layer_|W_enc_|sae-layer-)(\d{1,3})\.safetensors$/;

/** The blocks of a set's folder, and their weights. */
function membersAmong(names: readonly string[]): Map<number, string> {
  const found = names.flatMap((name): [number, string][] => {
    const [, layer] = member.exec(name) ?? [];
    return layer === undefined ? [] : [[Number(layer), name]];
  });
  return new Map(found.sort(([a], [b]) => a - b));
}

/** The weights of a set at a place, by block; undefined if there are not several. */
export async function setAt(
  place: string,
  fromHub: FromHub | undefined,
): Promise<Map<number, string> | undefined> {
  const local = await stat(place).catch(absent);
  let found = new Map<number, string>();
  if (local?.isDirectory()) {
    found = membersAmong(await readdir(place));
  } else if (local === undefined && /^[^/]+\/[^/]+$/.test(place)) {
    // Downloads nothing but the first one, which is needed in any case. What fails here fails again, with its reason, when the
    // place is read as one dictionary.
    await fromHub?.(place, (paths) => {
      found = membersAmong(paths);
      const [first] = found.values();
      if (first === undefined || found.size < 2) throw new UserError("There is no set.");
      return [first];
    }).catch(() => undefined);
  }
  return found.size > 1 ? found : undefined;
}

/**
 * Saves all transcoders of a set as NAME-0, NAME-1, … by block, replacing existing ones.
 * @param each called before each one
 * @throws UserError
 */
export async function addSet(
  dictionaries: Dictionaries,
  name: string,
  place: string,
  members: ReadonlyMap<number, string>,
  { fromHub, each }: { fromHub?: FromHub | undefined; each?: (done: number, total: number) => void } = {},
): Promise<StoredDictionary[]> {
  const stored: StoredDictionary[] = [];
  for (const [layer, file] of members) {
    each?.(stored.length, members.size);
    stored.push(await dictionaries.add(`${name}-${layer}`, join(place, file), {}, fromHub));
  }
  return stored;
}
