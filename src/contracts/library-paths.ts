import Type, { type TSchema } from "typebox";
import { ErrorBody } from "./job.js";
import {
  DictionaryRequest,
  LensRequest,
  StoredDictionary,
  StoredLens,
  StoredProbe,
  StoredVector,
} from "./library.js";
import { limits } from "./limits.js";
import { Name } from "./live.js";
import { liveLimits, vectorFormats } from "./live-limits.js";
import { withReferences } from "./openapi.js";

type Json = Record<string, unknown>;

const Forgotten = Type.Object({ deleted: Type.Literal(true) });

/**
 * The paths below which vectors and probes are kept, on the inference port and on the Lab's, for their OpenAPI documents.
 * @param components where titled schemas go
 */
export function libraryPaths(components: Json, common: { tags?: string[] } = {}): Record<string, Json> {
  const { json, refused } = answers(components);
  const query = (name: string, schema: object, description: string) => ({
    name,
    in: "query",
    required: false,
    schema,
    description,
  });
  const layer = query(
    "layer",
    { type: "integer", minimum: 0, maximum: limits.layer_index },
    "The layer of a file that does not say it, as the file's own project counts.",
  );
  const model = query(
    "model",
    { type: "string" },
    "The model that a file without one belongs to; on the inference port the served one.",
  );
  const restamp = query("restamp", { const: "1" }, "Take a file that says that it belongs to another model.");
  const foreign = [
    query("format", { enum: vectorFormats }, "Whose PyTorch file it is: what its rows are, it does not say."),
    query("entry", { type: "string" }, "Which vector of a capping file."),
  ];
  const kinds = [
    ["vector", "Vector", StoredVector, foreign, ["json", "safetensors", "gguf"]],
    ["probe", "Probe", StoredProbe, [], ["json", "safetensors"]],
  ] as const;
  const paths = kinds.flatMap(([noun, title, stored, parameters, forms]) => {
    const list = {
      get: {
        operationId: `list${title}s`,
        ...common,
        summary: `The ${noun}s that are kept`,
        responses: {
          200: json("All of them.", Type.Object({ [`${noun}s`]: Type.Array(stored) })),
          ...refused(403),
        },
      },
    };
    const one = {
      parameters: [nameParameter(components)],
      get: {
        operationId: `get${title}`,
        ...common,
        summary: `One ${noun}, or its file`,
        parameters: [query("format", { enum: forms }, "json: what is known of it; else the file.")],
        responses: {
          200: {
            ...json("What is known of it.", stored),
            content: {
              ...json("", stored).content,
              "application/octet-stream": {},
            },
          },
          ...refused(400, 403, 404),
        },
      },
      put: {
        operationId: `put${title}`,
        ...common,
        summary: `Keep a ${noun}'s file, in place of one of that name`,
        description: `At most ${liveLimits.file_bytes} bytes.`,
        parameters: [layer, model, restamp, ...parameters],
        requestBody: { required: true, content: { "application/octet-stream": {} } },
        responses: { 200: json("What is known of it.", stored), ...refused(400, 403) },
      },
      delete: {
        operationId: `delete${title}`,
        ...common,
        summary: `Forget a ${noun}`,
        responses: { 200: json("Forgotten.", Forgotten), ...refused(403, 404) },
      },
    };
    return [
      [`/lab/${noun}s`, list],
      [`/lab/${noun}s/{name}`, one],
    ] as const;
  });
  return Object.fromEntries(paths);
}

/**
 * The paths below which sparse dictionaries and lenses are kept, on the Lab's port.
 * @param components where titled schemas go
 */
export function largePaths(components: Json, common: { tags?: string[] } = {}): Record<string, Json> {
  const { json, refused } = answers(components);
  const kinds = [
    ["dictionary", "dictionaries", "Dictionary", "Dictionaries", StoredDictionary, DictionaryRequest],
    ["lens", "lenses", "Lens", "Lenses", StoredLens, LensRequest],
  ] as const;
  const paths = kinds.flatMap(([noun, plural, title, titles, stored, request]) => {
    const what = noun === "dictionary" ? "sparse dictionaries" : "lenses that translate";
    const list = {
      get: {
        operationId: `list${titles}`,
        ...common,
        summary: `The ${what} that are kept`,
        responses: {
          200: json("All of them.", Type.Object({ [plural]: Type.Array(stored) })),
          ...refused(403),
        },
      },
    };
    const one = {
      parameters: [nameParameter(components)],
      get: {
        operationId: `get${title}`,
        ...common,
        summary: `One ${noun}`,
        responses: { 200: json("What is known of it.", stored), ...refused(403, 404) },
      },
      put: {
        operationId: `put${title}`,
        ...common,
        summary: `Keep a published ${noun} from a folder or the hub, in place of one of that name`,
        description: "Answers when it is kept; what the hub has is downloaded into the shared cache first.",
        requestBody: {
          required: true,
          content: { "application/json": { schema: withReferences(request, components) } },
        },
        responses: { 200: json("What is known of it.", stored), ...refused(400, 403) },
      },
      delete: {
        operationId: `delete${title}`,
        ...common,
        summary: `Forget a ${noun}`,
        responses: { 200: json("Forgotten.", Forgotten), ...refused(403, 404) },
      },
    };
    return [
      [`/lab/${plural}`, list],
      [`/lab/${plural}/{name}`, one],
    ] as const;
  });
  return Object.fromEntries(paths);
}

function answers(components: Json) {
  const json = (description: string, schema: TSchema) => ({
    description,
    content: { "application/json": { schema: withReferences(schema, components) } },
  });
  const refused = (...statuses: (keyof typeof refusals)[]) =>
    Object.fromEntries(statuses.map((status) => [status, json(refusals[status], ErrorBody)]));
  return { json, refused };
}

function nameParameter(components: Json): Json {
  return {
    name: "name",
    in: "path",
    required: true,
    schema: withReferences(Name, components),
    description: "Its name.",
  };
}

const refusals = {
  400: "A file, a layer or a model that does not fit; the sentence says which and the numbers.",
  403: "Not a program on this machine: LAN and browser requests are refused.",
  404: "There is none of that name.",
};
