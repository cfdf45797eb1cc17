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
import { ProfileRequest, StoredProfile } from "../contracts/profile.js";
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
    "Layer of a file that does not record it, counted as in the project it is from.",
  ),
  parameter(
    "query",
    "model",
    text,
    "Model of a file that does not record one; on the inference port, the served model.",
  ),
  parameter("query", "restamp", { const: "1" }, "Accept a file made for a different model."),
];
const whose = "Project that the PyTorch file is from, which determines the meaning of its rows.";
const foreignClaims = [
  parameter("query", "format", { enum: vectorFormats }, whose),
  parameter("query", "entry", text, "Name of the vector in a capping file."),
];

/** Saved vectors, probes and profiles: list, get, download, upload, delete. */
export const uploadEndpoints: readonly Endpoint<Kept>[] = [
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
  ...shelfEndpoints<Kept>({
    noun: "profile",
    stored: StoredProfile,
    kept: ({ profiles }) => profiles,
    put: {
      summary: "Save a profile, replacing any of that name",
      description: "Requests whose `model` is MODEL@NAME then run with its edits and readings.",
      parameters: [claims[1] as Parameter],
      body: { json: ProfileRequest },
      async answer({ profiles, modelNamed, checkProfile }, name, ctx) {
        const request = checked(ProfileRequest, await readJson(ctx, { limit: limits.job_body_bytes }));
        return refusing(async () => {
          const model = await modelNamed(asked(ctx, "model", ModelName));
          await checkProfile?.(request.tapline);
          return profiles.put(name, request, model ?? null);
        });
      },
    },
  }),
];

/** A kind with files small enough to pass through the service. */
interface Files {
  noun: string;
  stored: TSchema;
  /** Formats for downloads. */
  forms: readonly string[];
  /** Query parameters of an upload. */
  parameters: readonly Parameter[];
  kept(service: Kept): Vectors | Probes;
  write(file: Shelved, form: FileForm): Buffer;
  keep(service: Kept, name: string, bytes: Buffer, reading: Reading): Promise<unknown>;
}

function filesEndpoints({ noun, stored, forms, parameters, kept, write, keep }: Files): Endpoint<Kept>[] {
  const format = parameter(
    "query",
    "format",
    { enum: forms },
    "json for its description, otherwise the file.",
  );
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
      summary: `Save a ${noun} from a file, replacing any of that name`,
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

/** The description of a saved object, or its file in the requested format. */
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

/** Properties given in the request for a file that does not record them. */
function claimsOf(ctx: Context, noun: string): Omit<Reading, "model"> {
  const format = asked(ctx, "format", Format);
  const entry = asked(ctx, "entry", Entry);
  if (noun === "probe" && (format !== undefined || entry !== undefined)) {
    throw new HttpError(
      400,
      "format and entry are for vectors only; a probe's file is .npz or .safetensors.",
    );
  }
  if (entry !== undefined && format === undefined) throw new HttpError(400, "entry needs a format.");
  return { restamp: flag(ctx, "restamp"), layer: asked(ctx, "layer", Layer), format, entry };
}

/** A validated query parameter. */
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
  throw new HttpError(400, `${name}: must be 1 or absent.`);
}

function formOf(format: string | string[] | undefined): FileForm | undefined {
  if (format === undefined || format === "json") return undefined;
  if (format === "safetensors" || format === "gguf") return format;
  throw new HttpError(400, "format: must be json, safetensors or gguf.");
}

/** Saved sparse dictionaries and lenses, on the Lab's port: list, get, import from a folder or the hub, delete. */
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
    what: "lenses",
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
    summary: `Import a published ${kind} from a folder or the hub, replacing any of that name`,
    description: "Responds once it is saved. Files on the hub are first downloaded into the shared cache.",
    body: { json: schema },
    async answer({ read }: Library, name: string, ctx: Context) {
      const request = checked(schema, await readJson(ctx, { limit: limits.job_body_bytes }));
      return read({ kind, name, revision: request.revision, ...taskOf(request) }, clientGone(ctx).signal);
    },
  };
}

/** The Lab's endpoints of the user's library: saved objects only, as no model is resident to make new ones. */
export const libraryEndpoints: readonly Endpoint<Library>[] = [
  ...(uploadEndpoints as readonly Endpoint<Library>[]),
  ...largeEndpoints,
  ...["vector", "probe"].map(
    (noun): Endpoint<Library> => ({
      at: `POST /lab/${noun}s`,
      unlisted: "a refusal that says where to make one",
      answer() {
        throw new HttpError(
          405,
          `To make a ${noun} from texts, POST /lab/${noun}s to tapline serve (port ${ports.inference}), which has a resident model; to upload a file to the Lab, PUT /lab/${noun}s/NAME.`,
          { headers: { Allow: "GET" } },
        );
      },
    }),
  ),
];
