import type { Context } from "koa";
import Type, { type Static, type TSchema } from "typebox";
import { ErrorBody } from "../contracts/job.js";
import { StoredProbe, StoredVector } from "../contracts/library.js";
import { limits } from "../contracts/limits.js";
import { Name } from "../contracts/live.js";
import { liveLimits, vectorFormats } from "../contracts/live-limits.js";
import { UserError } from "../contracts/user-error.js";
import { FormatError } from "../formats/format-error.js";
import {
  checked,
  type Endpoint,
  HttpError,
  json,
  type Operation,
  type Parameter,
  parameter,
  readBytes,
  refusals,
} from "../http/index.js";
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
  /**
   * Looks up the model that a file is kept for.
   * @param named what the request calls it
   * @returns nothing where the file itself has to say it
   * @throws HttpError, UserError
   */
  modelNamed(named: string | undefined): Promise<ModelIdentity | undefined>;
}

const whole = { type: "integer", minimum: 0, maximum: limits.layer_index };
const text = { type: "string" };
const claims = [
  parameter(
    "query",
    "layer",
    whole,
    "The layer of a file that does not say it, as the file's own project counts.",
  ),
  parameter(
    "query",
    "model",
    text,
    "The model that a file without one belongs to; on the inference port the served one.",
  ),
  parameter("query", "restamp", { const: "1" }, "Take a file that says that it belongs to another model."),
];
const whose = "Whose PyTorch file it is: what its rows are, it does not say.";
const foreignClaims = [
  parameter("query", "format", { enum: vectorFormats }, whose),
  parameter("query", "entry", text, "Which vector of a capping file."),
];

const known = (stored: TSchema) => json("What is known of it.", stored);
const refused = refusals(
  {
    400: "A file, a layer or a model that does not fit; the sentence says which and the numbers.",
    403: "Not a program on this machine: LAN and browser requests are refused.",
    404: "There is none of that name.",
  },
  ErrorBody,
);

/** Vectors and probes by name: the list, one of them, its file, a new one from a file, its end. */
export const keptEndpoints: readonly Endpoint<Kept>[] = [
  ...filesEndpoints({
    noun: "vector",
    stored: StoredVector,
    forms: ["json", "safetensors", "gguf"],
    parameters: [...claims, ...foreignClaims],
    kept: ({ vectors }) => vectors,
    write: writeVector,
    async keep({ vectors }, name, bytes, reading) {
      const { layers, model, note } = await readVector(bytes, reading);
      return vectors.put(name, layers, model, { note });
    },
  }),
  ...filesEndpoints({
    noun: "probe",
    stored: StoredProbe,
    forms: ["json", "safetensors"],
    parameters: claims,
    kept: ({ probes }) => probes,
    write: writeProbe,
    async keep({ probes }, name, bytes, reading) {
      const { layer, probe, model, ...said } = readProbe(bytes, reading);
      return probes.put(name, layer, probe, model, said);
    },
  }),
];

/** Things of one kind, small enough that their files pass through the service. */
interface Files {
  noun: string;
  stored: TSchema;
  /** What one can be asked for in. */
  forms: readonly string[];
  /** What may be said of a file in its address. */
  parameters: readonly Parameter[];
  kept(service: Kept): Vectors | Probes;
  write(file: Shelved, form: FileForm): Buffer;
  keep(service: Kept, name: string, bytes: Buffer, reading: Reading): Promise<unknown>;
}

