import Type, { type TSchema } from "typebox";
import { Capabilities, CaptureResult } from "../contracts/capture.js";
import { version } from "../contracts/index.js";
import { inferenceLimits } from "../contracts/inference-limits.js";
import { ErrorBody } from "../contracts/job.js";
import { StoredProbe, StoredVector } from "../contracts/library.js";
import { llamaServerPaths } from "../contracts/llama-server.js";
import { withReferences } from "../contracts/openapi.js";
import { executionEndpoints } from "../executions/index.js";
import { type Answered, type Endpoint, HttpError, json, parameter, pathsOf, within } from "../http/index.js";
import { keptEndpoints } from "../library/endpoints.js";
import {
  applyTemplate,
  capabilities,
  capture,
  countChat,
  countMessage,
  countResponse,
  detokenize,
  embed,
  metrics,
  modelNamed,
  modelObject,
  properties,
  rerank,
  tokenize,
  told,
} from "./answers.js";
import { isServed, type Taking } from "./body.js";
import { chat, complete, completeNatively, infill, messages, responses } from "./generate.js";
import { forgetRows, listRows, newProbe, newVector, rowFeatures, rowFile } from "./live/answers.js";
import type { InferenceService } from "./service.js";

type Json = Record<string, unknown>;
type Own = Endpoint<InferenceService>;

/** What /v1 answers when it refuses. */
const OpenAiError = Type.Object(
  {
    error: Type.Object({
      message: Type.String({ description: "One sentence." }),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()], { description: "The field at fault." }),
      code: Type.Union([Type.String(), Type.Null()]),
    }),
  },
  { title: "OpenAiError" },
);

/** What llama-server's own paths answer when they refuse. */
const LlamaServerError = Type.Object(
  {
    error: Type.Object({
      code: Type.Integer({ description: "The status." }),
      message: Type.String({ description: "One sentence." }),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()], { description: "The field at fault." }),
    }),
  },
  { title: "LlamaServerError" },
);
const ofLlamaServer = new Set<string>([...llamaServerPaths.asked, ...llamaServerPaths.told]);

function refused(path: string, description: string): Answered {
  const own = ofLlamaServer.has(path) ? LlamaServerError : ErrorBody;
  return json(description, path.startsWith("/v1/") ? OpenAiError : own);
}

/** Answers that have no schema here have their API's shape. */
const answered = (schema: object = { type: "object" }) => json("The answer.", schema);

/** An endpoint that takes a body: its schema is the one that validates it. */
function posts(
  path: string,
  operationId: string,
  summary: string,
  { schema, answer }: Taking,
  { also = [], success = { 200: answered() } }: { also?: string[]; success?: Record<number, Answered> } = {},
): Own {
  const answers = {
    ...success,
    400: refused(path, "A field outside its limits; the sentence names it, the limit and the value."),
    503: refused(path, "Too many requests wait; Retry-After says when to come back."),
  };
  return { at: `POST ${path}`, also, operationId, summary, body: { json: schema }, answers, answer };
}

function tells(
  path: string,
  operationId: string,
  summary: string,
  answer: Own["answer"],
  { also = [], schema }: { also?: string[]; schema?: TSchema } = {},
): Own {
  const answers = { 200: answered(schema), 403: refused(path, "Not for whoever asks.") };
  return { at: `GET ${path}`, also, operationId, summary, answers, answer };
}

const rowsPath = "/lab/captures/{id}";
const rows = {
  shared: { parameters: [parameter("path", "id", { type: "string" })] },
};
const absent = refused(rowsPath, "There is none of that id; the oldest make room for new ones.");

const readOnly = (path: string): Own => ({
  at: `POST ${path}`,
  unlisted: "a refusal",
  answer() {
    throw new HttpError(405, `${path} is read only here.`, { headers: { Allow: "GET, HEAD" } });
  },
});

