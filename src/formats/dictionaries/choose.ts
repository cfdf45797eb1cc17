import { FormatError, quotedPath } from "../format-error.js";
import { decodersBeside } from "./cross-layer.js";
import { holdsOne, layoutOf } from "./read.js";

const weights = /\.(safetensors|npz|pth?)$/;
const settings = /^((cfg|config|hyperparams)\.json|config\.yaml)$/;
/** A file of weights that accompanies another. */
const scaling = /^sae-normalization-\d+\.npz$/;
const listed = 5;

/**
 * The files of a folder that can belong to one dictionary: for a named weights file, the folder's settings but no
 * other weights.
 * @param named the requested file in the folder; undefined for the folder itself
 */
export function filesBeside(names: readonly string[], named?: string): string[] {
  const decoders = named === undefined ? undefined : decodersBeside(named);
  return names
    .filter(
      (name) =>
        named === undefined ||
        name === named ||
        name === decoders ||
        !weights.test(name) ||
        scaling.test(name),
    )
    .sort();
}

/**
 * The files of one dictionary among all paths of a repository: its settings, then its weights.
 * @param at a folder or a weights file in it; empty for the root
 * @throws FormatError where there is no dictionary, or more than one
 */
export function dictionaryFiles(paths: readonly string[], at: string): string[] {
  const folder = paths.includes(at) ? folderOf(at) : at;
  const names = filesBeside(inFolder(paths, folder), paths.includes(at) ? below(folder, at) : undefined);
  const layout = layoutOf(names);
  if (layout === undefined) throw new FormatError(nothingAt(paths, at));
  const decoders = decodersBeside(layout.weights);
  const beside = names.filter((name) => settings.test(name) || scaling.test(name) || name === decoders);
  return [...beside, layout.weights].map((name) => (folder === "" ? name : `${folder}/${name}`));
}

/** The dictionary folder that a weights file belongs to. One layout stores the weights one folder deeper. */
function folderOf(path: string): string {
  return path.replace(/(^|\/)(checkpoints\/)?[^/]*$/, "");
}

function below(folder: string, path: string): string {
  return folder === "" ? path : path.slice(folder.length + 1);
}

/** The files of a folder, and of the subfolder in which one layout stores its weights. */
function inFolder(paths: readonly string[], folder: string): string[] {
  const start = folder === "" ? "" : `${folder}/`;
  return paths
    .filter((path) => path.startsWith(start))
    .map((path) => path.slice(start.length))
    .filter((name) => /^(checkpoints\/)?[^/]+$/.test(name));
}

function nothingAt(paths: readonly string[], at: string): string {
  const folders = (within: string) => [
    ...new Set(paths.filter((path) => path.startsWith(within)).map(folderOf)),
  ];
  const withOne = (within: string) => folders(within).filter((folder) => holdsOne(inFolder(paths, folder)));
  const near = withOne(at === "" ? "" : `${at}/`);
  const all = near.length > 0 ? near : withOne("");
  const where = at === "" ? "the repository's root" : at;
  if (all.length === 0) return "The repository has no dictionary in a supported layout.";
  const named = all.map((folder) => (folder === "" ? "the root" : folder));
  return `No dictionary at ${where}; the repository has ${all.length}: ${some(named)}.`;
}

function some(names: readonly string[]): string {
  const rest = names.length - listed;
  return names.slice(0, listed).map(quotedPath).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
