import Type, { type TSchema } from "typebox";
import { Capabilities, CaptureResult } from "../contracts/capture.js";
import { ForwardFile } from "../contracts/forward.js";
import { version } from "../contracts/index.js";
import { inferenceLimits } from "../contracts/inference-limits.js";
import { ErrorBody } from "../contracts/job.js";
import { StoredProbe, StoredVector } from "../contracts/library.js";
import { llamaServerPaths } from "../contracts/llama-server.js";
import { withReferences } from "../contracts/openapi.js";
import { WeightFiles, WeightList } from "../contracts/weights.js";
import { executionEndpoints } from "../executions/index.js";
import {
  type Endpoint,
  HttpError,
  json,
  parameter,
  pathsOf,
  type ResponseSpec,
  within,
} from "../http/index.js";
import { uploadEndpoints } from "../library/endpoints.js";
import {
  applyTemplate,
  capabilities,
  capture,
  countChat,
  countMessage,
  countResponse,
  detokenize,
  embed,
  engineState,
  forward,
  metrics,
  modelList,
  modelNamed,
  properties,
  rerank,
  tokenize,
  tokenizerInfo,
  writeWeights,
} from "./answers.js";
import type { Taking } from "./body.js";
import { chat, complete, completeNatively, infill, messages, responses } from "./generate.js";
import { forgetRows, listRows, newProbe, newVector, rowFeatures, rowFile } from "./live/answers.js";
import { livePlan } from "./live/plan.js";
import { isServed } from "./served-model.js";
import type { InferenceService } from "./service.js";

type Json = Record<string, unknown>;
type Own = Endpoint<InferenceService>;

/** Error bodies under /v1. */
const OpenAiError = Type.Object(
  {
    error: Type.Object({
      message: Type.String({ description: "One sentence." }),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()], { description: "The invalid field." }),
      code: Type.Union([Type.String(), Type.Null()]),
    }),
  },
  { title: "OpenAiError" },
);

/** Error bodies of llama-server's paths. */
const LlamaServerError = Type.Object(
  {
    error: Type.Object({
      code: Type.Integer({ description: "The HTTP status." }),
      message: Type.String({ description: "One sentence." }),
      type: Type.String(),
      param: Type.Union([Type.String(), Type.Null()], { description: "The invalid field." }),
    }),
  },
  { title: "LlamaServerError" },
);
const ofLlamaServer = new Set<string>([...llamaServerPaths.asked, ...llamaServerPaths.told]);

function refused(path: string, description: string): ResponseSpec {
  const own = ofLlamaServer.has(path) ? LlamaServerError : ErrorBody;
  return json(description, path.startsWith("/v1/") ? OpenAiError : own);
}

/** Answers without a schema follow their API's format. */
const answered = (schema: object = { type: "object" }) => json("The answer.", schema);

/** An endpoint with a body, which is validated by the same schema. */
function posts(
  path: string,
  operationId: string,
  summary: string,
  { schema, answer }: Taking,
  {
    also = [],
    success = { 200: answered() },
  }: { also?: string[]; success?: Record<number, ResponseSpec> } = {},
): Own {
  const answers = {
    ...success,
    400: refused(path, "A field is invalid; the message has the field, the limit and the value."),
    503: refused(path, "Too many requests are waiting; see Retry-After."),
  };
  return { at: `POST ${path}`, also, operationId, summary, body: { json: schema }, answers, answer };
}

function gets(
  path: string,
  operationId: string,
  summary: string,
  answer: Own["answer"],
  { also = [], schema }: { also?: string[]; schema?: TSchema } = {},
): Own {
  const answers = { 200: answered(schema), 403: refused(path, "The client has no access.") };
  return { at: `GET ${path}`, also, operationId, summary, answers, answer };
}

const rowsPath = "/lab/captures/{id}";
const rows = {
  shared: { parameters: [parameter("path", "id", { type: "string" })] },
};
const absent = refused(rowsPath, "There is no capture of that id; old captures are evicted.");

const readOnly = (path: string): Own => ({
  at: `POST ${path}`,
  unlisted: "a refusal",
  answer() {
    throw new HttpError(405, `${path} is read only here.`, { headers: { Allow: "GET, HEAD" } });
  },
});

