import type { Context } from "koa";
import type { Static, TSchema } from "typebox";
import { ChatCountRequest, type ChatRequest, EmbeddingRequest, RerankRequest } from "../contracts/chat.js";
import { CountRequest } from "../contracts/messages.js";
import { ResponsesCountRequest } from "../contracts/responses.js";
import {
  type Unsupported,
  unsupportedInChat,
  unsupportedInMessages,
  unsupportedInResponses,
} from "../contracts/unsupported.js";
import { clientGone, createRouter, HttpError, type Routes } from "../http/index.js";
import { refusal } from "./check-body.js";
import { chatOfCount } from "./forms/messages-request.js";
import { chatOfResponses } from "./forms/responses-request.js";
import { chat, complete, countTokens, isServed, messages, readBody, responses } from "./generate.js";
import { wholeBody } from "./reply.js";
import type { InferenceService } from "./service.js";

/** The OpenAI-style endpoints. */
export function v1Routes(service: InferenceService): Routes {
  const router = createRouter("/v1");
  const count = <S extends TSchema>(
    path: string,
    schema: S,
    unsupported: Unsupported,
    chatOf: (body: Static<S>) => ChatRequest,
  ) => {
    router.post(path, async (ctx) => {
      const body = chatOf(await readBody(service, ctx, schema, unsupported));
      const input_tokens = await admitted(service, ctx, (signal) => countTokens(service, body, signal));
      // OpenAI's answers say what they are, Anthropic's do not.
      ctx.body = { input_tokens, ...(!path.startsWith("/messages") && { object: "response.input_tokens" }) };
    });
  };
  router.get("/models", (ctx) => {
    ctx.body = { object: "list", data: [modelObject(service)] };
  });
  // A hub id has a slash; some clients write it as it is.
  router.get("/models/*id", (ctx) => {
    if (!isServed(service, ctx.params.id as string)) {
      throw new HttpError(404, `The model ${ctx.params.id} is not served here.`, {
        param: "model",
        code: "model_not_found",
      });
    }
    ctx.body = modelObject(service);
  });
  router.post("/chat/completions", (ctx) => chat(service, ctx));
  router.post("/completions", (ctx) => complete(service, ctx));
  router.get("/health", (ctx) => {
    ctx.body = { status: "ok" };
  });
  router.post("/responses", (ctx) => responses(service, ctx));
  router.post("/messages", (ctx) => messages(service, ctx));
  count("/chat/completions/input_tokens", ChatCountRequest, unsupportedInChat, (body) => body);
  count("/responses/input_tokens", ResponsesCountRequest, unsupportedInResponses, chatOfResponses);
  count("/messages/count_tokens", CountRequest, unsupportedInMessages, chatOfCount);
  for (const path of ["/rerank", "/reranking"]) {
    router.post(path, (ctx) => rerank(service, ctx));
  }
  router.post("/embeddings", (ctx) => embed(service, ctx));
  return router;
}

function modelObject({ engine: { info }, aliases, startedAt }: InferenceService) {
  return {
    id: info.id,
    object: "model",
    created: startedAt,
    owned_by: "tapline",
    ...(aliases.length > 1 && { aliases }),
    meta: {
      architecture: info.architecture,
      quantization: info.quantization,
      n_vocab: info.nVocab,
      n_ctx: info.slotContext,
      n_ctx_train: info.nCtxTrain,
      n_embd: info.nEmbd,
      n_layer: info.nLayer,
      n_params: info.nParams,
      pooling: info.embeddings ? info.pooling : undefined,
      size: info.bytes,
    },
  };
}

async function embed(service: InferenceService, ctx: Context): Promise<void> {
  const { dimensions, ...body } = await readBody(service, ctx, EmbeddingRequest);
  const { info } = service.engine;
  if (!info.embeddings) throw new HttpError(400, "Embeddings are off; start the server with --embeddings.");
  if (dimensions !== undefined && dimensions !== info.nEmbd) {
    throw refusal("dimensions", `dimensions: this model's embeddings have ${info.nEmbd}, got ${dimensions}.`);
  }
  ctx.body = await admitted(service, ctx, async (signal) =>
    wholeBody(await service.engine.request("embeddings", body, signal)),
  );
  ctx.type = "application/json";
}

/** `POST /v1/rerank`: how well each document answers a query, best first. */
async function rerank(service: InferenceService, ctx: Context): Promise<void> {
  const body = await readBody(service, ctx, RerankRequest);
  ctx.body = await admitted(service, ctx, async (signal) =>
    wholeBody(await service.engine.request("rerank", body, signal)),
  );
  ctx.type = "application/json";
}

/** Does one request's work when there is room, until its client goes away. */
async function admitted<T>(
  service: InferenceService,
  ctx: Context,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const leave = service.admission.enter();
  try {
    return await work(clientGone(ctx).signal);
  } finally {
    leave();
  }
}
