import type { Context } from "koa";
import { type Capabilities, CaptureRequest } from "../contracts/capture.js";
import {
  ChatCountRequest,
  type ChatRequest,
  DetokenizeRequest,
  EmbeddingRequest,
  RerankRequest,
  TemplateRequest,
  TokenizeRequest,
} from "../contracts/chat.js";
import { ForwardRequest } from "../contracts/forward.js";
import { forwardLimits } from "../contracts/forward-limits.js";
import { limits } from "../contracts/limits.js";
import { CountRequest } from "../contracts/messages.js";
import { ResponsesCountRequest } from "../contracts/responses.js";
import {
  unsupportedInChat,
  unsupportedInMessages,
  unsupportedInResponses,
} from "../contracts/unsupported.js";
import { WeightsRequest } from "../contracts/weights.js";
import { checked, clientGone, HttpError, readJson } from "../http/index.js";
import type { EngineRoute } from "../native/engine.js";
import { isServed, type Taking, taking } from "./body.js";
import { checkMessages, checkTokens, checkTools, fieldRefusal } from "./check-body.js";
import { chatOfCount } from "./forms/messages-request.js";
import { chatOfResponses } from "./forms/responses-request.js";
import { countTokens } from "./generate.js";
import { prometheusText } from "./metrics.js";
import { wholeBody } from "./reply.js";
import type { InferenceService } from "./service.js";

/** The served model in OpenAI's format. */
export function modelObject({ engine: { info }, aliases, startedAt }: InferenceService) {
  return {
    id: info.id,
    object: "model",
    created: startedAt,
    owned_by: "tapline",
    ...(aliases.length > 1 && { aliases }),
    meta: {
      architecture: info.architecture,
      quantization: info.quantization,
      chat_template: info.chatTemplate,
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

export function modelNamed(service: InferenceService, id: string) {
  if (isServed(service, id)) return modelObject(service);
  throw new HttpError(404, `The model ${id} is not served here.`, {
    param: "model",
    code: "model_not_found",
  });
}

/** Support and limits of captures. */
export function capabilities({
  engine: { info },
  library,
  backend,
  captures,
}: InferenceService): Capabilities {
  return {
    serving_activations: info.captures,
    model: info.id,
    fingerprint: library.model.fingerprint,
    max_layers: limits.capture_layers,
    max_input_tokens: limits.capture_input_tokens,
    n_layer: info.nLayer,
    n_embd: info.nEmbd,
    architecture: info.architecture,
    backend: backend.backend,
    chat_template: info.chatTemplate,
    points: [...info.points],
    ...(info.captures && {
      forward: {
        sequences: forwardLimits.sequences,
        sequence_tokens: info.slotContext,
        bytes: forwardLimits.bytes,
      },
    }),
    pending: captures.pending,
  };
}

/** The server's metrics for Prometheus. */
export async function metrics({ stats, engine }: InferenceService, ctx: Context): Promise<string> {
  const text = prometheusText(stats, engine.info, await engine.metrics());
  ctx.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  return text;
}

/** The engine's answer about its state. */
export async function engineState(service: InferenceService, ctx: Context, route: EngineRoute) {
  return JSON.parse(wholeBody(await service.engine.request(route, {}, clientGone(ctx).signal)));
}

/** llama-server's properties, with this server's sampling defaults. */
export async function properties(service: InferenceService, ctx: Context) {
  const props = await engineState(service, ctx, "properties");
  Object.assign(props.default_generation_settings.params, service.sampling);
  return props;
}

/** `POST /v1/embeddings` */
export const embed = taking(EmbeddingRequest, {}, (service, ctx, { dimensions, ...body }) => {
  const { info } = service.engine;
  if (!info.embeddings)
    throw new HttpError(400, "Embeddings are disabled; start the server with --embeddings.");
  if (dimensions !== undefined && dimensions !== info.nEmbd) {
    throw fieldRefusal("dimensions", `must be ${info.nEmbd} for this model, got ${dimensions}.`);
  }
  return passedOn(service, ctx, "embeddings", body);
});

/** `POST /v1/rerank`: how well each document answers a query, best first. */
export const rerank = taking(RerankRequest, {}, (service, ctx, body) =>
  passedOn(service, ctx, "rerank", body),
);

export const tokenize = taking(TokenizeRequest, {}, (service, ctx, body) =>
  passedOn(service, ctx, "tokenize", body),
);

export const detokenize = taking(DetokenizeRequest, {}, (service, ctx, body) => {
  checkTokens(service.engine.info, body.tokens);
  return passedOn(service, ctx, "detokenize", body);
});

export const applyTemplate = taking(TemplateRequest, {}, (service, ctx, body) => {
  checkMessages(body.messages);
  checkTools(body, service.engine.info.templateCapabilities);
  return passedOn(service, ctx, "apply-template", body);
});

// Token counts. OpenAI's answers have an `object` field, Anthropic's do not.
const object = "response.input_tokens";
export const countChat = taking(ChatCountRequest, unsupportedInChat, (service, ctx, body) =>
  count(service, ctx, body, { object }),
);
export const countResponse = taking(ResponsesCountRequest, unsupportedInResponses, (service, ctx, body) =>
  count(service, ctx, chatOfResponses(body), { object }),
);
export const countMessage = taking(CountRequest, unsupportedInMessages, (service, ctx, body) =>
  count(service, ctx, chatOfCount(body)),
);

async function count(service: InferenceService, ctx: Context, chat: ChatRequest, more = {}) {
  const input_tokens = await admitted(service, ctx, (signal) => countTokens(service, chat, signal));
  return { input_tokens, ...more };
}

/** `POST /lab/activations` */
export const capture: Taking = {
  schema: CaptureRequest,
  async answer({ captures }, ctx) {
    const body = await readJson(ctx, { limit: limits.capture_body_bytes });
    return captures.run(checked(CaptureRequest, body) as CaptureRequest);
  },
};

/** `POST /lab/forward` */
export const forward: Taking = {
  schema: ForwardRequest,
  async answer(service, ctx) {
    const body = await readJson(ctx, { limit: forwardLimits.body_bytes });
    const request = checked(ForwardRequest, body) as ForwardRequest;
    if (request.model !== undefined && !isServed(service, request.model)) {
      throw new HttpError(
        409,
        `The resident model is ${service.engine.info.id}, not ${request.model.slice(0, 200)}.`,
      );
    }
    return service.forwards.answer(ctx, request);
  },
};

/** `POST /lab/weights` */
export const writeWeights = taking(WeightsRequest, {}, async ({ weights }, _, { tensors }) =>
  weights.files(tensors),
);

/** Passes a body to the engine and returns its answer unchanged. */
async function passedOn(
  service: InferenceService,
  ctx: Context,
  route: EngineRoute,
  body: object,
): Promise<string> {
  const answer = await admitted(service, ctx, async (signal) =>
    wholeBody(await service.engine.request(route, body, signal)),
  );
  ctx.type = "application/json";
  return answer;
}

/** Runs one request's work if the server has room, until its client disconnects. */
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
