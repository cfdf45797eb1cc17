import { open, readdir, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { UserError } from "../contracts/user-error.js";
import { parseHubId } from "./hub/id.js";
import type { HubOptions } from "./hub/index.js";
import { type GgufSet, groupGgufFiles, missingParts } from "./split.js";

export interface WeightFile {
  name: string;
  bytes: number;
  /** Nanoseconds since 1970, as decimal digits: JSON numbers could not hold them. */
  modified_ns: string;
}

/** The files of a model on this machine. */
export interface ResolvedModel {
  /** The file to load; the first part of a split set. */
  path: string;
  /** Its hub repository, or null. */
  repository: string | null;
  commit: string | null;
  /** Size and time of every file of the model. */
  weights: WeightFile[];
}

/** The embedded model; the path is valid from src/ and from dist/. */
export const demoModelPath = fileURLToPath(new URL("../../models/demo/tapline-demo.gguf", import.meta.url));

/** Its Jacobian lens, in the format of published ones. */
export const demoLensPath = fileURLToPath(
  new URL("../../models/demo/tapline-demo_jacobian_lens.pt", import.meta.url),
);

/** The path of a lens; `demo` is the embedded model's. */
export function lensPlace(from: string): string {
  return from === "demo" ? demoLensPath : from;
}

export type ResolveOptions = HubOptions;

/**
 * Finds the files of a model: `demo`, a `.gguf` file, a directory with one model, or a hub model (`owner/name`,
 * `owner/name:quant` or `owner/name/file.gguf`), which is downloaded unless it is cached.
 * @throws UserError with the problem and a remedy
 */
export async function resolveModel(model: string, options: ResolveOptions = {}): Promise<ResolvedModel> {
  const here = await modelHere(model);
  if (here !== undefined) {
    if (options.revision === undefined) return here;
    throw new UserError(`${model} is a local file and has no revisions; remove the revision.`);
  }
  const id = parseHubId(model);
  if (id === undefined) throw new UserError(`No model found at ${model}.`);
  const { resolveHubModel } = await import("./hub/index.js");
  const { path, commit } = await resolveHubModel(id, options);
  return { ...(await describe(await setOf(path))), repository: id.repository, commit };
}

/**
 * The model of that name on this machine, outside the hub's cache; undefined if there is none.
 * @throws UserError
 */
export async function modelHere(model: string): Promise<ResolvedModel | undefined> {
  const here = await find(model);
  return here === undefined ? undefined : describe(here);
}

/** The local files of a model id; undefined if there are none. */
async function find(model: string): Promise<(GgufSet & { folder: string }) | undefined> {
  if (model === "demo") return setOf(demoModelPath);
  if (model === "") throw new UserError("The model name is empty.");
  if (model.includes("\0")) throw new UserError("A model path must not contain a NUL character.");
  const path = resolve(model);
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw readFault(model, error);
  });
  if (found === undefined) return undefined;
  if (found.isDirectory()) return setInFolder(path, model);
  if (!found.isFile()) throw new UserError(`${model} is neither a file nor a directory.`);
  if (!path.toLowerCase().endsWith(".gguf")) {
    throw new UserError(
      `${model} is not a .gguf file; a model must be a .gguf file or a directory with one.`,
    );
  }
  return setOf(path);
}

/** The set of a file and its other parts in the same folder. */
async function setOf(path: string): Promise<GgufSet & { folder: string }> {
  const folder = dirname(path);
  const name = basename(path);
  const [alone] = groupGgufFiles([name]);
  const siblings = alone?.parts === 1 ? [name] : await namesIn(folder);
  const set = groupGgufFiles(siblings).find(({ files }) => files.includes(name));
  if (set === undefined) throw new UserError(`No model found at ${path}.`);
  return { ...set, folder };
}

async function setInFolder(folder: string, model: string): Promise<GgufSet & { folder: string }> {
  const names = await namesIn(folder);
  // Image encoders next to a model are not models themselves.
  const sets = groupGgufFiles(names.filter((name) => !name.toLowerCase().startsWith("mmproj")));
  if (sets.length === 1) return { ...(sets[0] as GgufSet), folder };
  if (sets.length > 1) {
    const list = sets.map(({ files }) => files[0]).join(", ");
    throw new UserError(`${model} contains ${sets.length} models; choose one: ${list}.`);
  }
  if (names.some((name) => name.endsWith(".safetensors"))) {
    throw new UserError(
      `${model} contains only safetensors; convert it to GGUF with llama.cpp's convert_hf_to_gguf.py.`,
    );
  }
  throw new UserError(`${model} contains no .gguf file.`);
}

async function describe(set: GgufSet & { folder: string }): Promise<ResolvedModel> {
  const missing = missingParts(set);
  if (missing !== "") throw new UserError(`The split model in ${set.folder} lacks ${missing}.`);
  const weights: WeightFile[] = [];
  for (const name of set.files) {
    const path = join(set.folder, name);
    const found = await stat(path, { bigint: true }).catch((error) => Promise.reject(readFault(path, error)));
    if (!found.isFile()) throw new UserError(`${path} is not a file.`);
    weights.push({ name, bytes: Number(found.size), modified_ns: String(found.mtimeNs) });
  }
  const first = join(set.folder, set.files[0] as string);
  await checkMagic(first);
  return { path: first, repository: null, commit: null, weights };
}

async function checkMagic(path: string): Promise<void> {
  const start = await firstBytes(path).catch((error) => Promise.reject(readFault(path, error)));
  if (start === "GGUF") return;
  throw new UserError(`${path} is not a GGUF file (an unfinished download, or a Git LFS pointer?).`);
}

async function firstBytes(path: string): Promise<string> {
  const file = await open(path);
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return buffer.toString("latin1", 0, bytesRead);
  } finally {
    await file.close();
  }
}

function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch((error) => Promise.reject(readFault(folder, error)));
}

/** The error for a file that cannot be read. */
function readFault(name: string, { code, message }: NodeJS.ErrnoException): UserError {
  switch (code) {
    case "EACCES":
    case "EPERM":
      return new UserError(`This user may not read ${name}.`);
    case "ELOOP":
      return new UserError(`${name} is a cyclic symbolic link.`);
    case "ENAMETOOLONG":
      return new UserError("The model's path is too long for this system.");
    case "ENOENT":
      return new UserError(`No model found at ${name}.`);
    default:
      return new UserError(`Cannot read ${name} (${code ?? message}).`);
  }
}
