import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { UserError } from "../contracts/user-error.js";
import { absent } from "../files/absent.js";
import { filesBeside, type LayoutFiles } from "../formats/dictionaries/index.js";
import { FormatError, quoted } from "../formats/format-error.js";
import { openTensors } from "./tensor-files.js";

const configBytes = 16 * 1024 ** 2;

/** Chooses the files of one object, weights last, from a repository's paths. @throws FormatError */
export type ChooseFiles = (paths: readonly string[], at: string) => string[];

/**
 * Downloads the files that `choose` selects at a place on the hub, `owner/name[/path]`.
 * @returns the path of the weights and their source; undefined if this is not a place on the hub
 */
export type FromHub = (
  place: string,
  choose: ChooseFiles,
) => Promise<{ path: string; source: string } | undefined>;

/**
 * The files of a published object: a folder or a weights file, local or on the hub.
 * @param beforeHub refuses known unsupported places before the hub is contacted
 * @throws UserError, FormatError
 */
export async function filesAt(
  place: string,
  choose: ChooseFiles,
  fromHub: FromHub | undefined,
  beforeHub: (place: string) => void = () => {},
): Promise<{ files: LayoutFiles; path: string; source: string | null }> {
  if ((await stat(place).catch(absent)) !== undefined) {
    return { files: await layoutFiles(place), path: place, source: null };
  }
  beforeHub(place);
  const found = await fromHub?.(place, (paths, at) => {
    try {
      return choose(paths, at);
    } catch (error) {
      return asUserError(error);
    }
  });
  if (found === undefined) throw new UserError(`No file or folder ${place}.`);
  return { files: await layoutFiles(found.path), path: found.path, source: found.source };
}

/** For `.catch`: turns format errors into user errors. */
export function asUserError(error: unknown): never {
  throw error instanceof FormatError ? new UserError(error.message) : error;
}

/** The files of an object's folder, one level deep, by their names in the layout. */
async function layoutFiles(path: string): Promise<LayoutFiles> {
  const found = await stat(path).catch(absent);
  if (found === undefined) throw new UserError(`No file or folder ${path}.`);
  const parent = dirname(path);
  // One layout stores its weights one folder deeper than its settings.
  const above = basename(parent) === "checkpoints" ? dirname(parent) : parent;
  const folder = found.isDirectory() ? path : above;
  const entries = await readdir(folder, { withFileTypes: true });
  const deeper = entries.filter((entry) => entry.isDirectory() && entry.name === "checkpoints");
  const below = await Promise.all(
    deeper.map(async ({ name }) => (await readdir(join(folder, name))).map((file) => `${name}/${file}`)),
  );
  const names = filesBeside(
    [...entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name), ...below.flat()],
    found.isDirectory() ? undefined : relative(folder, path).replaceAll("\\", "/"),
  );
  const sizeOf = async (name: string): Promise<number> => {
    // Links may lead to folders, and pipes never end.
    const one = await stat(join(folder, name)).catch(absent);
    if (one === undefined || !one.isFile()) throw new FormatError(`${quoted(name)} is not a regular file.`);
    return one.size;
  };
  const text = async (name: string): Promise<string> => {
    const size = await sizeOf(name);
    if (size > configBytes) throw new FormatError(`${name} has ${size} bytes; the limit is ${configBytes}.`);
    return readFile(join(folder, name), "utf8");
  };
  return {
    names,
    text,
    json: async (name) => {
      const found = await text(name);
      try {
        return JSON.parse(found);
      } catch {
        throw new FormatError(`${name} is not JSON.`);
      }
    },
    tensors: async (name) => {
      await sizeOf(name);
      return openTensors(join(folder, name));
    },
  };
}
