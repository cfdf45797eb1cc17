import { UserError } from "../../contracts/user-error.js";
import { type GgufSet, groupGgufFiles, missingParts } from "../split.js";
import type { HubId } from "./id.js";

/** GGUF files that are not models: image encoders, importance matrices, draft models. */
const beside = /mmproj|imatrix|mtp-|eagle3-|dflash-|dspark-/;
/** Default quantizations, as in llama.cpp. */
const preferred = ["Q4_K_M", "Q8_0"];
const listed = 8;

/**
 * The files that a hub id selects from its repository.
 * @throws UserError that lists the available models
 */
export function chooseFiles(id: HubId, paths: readonly string[]): string[] {
  const { repository, quant, file } = id;
  const all = groupGgufFiles(paths);
  if (file !== undefined) {
    const set = all.find(({ files }) => files.includes(file));
    if (set === undefined) {
      throw new UserError(`${repository} has no file ${file}; ${holds(id, models(all), paths)}`);
    }
    return complete(id, set);
  }
  const candidates = models(all);
  if (candidates.length === 0) throw new UserError(noModel(repository, paths));
  for (const tag of quant === undefined ? preferred : [quant]) {
    const match = candidates.find(({ files }) => hasTag(files[0] as string, tag));
    if (match !== undefined) return complete(id, match);
  }
  if (quant !== undefined) {
    throw new UserError(`${repository} has no ${quant}; ${holds(id, candidates, paths)}`);
  }
  if (candidates.length > 1) {
    throw new UserError(
      `${repository} has several models, but none in ${preferred.join(" or ")}: ` +
        `choose one of ${names(repository, candidates)}.`,
    );
  }
  return complete(id, candidates[0] as GgufSet);
}

/** The models among a repository's paths. */
export function modelsAmong(paths: readonly string[]): GgufSet[] {
  return models(groupGgufFiles(paths));
}

function models(sets: readonly GgufSet[]): GgufSet[] {
  return sets.filter(({ files }) => !beside.test((files[0] as string).split("/").at(-1) as string));
}

/** Whether a path contains a quantization's name, in the file's or a folder's name. */
export function hasTag(path: string, tag: string): boolean {
  const text = tag.replace(/[.]/g, "\\.");
  return new RegExp(`(^|[-_./])${text}([.-]|/)`, "i").test(path);
}

function complete({ repository }: HubId, set: GgufSet): string[] {
  const missing = missingParts(set);
  if (missing === "") return set.files;
  throw new UserError(`The split model in ${repository} lacks ${missing}.`);
}

function names(repository: string, sets: readonly GgufSet[]): string {
  const some = sets.slice(0, listed).map(({ files }) => `${repository}/${files[0]}`);
  return some.join(", ") + (sets.length > listed ? ` (and ${sets.length - listed} more)` : "");
}

function holds({ repository }: HubId, sets: readonly GgufSet[], paths: readonly string[]): string {
  return sets.length === 0 ? noModel("it", paths) : `available: ${names(repository, sets)}.`;
}

function noModel(subject: string, paths: readonly string[]): string {
  return paths.some((path) => path.endsWith(".safetensors"))
    ? `${subject} has only safetensors; convert it to GGUF with llama.cpp's convert_hf_to_gguf.py.`
    : `${subject} has no .gguf file.`;
}
