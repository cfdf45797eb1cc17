import Type, { type Static, type TSchema } from "typebox";
import { Capabilities, CaptureRequest, CaptureResult } from "../contracts/capture.js";
import {
  ChatCountRequest,
  type ChatRequest,
  ChatRequest as ChatSchema,
  CompletionRequest,
  DetokenizeRequest,
  EmbeddingRequest,
  InfillRequest,
  NativeCompletionRequest,
  RerankRequest,
  TemplateRequest,
  TokenizeRequest,
} from "../contracts/chat.js";
import { version } from "../contracts/index.js";
import { inferenceLimits } from "../contracts/inference-limits.js";
import { ErrorBody } from "../contracts/job.js";
import { ProbeRequest, StoredProbe, StoredVector, VectorRequest } from "../contracts/library.js";
import { limits } from "../contracts/limits.js";
import { llamaServerPaths } from "../contracts/llama-server.js";
import { CountRequest, MessagesRequest } from "../contracts/messages.js";
import { withReferences } from "../contracts/openapi.js";
import { ResponsesCountRequest, ResponsesRequest } from "../contracts/responses.js";
import {
  type Unsupported,
  unsupportedInChat,
  unsupportedInCompletions,
  unsupportedInMessages,
  unsupportedInNative,
  unsupportedInResponses,
} from "../contracts/unsupported.js";
import {
  type Answered,
  checked,
  type Endpoint,
  HttpError,
  pathsOf,
  type RouteContext,
  readJson,
  within,
} from "../http/index.js";
import { keptEndpoints } from "../library/endpoints.js";
import { executionEndpoints } from "../requests/index.js";
import {
  capabilities,
  count,
  embed,
  metrics,
  modelNamed,
  modelObject,
  passedOn,
  properties,
  told,
} from "./answers.js";
import { checkMessages, checkTokens, checkTools } from "./check-body.js";
import { chatOfCount } from "./forms/messages-request.js";
import { chatOfResponses } from "./forms/responses-request.js";
import { chat, complete, completeNatively, isServed, messages, readBody, responses } from "./generate.js";
import { forgetRows, listRows, making, rowFeatures, rowFile } from "./live/answers.js";
import { makeProbe } from "./live/make-probe.js";
import { makeVector } from "./live/make-vector.js";
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
  return { description, json: path.startsWith("/v1/") ? OpenAiError : own };
}

/** Answers that have no schema here have their API's shape. */
const answered = (json: TSchema | object = { type: "object" }): Answered => ({
  description: "The answer.",
  json,
});

type Answer<Rest extends unknown[] = []> = (
  service: InferenceService,
  ctx: RouteContext,
  ...rest: Rest
) => unknown;

/** An endpoint that takes a body: its schema is the one that validates it. */
function posts(
  path: string,
  [operationId, summary, json]: readonly [operationId: string, summary: string, body: TSchema],
  answer: Answer,
  { also = [], success = { 200: answered() } }: { also?: string[]; success?: Record<number, Answered> } = {},
): Own {
  const answers = {
    ...success,
    400: refused(path, "A field outside its limits; the sentence names it, the limit and the value."),
    503: refused(path, "Too many requests wait; Retry-After says when to come back."),
  };
  return { method: "post", path, also, operationId, summary, body: { json }, answers, answer };
}

/** The same of the OpenAI-style endpoints and llama-server's. */
function asks<S extends TSchema>(
  path: string,
  said: readonly [operationId: string, summary: string, body: S],
  answer: Answer<[body: Static<S>]>,
  unsupported?: Unsupported,
  also?: string[],
): Own {
  const read: Answer = async (service, ctx) =>
    answer(service, ctx, await readBody(service, ctx, said[2], unsupported));
  return posts(path, said, read, { also });
}

function tells(
  path: string,
  operationId: string,
  summary: string,
  answer: Answer,
  { also = [], json }: { also?: string[]; json?: TSchema } = {},
): Own {
  const answers = { 200: answered(json), 403: refused(path, "Not for whoever asks.") };
  return { method: "get", path, also, operationId, summary, answers, answer };
}

const rowsPath = "/lab/captures/{id}";
const rows = {
  path: rowsPath,
  shared: { parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }] },
};
const absent = refused(rowsPath, "There is none of that id; the oldest make room for new ones.");