function filesEndpoints({ noun, stored, forms, parameters, kept, write, keep }: Files): Endpoint<Kept>[] {
  const format = parameter("query", "format", { enum: forms }, "json: what is known of it; else the file.");
  return shelfEndpoints({
    noun,
    stored,
    kept,
    get: {
      summary: `One ${noun}, or its file`,
      parameters: [format],
      answers: { 200: { ...known(stored), bytes: true }, ...refused(400, 403, 404) },
      answer: (service, name, ctx) => inForm(kept(service), write, name, ctx),
    },
    put: {
      summary: `Keep a ${noun}'s file, in place of one of that name`,
      description: `At most ${liveLimits.file_bytes} bytes.`,
      parameters,
      body: { bytes: true },
      async answer(service, name, ctx) {
        const claimed = claimsOf(ctx, noun);
        const bytes = await readBytes(ctx, liveLimits.file_bytes);
        return refusing(async () => {
          const model = await service.modelNamed(asked(ctx, "model", ModelName));
          return keep(service, name, bytes, { ...claimed, model });
        });
      },
    },
  });
}

/** What is said of one thing, and what answers of it. */
type OfOne<Service, Fields extends keyof Operation> = Pick<Operation, "summary" | "parameters" | Fields> & {
  answer(service: Service, name: string, ctx: Context): Promise<unknown>;
};

/** Things of one kind that are kept under names. */
interface Shelf<Service> {
  noun: string;
  plural?: string;
  /** What is kept, in the summary of the list, where the plural does not say it. */
  what?: string;
  stored: TSchema;
  kept(service: Service): Pick<Vectors | Probes | Dictionaries | Lenses, "list" | "get" | "remove">;
  get?: OfOne<Service, "answers">;
  put: OfOne<Service, "description" | "body">;
}

/** What is kept under names: the list, one of them, a new one, its end. */
export function shelfEndpoints<Service>(shelf: Shelf<Service>): Endpoint<Service>[] {
  const { noun, plural = `${noun}s`, what = plural, stored, kept, put } = shelf;
  const list = `/lab/${plural}`;
  const path = `${list}/{name}`;
  const id = (verb: string, thing = noun) => `${verb}${thing.charAt(0).toUpperCase()}${thing.slice(1)}`;
  const get: OfOne<Service, "answers"> = shelf.get ?? {
    summary: `One ${noun}`,
    answers: { 200: known(stored), ...refused(403, 404) },
    answer: (service, name) => kept(service).get(name),
  };
  const all = json("All of them.", Type.Object({ [plural]: Type.Array(stored) }));
  const forgotten = json("Forgotten.", Type.Object({ deleted: Type.Literal(true) }));
  return [
    {
      at: `GET ${list}`,
      operationId: id("list", plural),
      summary: `The ${what} that are kept`,
      answers: { 200: all, ...refused(403) },
      answer: async (service) => ({ [plural]: await kept(service).list() }),
    },
    {
      at: `GET ${path}`,
      shared: { parameters: [parameter("path", "name", Name, "Its name.")] },
      operationId: id("get"),
      ...get,
      async answer(service, ctx) {
        const name = nameOf(ctx.params);
        return found(() => get.answer(service, name, ctx));
      },
    },
    {
      at: `PUT ${path}`,
      operationId: id("put"),
      ...put,
      answers: { 200: known(stored), ...refused(400, 403) },
      answer: (service, ctx) => put.answer(service, nameOf(ctx.params), ctx),
    },
    {
      at: `DELETE ${path}`,
      operationId: id("delete"),
      summary: `Forget a ${noun}`,
      answers: { 200: forgotten, ...refused(403, 404) },
      async answer(service, ctx) {
        const name = nameOf(ctx.params);
        if (await kept(service).remove(name)) return { deleted: true };
        throw new HttpError(404, `There is no ${noun} named ${name}.`);
      },
    },
  ];
}

/** What is known of a thing, or its file in the form that the request names. */
async function inForm(
  kept: Vectors | Probes,
  write: (file: Shelved, form: FileForm) => Buffer,
  name: string,
  ctx: Context,
): Promise<unknown> {
  const form = formOf(ctx.query.format);
  const file = await kept.file(name);
  if (form === undefined) return kept.get(name);
  return refusing(async () => write(file, form));
}

/** The name in a path, checked. */
function nameOf(params: unknown): string {
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