/** Every endpoint of the inference server. */
export const inferenceEndpoints: readonly Own[] = [
  ...within(keptEndpoints, (service: InferenceService) => ({
    ...service.library,
    // What is sent to this port is for the model that it serves.
    async modelNamed(named: string | undefined) {
      const { model } = service.library;
      if (named === undefined || isServed(service, named)) return model;
      throw new HttpError(400, `model: ${model.id} is served here, not ${named.slice(0, 200)}.`);
    },
  })),
  {
    ...rows,
    at: `GET ${rowsPath}`,
    operationId: "getCapture",
    summary: "Kept rows as safetensors, or as npz",
    parameters: [parameter("query", "format", { enum: ["safetensors", "npz"] })],
    answers: { 200: { description: "The rows.", bytes: true }, 404: absent },
    answer: rowFile,
  },
  {
    ...rows,
    at: `DELETE ${rowsPath}`,
    operationId: "deleteCapture",
    summary: "Forget kept rows",
    answers: { 200: { description: "Forgotten." }, 404: absent },
    answer: forgetRows,
  },
  {
    ...rows,
    at: `GET ${rowsPath}/features`,
    operationId: "getCaptureFeatures",
    summary: "Which features of a dictionary are active in kept rows",
    parameters: [
      { ...parameter("query", "dictionary", { type: "string" }), required: true },
      parameter("query", "top", { type: "integer", default: 10 }),
    ],
    answers: {
      200: json("The strongest of each row.", { type: "object" }),
      400: refused(rowsPath, "No dictionary is named, or it does not fit the model or the rows."),
      404: absent,
    },
    answer: rowFeatures,
  },
  posts("/v1/chat/completions", "chat", "Chat; streams with `stream`", chat),
  posts("/v1/chat/completions/input_tokens", "countChat", "How many tokens a chat's prompt has", countChat),
  posts("/v1/responses", "respond", "OpenAI's Responses; nothing is stored", responses),
  posts("/v1/responses/input_tokens", "countResponse", "How many tokens its prompt has", countResponse),
  posts("/v1/messages", "message", "Anthropic's Messages", messages),
  posts("/v1/messages/count_tokens", "countMessage", "How many tokens its prompt has", countMessage),
  posts("/v1/completions", "complete", "Text that goes on", complete),
  posts("/v1/embeddings", "embed", "Embeddings, and how they are pooled", embed),
  posts("/v1/rerank", "rerank", "Documents by how well they answer a query", rerank, {
    also: ["/v1/reranking"],
  }),
  posts("/completion", "completeNatively", "llama-server's own completion", completeNatively, {
    also: ["/completions"],
  }),
  posts("/infill", "infill", "Text between two texts", infill),
  posts("/tokenize", "tokenize", "The tokens of a text", tokenize),
  posts("/detokenize", "detokenize", "The text of tokens", detokenize),
  posts("/apply-template", "applyTemplate", "A chat as the template writes it", applyTemplate),
  posts("/lab/activations", "captureActivations", "Measure the resident model directly", capture, {
    success: { 200: answered(CaptureResult) },
  }),
  posts("/lab/vectors", "makeVector", "A vector from texts, into the library", newVector, {
    success: { 201: answered(StoredVector) },
  }),
  posts("/lab/probes", "makeProbe", "A probe from texts, into the library", newProbe, {
    success: { 201: answered(StoredProbe) },
  }),
  tells("/v1/models", "listModels", "The model that is served", (service) => ({
    object: "list",
    data: [modelObject(service)],
  })),
  {
    // A hub id has a slash; some clients write it as it is.
    at: "GET /v1/models/{*id}",
    unlisted: "one path takes no slashes in OpenAPI",
    answer: (service, { params }) => modelNamed(service, params.id as string),
  },
  tells("/health", "health", "Whether it serves", () => ({ status: "ok" }), { also: ["/v1/health"] }),
  tells("/props", "properties", "llama-server's properties", properties),
  tells("/slots", "slots", "What each slot does", (service, ctx) => told(service, ctx, "slots")),
  tells("/lora-adapters", "adapters", "The LoRA adapters and their scales", (service, ctx) =>
    told(service, ctx, "adapters"),
  ),
  readOnly("/props"),
  readOnly("/lora-adapters"),
  tells("/stats", "stats", "Counts, speeds, percentiles", async ({ stats, engine, rows: kept }) =>
    stats.report(engine.info, await engine.metrics(), kept),
  ),
  { at: "GET /metrics", unlisted: "Prometheus' own format", answer: metrics },
  tells("/lab/capabilities", "getCapabilities", "What can be captured", capabilities, {
    schema: Capabilities,
  }),
  tells("/lab/captures", "listCaptures", "The rows that requests kept", listRows),
  ...within(executionEndpoints, ({ executions }: InferenceService) => executions),
  {
    at: "GET /openapi.json",
    unlisted: "the description itself",
    answer: (_, ctx) => servingDocument(`http://${ctx.host}`),
  },
];

/**
 * The OpenAPI 3.1 description of what `tapline serve` takes, made from the schemas that validate it.
 * @param origin where this service is reached
 */
export function servingDocument(origin: string): Json {
  const components: Json = {};
  const paths = pathsOf(inferenceEndpoints, (schema) => withReferences(schema, components));
  return {
    openapi: "3.1.1",
    info: {
      title: "tapline serve",
      version,
      description:
        `One model behind an OpenAI-style API. Bodies have at most ${inferenceLimits.body_bytes} bytes; fields that ` +
        "nobody knows are ignored under /v1, fields that would change an answer and do not exist here are refused.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: origin, description: "This service." }],
    security: [{}, { key: [] }],
    paths,
    components: {
      securitySchemes: {
        key: { type: "http", scheme: "bearer", description: "--api-key, where there is one." },
      },
      schemas: components,
    },
  };
}
