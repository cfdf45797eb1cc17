import type { Dirent } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { StoredDictionary } from "../contracts/library.js";
import { UserError } from "../contracts/user-error.js";
import { absent } from "../files/absent.js";
import type { Dictionaries } from "./dictionaries.js";
import type { FromHub } from "./layout-files.js";

/** Weights of one block in the folder of a set: circuit-tracer's and Gemma Scope 2's, also across layers, and tapline's own. */
const member = /^(?:layer_|params_layer_|W_enc_|sae-layer-)(\d{1,3})\.safetensors$/;
/** Places on the hub that may be a set: repositories, and Gemma Scope 2's folders of cross-layer transcoders. */
const setOnHub = /^[^/]+\/[^/]+(?:\/clt\/[^/]+)?$/;

/** A folder with one block of a set, which `tapline sae` wrote. */
const folderOfOne = /^layer-(\d{1,3})$/;

/** The blocks of a set's folder, and their weights. */
function membersAmong(names: readonly string[]): Map<number, string> {
  const found = names.flatMap((name): [number, string][] => {
    const [, layer] = member.exec(name) ?? [];
    return layer === undefined ? [] : [[Number(layer), name]];
  });
  return new Map(found.sort(([a], [b]) => a - b));
}

/** The blocks of a folder with a folder per block, and their weights. */
async function foldersAmong(place: string, entries: readonly Dirent[]): Promise<Map<number, string>> {
  const found = new Map<number, string>();
  for (const { name } of entries.filter((entry) => entry.isDirectory())) {
    const [, layer] = folderOfOne.exec(name) ?? [];
    const file = join(name, `sae-layer-${layer}.safetensors`);
    if (layer !== undefined && (await stat(join(place, file)).catch(absent)) !== undefined)
      found.set(Number(layer), file);
  }
  return new Map([...found].sort(([a], [b]) => a - b));
}

/** The weights of a set at a place, by block; undefined if there are not several. */
export async function setAt(
  place: string,
  fromHub: FromHub | undefined,
): Promise<Map<number, string> | undefined> {
  const local = await stat(place).catch(absent);
  let found = new Map<number, string>();
  if (local?.isDirectory()) {
    const entries = await readdir(place, { withFileTypes: true });
    found = membersAmong(entries.map(({ name }) => name));
    if (found.size === 0) found = await foldersAmong(place, entries);
  } else if (local === undefined && setOnHub.test(place)) {
    // Downloads nothing but the first one, which is needed in any case. What fails here fails again, with its reason, when the
    // place is read as one dictionary.
    await fromHub?.(place, (paths, at) => {
      const start = at === "" ? "" : `${at}/`;
      const inside = paths.filter((path) => path.startsWith(start)).map((path) => path.slice(start.length));
      found = membersAmong(inside);
      const [first] = found.values();
      if (first === undefined || found.size < 2) throw new UserError("There is no set.");
      return [`${start}${first}`];
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
