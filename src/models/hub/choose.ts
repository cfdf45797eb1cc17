import { UserError } from "../../contracts/user-error.js";
import { type GgufSet, groupGgufFiles, missingParts } from "../split.js";
import type { HubId } from "./id.js";

/** Files beside a model that are no model: image encoders, importance matrices, drafts. */
const beside = /mmproj|imatrix|mtp-|eagle3-|dflash-|dspark-/;
/** What is taken where the id does not say, as llama.cpp does. */
const preferred = ["Q4_K_M", "Q8_0"];
const listed = 8;

/**
 * The files that a hub id means, among the paths of its repository.
 * @throws UserError that lists what there is
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
      `${repository} holds several models and none in ${preferred.join(" or ")}: ` +
        `name one of ${names(repository, candidates)}.`,
    );
  }
  return complete(id, candidates[0] as GgufSet);
}

/** The models among a repository's paths, without what lies beside them. */
export function modelsAmong(paths: readonly string[]): GgufSet[] {
  return models(groupGgufFiles(paths));
}

function models(sets: readonly GgufSet[]): GgufSet[] {
  return sets.filter(({ files }) => !beside.test((files[0] as string).split("/").at(-1) as string));
}

/** Whether a path names a quantisation: in the file's name or in that of a folder. */
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
  return sets.length === 0 ? noModel("it", paths) : `there is ${names(repository, sets)}.`;
}

function noModel(subject: string, paths: readonly string[]): string {
  return paths.some((path) => path.endsWith(".safetensors"))
    ? `${subject} holds safetensors only; llama.cpp's convert_hf_to_gguf.py makes a GGUF from such a repository.`
    : `${subject} holds no .gguf file.`;
}
