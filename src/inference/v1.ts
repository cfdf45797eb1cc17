import type Router from "@koa/router";
import type { Context } from "koa";
import { EmbeddingRequest } from "../contracts/chat.js";
import { createRouter, HttpError } from "../http/index.js";
import { refusal } from "./check-body.js";
import { chat, complete, readBody } from "./generate.js";
import { clientGone, wholeBody } from "./reply.js";
import type { InferenceService } from "./service.js";

/** The OpenAI-style endpoints. */
export function v1Routes(service: InferenceService): Router {
  const router = createRouter("/v1");
  router.get("/models", (ctx) => {
    ctx.body = { object: "list", data: [modelObject(service)] };
  });
  // A hub id has a slash; some clients write it as it is.
  router.get("/models/*id", (ctx) => {
    if (ctx.params.id !== service.engine.info.id) {
      throw new HttpError(404, `The model ${ctx.params.id} is not served here.`, {
        param: "model",
        code: "model_not_found",
      });
    }
    ctx.body = modelObject(service);
  });
  router.post("/chat/completions", (ctx) => chat(service, ctx as unknown as Context));
  router.post("/completions", (ctx) => complete(service, ctx as unknown as Context));
  router.post("/embeddings", (ctx) => embed(service, ctx as unknown as Context));
  return router;
}

function modelObject({ engine: { info }, startedAt }: InferenceService) {
  return {
    id: info.id,
    object: "model",
    created: startedAt,
    owned_by: "tapline",
    meta: {
      architecture: info.architecture,
      quantization: info.quantization,
      n_vocab: info.nVocab,
      n_ctx: info.slotContext,
      n_ctx_train: info.nCtxTrain,
      n_embd: info.nEmbd,
      n_layer: info.nLayer,
      n_params: info.nParams,
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
  const leave = service.admission.enter();
  const gone = clientGone(ctx);
  try {
    const reply = await service.engine.request("embeddings", body, gone.signal);
    ctx.type = "application/json";
    ctx.body = wholeBody(reply);
  } finally {
    leave();
  }
}
