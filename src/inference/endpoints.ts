import Type, { type TSchema } from "typebox";
import { Capabilities, CaptureRequest, CaptureResult } from "../contracts/capture.js";
import {
  ChatCountRequest,
  ChatRequest,
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
import { libraryPaths } from "../contracts/library-paths.js";
import { llamaServerPaths } from "../contracts/llama-server.js";
import { CountRequest, MessagesRequest } from "../contracts/messages.js";
import { withReferences } from "../contracts/openapi.js";
import { ResponsesCountRequest, ResponsesRequest } from "../contracts/responses.js";

type Json = Record<string, unknown>;

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

/** Every endpoint that takes a body: its schema is the one that validates it. */
const bodies: readonly [path: string, operationId: string, summary: string, schema: TSchema][] = [
  ["/v1/chat/completions", "chat", "Chat; streams with `stream`", ChatRequest],
  ["/v1/chat/completions/input_tokens", "countChat", "How many tokens a chat's prompt has", ChatCountRequest],
  ["/v1/responses", "respond", "OpenAI's Responses; nothing is stored", ResponsesRequest],
  ["/v1/responses/input_tokens", "countResponse", "How many tokens its prompt has", ResponsesCountRequest],
  ["/v1/messages", "message", "Anthropic's Messages", MessagesRequest],
  ["/v1/messages/count_tokens", "countMessage", "How many tokens its prompt has", CountRequest],
  ["/v1/completions", "complete", "Text that goes on", CompletionRequest],
  ["/v1/embeddings", "embed", "Embeddings, and how they are pooled", EmbeddingRequest],
  ["/v1/rerank", "rerank", "Documents by how well they answer a query", RerankRequest],
  ["/completion", "completeNatively", "llama-server's own completion", NativeCompletionRequest],
  ["/infill", "infill", "Text between two texts", InfillRequest],
  ["/tokenize", "tokenize", "The tokens of a text", TokenizeRequest],
  ["/detokenize", "detokenize", "The text of tokens", DetokenizeRequest],
  ["/apply-template", "applyTemplate", "A chat as the template writes it", TemplateRequest],
  ["/lab/activations", "captureActivations", "Measure the resident model directly", CaptureRequest],
  ["/lab/vectors", "makeVector", "A vector from texts, into the library", VectorRequest],
  ["/lab/probes", "makeProbe", "A probe from texts, into the library", ProbeRequest],
];

const questions: readonly [path: string, operationId: string, summary: string][] = [
  ["/v1/models", "listModels", "The model that is served"],
  ["/health", "health", "Whether it serves"],
  ["/props", "properties", "llama-server's properties"],
  ["/slots", "slots", "What each slot does"],
  ["/lora-adapters", "adapters", "The LoRA adapters and their scales"],
  ["/stats", "stats", "Counts, speeds, percentiles"],
  ["/lab/capabilities", "getCapabilities", "What can be captured"],
  ["/lab/captures", "listCaptures", "The rows that requests kept"],
];

/** Answers that have a schema here; the others have their API's shape. */
const answers: Readonly<Record<string, TSchema>> = {
  "/lab/activations": CaptureResult,
  "/lab/capabilities": Capabilities,
  "/lab/vectors": StoredVector,
  "/lab/probes": StoredProbe,
};

/** Rows that a request kept. */
function capturePaths(refused: (path: string, description: string) => Json): Record<string, Json> {
  const path = "/lab/captures/{id}";
  const file = { description: "The rows.", content: { "application/octet-stream": {} } };
  const absent = refused(path, "There is none of that id; the oldest make room for new ones.");
  return {
    [path]: {
      parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
      get: {
        operationId: "getCapture",
        summary: "Kept rows as safetensors, or as npz",
        parameters: [
          { name: "format", in: "query", required: false, schema: { enum: ["safetensors", "npz"] } },
        ],
        responses: { 200: file, 404: absent },
      },
      delete: {
        operationId: "deleteCapture",
        summary: "Forget kept rows",
        responses: { 200: { description: "Forgotten." }, 404: absent },
      },
    },
    [`${path}/features`]: {
      parameters: [{ name: "id", in: "path", required: true, schema: { type: "string" } }],
      get: {
        operationId: "getCaptureFeatures",
        summary: "Which features of a dictionary are active in kept rows",
        parameters: [
          { name: "dictionary", in: "query", required: true, schema: { type: "string" } },
          { name: "top", in: "query", required: false, schema: { type: "integer", default: 10 } },
        ],
        responses: {
          200: {
            description: "The strongest of each row.",
            content: { "application/json": { schema: { type: "object" } } },
          },
          400: refused(path, "No dictionary is named, or it does not fit the model or the rows."),
          404: absent,
        },
      },
    },
  };
}

/** What a request makes is new. */
const made = new Set(["/lab/vectors", "/lab/probes"]);

/**
 * The OpenAPI 3.1 description of what `tapline serve` takes, made from the schemas that validate it.
 * @param origin where this service is reached
 */
export function servingDocument(origin: string): Json {
  const components: Json = {};
  const content = (schema: TSchema | Json) => ({
    "application/json": { schema: withReferences(schema, components) },
  });
  const answered = (path: string) => ({
    description: "The answer.",
    content: content(answers[path] ?? { type: "object" }),
  });
  const refused = (path: string, description: string) => ({
    description,
    content: content(
      path.startsWith("/v1/") ? OpenAiError : ofLlamaServer.has(path) ? LlamaServerError : ErrorBody,
    ),
  });
  const taking = bodies.map(([path, operationId, summary, schema]) => {
    const responses = {
      [made.has(path) ? 201 : 200]: answered(path),
      400: refused(path, "A field outside its limits; the sentence names it, the limit and the value."),
      503: refused(path, "Too many requests wait; Retry-After says when to come back."),
    };
    const post = {
      operationId,
      summary,
      requestBody: { required: true, content: content(schema) },
      responses,
    };
    return [path, { post }];
  });
  const telling = questions.map(([path, operationId, summary]) => {
    const responses = { 200: answered(path), 403: refused(path, "Not for whoever asks.") };
    return [path, { get: { operationId, summary, responses } }];
  });
  const paths: Record<string, Json> = { ...libraryPaths(components), ...capturePaths(refused) };
  for (const [path, methods] of [...taking, ...telling]) {
    paths[path as string] = { ...paths[path as string], ...(methods as Json) };
  }
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