const readOnly = (path: string): Own => ({
  method: "post",
  path,
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
    method: "get",
    operationId: "getCapture",
    summary: "Kept rows as safetensors, or as npz",
    parameters: [{ name: "format", in: "query", required: false, schema: { enum: ["safetensors", "npz"] } }],
    answers: { 200: { description: "The rows.", bytes: true }, 404: absent },
    answer: rowFile,
  },
  {
    ...rows,
    method: "delete",
    operationId: "deleteCapture",
    summary: "Forget kept rows",
    answers: { 200: { description: "Forgotten." }, 404: absent },
    answer: forgetRows,
  },
  {
    ...rows,
    path: `${rowsPath}/features`,
    method: "get",
    operationId: "getCaptureFeatures",
    summary: "Which features of a dictionary are active in kept rows",
    parameters: [
      { name: "dictionary", in: "query", required: true, schema: { type: "string" } },
      { name: "top", in: "query", required: false, schema: { type: "integer", default: 10 } },
    ],
    answers: {
      200: { description: "The strongest of each row.", json: { type: "object" } },
      400: refused(rowsPath, "No dictionary is named, or it does not fit the model or the rows."),
      404: absent,
    },
    answer: rowFeatures,
  },
  asks("/v1/chat/completions", ["chat", "Chat; streams with `stream`", ChatSchema], chat, unsupportedInChat),
  asks(
    "/v1/chat/completions/input_tokens",
    ["countChat", "How many tokens a chat's prompt has", ChatCountRequest],
    (service, ctx, body) => countOpenAi(service, ctx, body),
    unsupportedInChat,
  ),
  asks(
    "/v1/responses",
    ["respond", "OpenAI's Responses; nothing is stored", ResponsesRequest],
    responses,
    unsupportedInResponses,
  ),
  asks(
    "/v1/responses/input_tokens",
    ["countResponse", "How many tokens its prompt has", ResponsesCountRequest],
    (service, ctx, body) => countOpenAi(service, ctx, chatOfResponses(body)),
    unsupportedInResponses,
  ),
  asks("/v1/messages", ["message", "Anthropic's Messages", MessagesRequest], messages, unsupportedInMessages),
  asks(
    "/v1/messages/count_tokens",
    ["countMessage", "How many tokens its prompt has", CountRequest],
    (service, ctx, body) => count(service, ctx, chatOfCount(body)),
    unsupportedInMessages,
  ),
  asks(
    "/v1/completions",
    ["complete", "Text that goes on", CompletionRequest],
    complete,
    unsupportedInCompletions,
  ),
  asks("/v1/embeddings", ["embed", "Embeddings, and how they are pooled", EmbeddingRequest], embed),
  asks(
    "/v1/rerank",
    ["rerank", "Documents by how well they answer a query", RerankRequest],
    (service, ctx, body) => passedOn(service, ctx, "rerank", body),
    {},
    ["/v1/reranking"],
  ),
  asks(
    "/completion",
    ["completeNatively", "llama-server's own completion", NativeCompletionRequest],
    completeNatively("native-completion"),
    unsupportedInNative,
    ["/completions"],
  ),
  asks(
    "/infill",
    ["infill", "Text between two texts", InfillRequest],
    completeNatively("infill"),
    unsupportedInNative,
  ),
  asks("/tokenize", ["tokenize", "The tokens of a text", TokenizeRequest], (service, ctx, body) =>
    passedOn(service, ctx, "tokenize", body),
  ),
  asks("/detokenize", ["detokenize", "The text of tokens", DetokenizeRequest], (service, ctx, body) => {
    checkTokens(service.engine.info, body.tokens);
    return passedOn(service, ctx, "detokenize", body);
  }),
  asks(
    "/apply-template",
    ["applyTemplate", "A chat as the template writes it", TemplateRequest],
    (service, ctx, body) => {
      checkMessages(body.messages);
      checkTools(body, service.engine.info.templateCapabilities);
      return passedOn(service, ctx, "apply-template", body);
    },
  ),
  posts(
    "/lab/activations",
    ["captureActivations", "Measure the resident model directly", CaptureRequest],
    async ({ captures }, ctx) => {
      const body = await readJson(ctx, { limit: limits.capture_body_bytes });
      return captures.run(checked(CaptureRequest, body) as CaptureRequest);
    },
    { success: { 200: answered(CaptureResult) } },
  ),
  posts(
    "/lab/vectors",
    ["makeVector", "A vector from texts, into the library", VectorRequest],
    making(VectorRequest, makeVector),
    { success: { 201: answered(StoredVector) } },
  ),
  posts(
    "/lab/probes",
    ["makeProbe", "A probe from texts, into the library", ProbeRequest],
    making(ProbeRequest, makeProbe),
    { success: { 201: answered(StoredProbe) } },
  ),
  tells("/v1/models", "listModels", "The model that is served", (service) => ({
    object: "list",
    data: [modelObject(service)],
  })),
  {
    method: "get",
    // A hub id has a slash; some clients write it as it is.
    path: "/v1/models/{*id}",
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
  { method: "get", path: "/metrics", unlisted: "Prometheus' own format", answer: metrics },
  tells("/lab/capabilities", "getCapabilities", "What can be captured", capabilities, { json: Capabilities }),
  tells("/lab/captures", "listCaptures", "The rows that requests kept", listRows),
  ...within(executionEndpoints, ({ executions }: InferenceService) => executions),
  {
    method: "get",
    path: "/openapi.json",
    unlisted: "the description itself",
    answer: (_, ctx) => servingDocument(`http://${ctx.host}`),
  },
];

/** OpenAI's answers say what they are, Anthropic's do not. */
async function countOpenAi(service: InferenceService, ctx: RouteContext, body: ChatRequest) {
  return { ...(await count(service, ctx, body)), object: "response.input_tokens" };
}

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
