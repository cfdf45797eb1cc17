import type { Context } from "koa";
import Type, { type Static, type TSchema } from "typebox";
import {
  DictionaryRequest,
  LensRequest,
  StoredDictionary,
  StoredLens,
  StoredProbe,
  StoredVector,
} from "../contracts/library.js";
import { limits, ports } from "../contracts/limits.js";
import { liveLimits, vectorFormats } from "../contracts/live-limits.js";
import {
  checked,
  clientGone,
  type Endpoint,
  HttpError,
  type Parameter,
  parameter,
  readBytes,
  readJson,
} from "../http/index.js";
import { lensPlace } from "../models/resolve.js";
import { type FileForm, type Reading, readProbe, readVector, writeProbe, writeVector } from "./files.js";
import type { Kept, Library } from "./library.js";
import type { Probes } from "./probes.js";
import type { LibraryTask } from "./read-process.js";
import type { Shelved } from "./shelf.js";
import { known, refused, refusing, shelfEndpoints } from "./shelf-endpoints.js";
import type { Vectors } from "./vectors.js";

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

/**
 * Sparse dictionaries and lenses by name, on the Lab's port: the list, one of them, a new one from a folder or the hub, its
 * end.
 */
const largeEndpoints: readonly Endpoint<Library>[] = [
  ...shelfEndpoints<Library>({
    noun: "dictionary",
    plural: "dictionaries",
    what: "sparse dictionaries",
    stored: StoredDictionary,
    kept: ({ dictionaries }) => dictionaries,
    put: putting("dictionary", DictionaryRequest, ({ from, layer, point, k }) => ({
      place: from,
      claims: { layer, point, k },
    })),
  }),
  ...shelfEndpoints<Library>({
    noun: "lens",
    plural: "lenses",
    what: "lenses that translate",
    stored: StoredLens,
    kept: ({ lenses }) => lenses,
    put: putting("lens", LensRequest, ({ from }) => ({ place: lensPlace(from) })),
  }),
];

function putting<S extends typeof DictionaryRequest | typeof LensRequest>(
  kind: LibraryTask["kind"],
  schema: S,
  taskOf: (request: Static<S>) => Pick<LibraryTask, "place" | "claims">,
) {
  return {
    summary: `Keep a published ${kind} from a folder or the hub, in place of one of that name`,
    description: "Answers when it is kept; what the hub has is downloaded into the shared cache first.",
    body: { json: schema },
    async answer({ read }: Library, name: string, ctx: Context) {
      const request = checked(schema, await readJson(ctx, { limit: limits.job_body_bytes }));
      return read({ kind, name, revision: request.revision, ...taskOf(request) }, clientGone(ctx).signal);
    },
  };
}

/** What the Lab answers of the user's library: all that is kept, without a model that could make something new. */
export const libraryEndpoints: readonly Endpoint<Library>[] = [
  ...(keptEndpoints as readonly Endpoint<Library>[]),
  ...largeEndpoints,
  ...["vector", "probe"].map(
    (noun): Endpoint<Library> => ({
      at: `POST /lab/${noun}s`,
      unlisted: "a refusal that says where one is made",
      answer() {
        throw new HttpError(
          405,
          `A ${noun} is made from texts where a model is resident: POST /lab/${noun}s to tapline serve (port ` +
            `${ports.inference}); the Lab keeps files: PUT /lab/${noun}s/NAME.`,
          { headers: { Allow: "GET" } },
        );
      },
    }),
  ),
];
