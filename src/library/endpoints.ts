import type { Context } from "koa";
import Type, { type Static, type TSchema } from "typebox";
import { limits } from "../contracts/limits.js";
import { Name } from "../contracts/live.js";
import { liveLimits, vectorFormats } from "../contracts/live-limits.js";
import { UserError } from "../contracts/user-error.js";
import { FormatError } from "../formats/format-error.js";
import { checked, HttpError, type Routes, readBytes } from "../http/index.js";
import type { Dictionaries } from "./dictionaries.js";
import { type FileForm, type Reading, readProbe, readVector, writeProbe, writeVector } from "./files.js";
import type { ModelIdentity } from "./identity.js";
import type { Lenses } from "./lenses.js";
import type { Probes } from "./probes.js";
import type { Shelved } from "./shelf.js";
import type { Vectors } from "./vectors.js";

export interface Kept {
  vectors: Vectors;
  probes: Probes;
}

/**
 * Looks up the model that a file is kept for.
 * @param named what the request calls it
 * @returns nothing where the file itself has to say it
 * @throws HttpError, UserError
 */
export type ModelNamed = (named: string | undefined) => Promise<ModelIdentity | undefined>;

/** Vectors and probes by name: the list, one of them, its file, a new one from a file, its end. */
export function keptRoutes(router: Routes, { vectors, probes }: Kept, modelNamed: ModelNamed): void {
  shelfRoutes(router, "vector", "vectors", vectors, inForm(vectors, writeVector));
  shelfRoutes(router, "probe", "probes", probes, inForm(probes, writeProbe));
  const put = (noun: string, keep: (name: string, bytes: Buffer, reading: Reading) => Promise<unknown>) =>
    router.put(`/lab/${noun}s/:name`, async (ctx) => {
      const name = nameOf(ctx.params);
      const claims = claimsOf(ctx, noun);
      const bytes = await readBytes(ctx, liveLimits.file_bytes);
      ctx.body = await refusing(async () => {
        const model = await modelNamed(asked(ctx, "model", ModelName));
        return keep(name, bytes, { ...claims, model });
      });
    });
  put("vector", async (name, bytes, reading) => {
    const { layers, model, note } = await readVector(bytes, reading);
    return vectors.put(name, layers, model, { note });
  });
  put("probe", async (name, bytes, reading) => {
    const { layer, probe, model, ...said } = readProbe(bytes, reading);
    return probes.put(name, layer, probe, model, said);
  });
}

/**
 * What is kept under names: the list, one of them, its end.
 * @param read what the answer to one of them is; what is known of it unless told otherwise
 */
export function shelfRoutes(
  router: Routes,
  noun: string,
  plural: string,
  kept: Pick<Vectors | Probes | Dictionaries | Lenses, "list" | "get" | "remove">,
  read: (name: string, ctx: Context) => Promise<unknown> = (name) => kept.get(name),
): void {
  const path = `/lab/${plural}`;
  router.get(path, async (ctx) => {
    ctx.body = { [plural]: await kept.list() };
  });
  router.get(`${path}/:name`, async (ctx) => {
    const name = nameOf(ctx.params);
    ctx.body = await found(() => read(name, ctx));
  });
  router.delete(`${path}/:name`, async (ctx) => {
    const name = nameOf(ctx.params);
    if (!(await kept.remove(name))) throw new HttpError(404, `There is no ${noun} named ${name}.`);
    ctx.body = { deleted: true };
  });
}

/** What is known of a thing, or its file in the form that the request names. */
function inForm(kept: Vectors | Probes, write: (file: Shelved, form: FileForm) => Buffer) {
  return async (name: string, ctx: Context): Promise<unknown> => {
    const form = formOf(ctx.query.format);
    const known = await kept.file(name);
    if (form === undefined) return kept.get(name);
    return refusing(async () => write(known, form));
  };
}

/** The name in a path, checked. */
export function nameOf(params: unknown): string {
  return checked(Type.Object({ name: Name }), { name: (params as { name: string }).name }).name;
}

const Layer = Type.Integer({ minimum: 0, maximum: limits.layer_index });
const ModelName = Type.String({ minLength: 1, maxLength: limits.model_characters });
const Format = Type.Enum([...vectorFormats]);
const Entry = Type.String({ minLength: 1, maxLength: 200 });

/** What the request says where its file does not. */
function claimsOf(ctx: Context, noun: string): Omit<Reading, "model"> {
  const format = asked(ctx, "format", Format);
  const entry = asked(ctx, "entry", Entry);
  if (noun === "probe" && (format !== undefined || entry !== undefined)) {
    throw new HttpError(400, "format and entry belong to vectors; a probe's file is .npz or .safetensors.");
  }
  if (entry !== undefined && format === undefined) throw new HttpError(400, "entry belongs to a format.");
  return { restamp: flag(ctx, "restamp"), layer: asked(ctx, "layer", Layer), format, entry };
}

/** A parameter of the address, checked. */
function asked<S extends TSchema>(ctx: Context, name: string, schema: S): Static<S> | undefined {
  const value = ctx.query[name];
  if (value === undefined) return undefined;
  const given = name === "layer" && /^\d+$/.test(String(value)) ? Number(value) : value;
  const found: Record<string, unknown> = checked(Type.Object({ [name]: schema }), { [name]: given });
  return found[name] as Static<S>;
}

function flag(ctx: Context, name: string): boolean {
  const value = ctx.query[name];
  if (value === undefined) return false;
  if (value === "" || value === "1" || value === "true") return true;
  throw new HttpError(400, `${name}: 1, or left out.`);
}

function formOf(format: string | string[] | undefined): FileForm | undefined {
  if (format === undefined || format === "json") return undefined;
  if (format === "safetensors" || format === "gguf") return format;
  throw new HttpError(400, "format: json, safetensors or gguf.");
}

/** What is not there is 404. */
async function found<T>(look: () => Promise<T>): Promise<T> {
  try {
    return await look();
  } catch (error) {
    throw error instanceof UserError ? new HttpError(404, error.message) : error;
  }
}

/** What a file or a text is refused for is the caller's fault. */
export async function refusing<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UserError || error instanceof FormatError) throw new HttpError(400, error.message);
    throw error;
  }
}
