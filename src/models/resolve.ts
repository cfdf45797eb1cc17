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

/** What a model id stands for on this machine. */
export interface ResolvedModel {
  /** The file to load; the first part of a split set. */
  path: string;
  /** Where it came from, when from a hub. */
  repository: string | null;
  commit: string | null;
  /** Size and time of every file of the model. */
  weights: WeightFile[];
}

/** The embedded model: the same place from src/ and from dist/. */
export const demoModelPath = fileURLToPath(new URL("../../models/demo/tapline-demo.gguf", import.meta.url));

/** Its Jacobian lens, as published ones are laid out. */
export const demoLensPath = fileURLToPath(
  new URL("../../models/demo/tapline-demo_jacobian_lens.pt", import.meta.url),
);

/** Where a lens is: `demo` stands for the embedded model's. */
export function lensPlace(from: string): string {
  return from === "demo" ? demoLensPath : from;
}

export type ResolveOptions = HubOptions;

/**
 * Finds the files of a model: `demo`, a `.gguf` file, a directory that holds one model, or a model of the hub,
 * `owner/name`, `owner/name:quant` or `owner/name/file.gguf`, which is downloaded unless it is cached.
 * @throws UserError with one sentence that says what is wrong and what would help
 */
export async function resolveModel(model: string, options: ResolveOptions = {}): Promise<ResolvedModel> {
  const here = await modelHere(model);
  if (here !== undefined) {
    if (options.revision === undefined) return here;
    throw new UserError(`${model} lies on this machine and has no revisions; leave the revision out.`);
  }
  const id = parseHubId(model);
  if (id === undefined) throw new UserError(`There is no model at ${model}.`);
  const { resolveHubModel } = await import("./hub/index.js");
  const { path, commit } = await resolveHubModel(id, options);
  return { ...(await describe(await setOf(path))), repository: id.repository, commit };
}

/**
 * The model of that name on this machine, outside the hub's cache; nothing when there is nothing of that name.
 * @throws UserError
 */
export async function modelHere(model: string): Promise<ResolvedModel | undefined> {
  const here = await find(model);
  return here === undefined ? undefined : describe(here);
}

/** The files that an id names on this machine; nothing when there is nothing of that name. */
async function find(model: string): Promise<(GgufSet & { folder: string }) | undefined> {
  if (model === "demo") return setOf(demoModelPath);
  if (model === "") throw new UserError("The model has no name.");
  if (model.includes("\0")) throw new UserError("A model's path may not contain a NUL character.");
  const path = resolve(model);
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw readFault(model, error);
  });
  if (found === undefined) return undefined;
  if (found.isDirectory()) return setInFolder(path, model);
  if (!found.isFile()) throw new UserError(`${model} is neither a file nor a directory.`);
  if (!path.toLowerCase().endsWith(".gguf")) {
    throw new UserError(`${model} is not a .gguf file; a model is one .gguf file or a directory with one.`);
  }
  return setOf(path);
}

/** The set that a file belongs to: its other parts lie beside it. */
async function setOf(path: string): Promise<GgufSet & { folder: string }> {
  const folder = dirname(path);
  const name = basename(path);
  const [alone] = groupGgufFiles([name]);
  const siblings = alone?.parts === 1 ? [name] : await namesIn(folder);
  const set = groupGgufFiles(siblings).find(({ files }) => files.includes(name));
  if (set === undefined) throw new UserError(`There is no model at ${path}.`);
  return { ...set, folder };
}

async function setInFolder(folder: string, model: string): Promise<GgufSet & { folder: string }> {
  const names = await namesIn(folder);
  // Image encoders lie beside the model that they serve; they are no model by themselves.
  const sets = groupGgufFiles(names.filter((name) => !name.toLowerCase().startsWith("mmproj")));
  if (sets.length === 1) return { ...(sets[0] as GgufSet), folder };
  if (sets.length > 1) {
    const list = sets.map(({ files }) => files[0]).join(", ");
    throw new UserError(`${model} holds ${sets.length} models; name one of them: ${list}.`);
  }
  if (names.some((name) => name.endsWith(".safetensors"))) {
    throw new UserError(
      `${model} holds safetensors only; llama.cpp's convert_hf_to_gguf.py makes a GGUF from such a directory.`,
    );
  }
  throw new UserError(`${model} holds no .gguf file.`);
}

async function describe(set: GgufSet & { folder: string }): Promise<ResolvedModel> {
  const missing = missingParts(set);
  if (missing !== "") throw new UserError(`The split model lacks ${missing} in ${set.folder}.`);
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
  throw new UserError(
    `${path} is not a GGUF file: it does not begin with GGUF (an unfinished download, or a pointer to one?).`,
  );
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

/** Why the system does not read what is there, in one sentence. */
function readFault(name: string, { code, message }: NodeJS.ErrnoException): UserError {
  switch (code) {
    case "EACCES":
    case "EPERM":
      return new UserError(`${name} may not be read by this account.`);
    case "ELOOP":
      return new UserError(`${name} is a symbolic link that leads in a circle.`);
    case "ENAMETOOLONG":
      return new UserError("The model's path is longer than this system allows.");
    case "ENOENT":
      return new UserError(`There is no model at ${name}.`);
    default:
      return new UserError(`${name} cannot be read (${code ?? message}).`);
  }
}