/** Every endpoint of the inference server. */
export const inferenceEndpoints: readonly Own[] = [
  ...within(uploadEndpoints, (service: InferenceService) => ({
    ...service.library,
    // Uploads to this port are for the served model.
    async modelNamed(named: string | undefined) {
      const { model } = service.library;
      if (named === undefined || isServed(service, named)) return model;
      throw new HttpError(400, `model: ${model.id} is served here, not ${named.slice(0, 200)}.`);
    },
    async checkProfile(settings) {
      await livePlan(settings, service.library, true);
    },
  })),
  {
    ...rows,
    at: `GET ${rowsPath}`,
    operationId: "getCapture",
    summary: "Captured activations as safetensors or npz",
    parameters: [parameter("query", "format", { enum: ["safetensors", "npz"] })],
    answers: { 200: { description: "The activations.", bytes: true }, 404: absent },
    answer: rowFile,
  },
  {
    ...rows,
    at: `DELETE ${rowsPath}`,
    operationId: "deleteCapture",
    summary: "Delete captured activations",
    answers: { 200: { description: "Deleted." }, 404: absent },
    answer: forgetRows,
  },
  {
    ...rows,
    at: `GET ${rowsPath}/features`,
    operationId: "getCaptureFeatures",
    summary: "Active dictionary features in captured activations",
    parameters: [
      { ...parameter("query", "dictionary", { type: "string" }), required: true },
      parameter("query", "top", { type: "integer", default: 10 }),
    ],
    answers: {
      200: json("The strongest features of each activation.", { type: "object" }),
      400: refused(rowsPath, "The dictionary is missing, or does not fit the model or the activations."),
      404: absent,
    },
    answer: rowFeatures,
  },
  posts("/v1/chat/completions", "chat", "Chat; supports streaming with `stream`", chat),
  posts("/v1/chat/completions/input_tokens", "countChat", "Count the tokens of a chat's prompt", countChat),
  posts("/v1/responses", "respond", "OpenAI's Responses API; responses are not stored", responses),
  posts("/v1/responses/input_tokens", "countResponse", "Count the tokens of its prompt", countResponse),
  posts("/v1/messages", "message", "Anthropic's Messages API", messages),
  posts("/v1/messages/count_tokens", "countMessage", "Count the tokens of its prompt", countMessage),
  posts("/v1/completions", "complete", "Text completion", complete),
  posts("/v1/embeddings", "embed", "Embeddings, with the model's pooling", embed),
  posts("/v1/rerank", "rerank", "Rank documents by relevance to a query", rerank, {
    also: ["/v1/reranking"],
  }),
  posts("/completion", "completeNatively", "llama-server's completion", completeNatively, {
    also: ["/completions"],
  }),
  posts("/infill", "infill", "Fill in text between a prefix and a suffix", infill),
  posts("/tokenize", "tokenize", "Tokenize text", tokenize),
  posts("/detokenize", "detokenize", "Convert tokens to text", detokenize),
  posts("/apply-template", "applyTemplate", "Format a chat with the chat template", applyTemplate),
  posts("/lab/forward", "forward", "Run texts through the resident model", forward, {
    success: {
      200: {
        description:
          "A safetensors file with tokens, lengths, captures by name and logits; with transfer: file, its place.",
        json: ForwardFile,
        bytes: true,
      },
      409: refused("/lab/forward", "Another model is served."),
      429: refused("/lab/forward", "Too many calls are waiting; see Retry-After."),
    },
  }),
  gets("/lab/weights", "listWeights", "The model's weights and metadata", ({ weights }) => weights.list(), {
    schema: WeightList,
  }),
  posts("/lab/weights", "writeWeights", "Write weights as float32 arrays into files", writeWeights, {
    success: { 200: answered(WeightFiles) },
  }),
  posts("/lab/activations", "captureActivations", "Capture activations of the resident model", capture, {
    success: { 200: answered(CaptureResult) },
  }),
  posts("/lab/vectors", "makeVector", "Make a vector from texts and save it", newVector, {
    success: { 201: answered(StoredVector) },
  }),
  posts("/lab/probes", "makeProbe", "Train a probe on texts and save it", newProbe, {
    success: { 201: answered(StoredProbe) },
  }),
  gets("/v1/models", "listModels", "The served model and its profiles", modelList),
  {
    // Hub ids have a slash, which some clients do not escape.
    at: "GET /v1/models/{*id}",
    unlisted: "OpenAPI path parameters cannot contain slashes",
    answer: (service, ctx) => modelNamed(service, ctx, ctx.params.id as string),
  },
  gets("/health", "health", "Health check", () => ({ status: "ok" }), { also: ["/v1/health"] }),
  gets("/props", "properties", "llama-server's properties", properties),
  gets("/tokenizer_info", "tokenizerInfo", "Special tokens and the chat template, as in vLLM", tokenizerInfo),
  gets("/slots", "slots", "State of each slot", (service, ctx) => engineState(service, ctx, "slots")),
  gets("/lora-adapters", "adapters", "The LoRA adapters and their scales", (service, ctx) =>
    engineState(service, ctx, "adapters"),
  ),
  readOnly("/props"),
  readOnly("/lora-adapters"),
  gets("/stats", "stats", "Counts, speeds and latency percentiles", async ({ stats, engine, rows: kept }) =>
    stats.report(engine.info, await engine.metrics(), kept),
  ),
  { at: "GET /metrics", unlisted: "Prometheus format", answer: metrics },
  gets("/lab/capabilities", "getCapabilities", "Support and limits of captures", capabilities, {
    schema: Capabilities,
  }),
  gets("/lab/captures", "listCaptures", "Activations captured by requests", listRows),
  ...within(executionEndpoints, ({ executions }: InferenceService) => executions),
  {
    at: "GET /openapi.json",
    unlisted: "this description itself",
    answer: (_, ctx) => servingDocument(`http://${ctx.host}`),
  },
];

/**
 * The OpenAPI 3.1 description of `tapline serve`, generated from the schemas that validate its requests.
 * @param origin origin of this service
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
        `One model behind an OpenAI-style API. Bodies have at most ${inferenceLimits.body_bytes} bytes; ` +
        "unknown fields are ignored under /v1, but unsupported fields that would change the answer are refused.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: origin, description: "This service." }],
    security: [{}, { key: [] }],
    paths,
    components: {
      securitySchemes: {
        key: { type: "http", scheme: "bearer", description: "The server's --api-key, if set." },
      },
      schemas: components,
    },
  };
}
