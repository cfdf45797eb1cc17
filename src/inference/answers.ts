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
import type { StoredProfile } from "../contracts/profile.js";
import { profileId } from "../contracts/profile-name.js";
import { ResponsesCountRequest } from "../contracts/responses.js";
import {
  unsupportedInChat,
  unsupportedInMessages,
  unsupportedInResponses,
} from "../contracts/unsupported.js";
import { WeightsRequest } from "../contracts/weights.js";
import { checked, clientGone, HttpError, readJson } from "../http/index.js";
import type { EngineRoute } from "../native/engine.js";
import type { LivePlan } from "../native/live.js";
import { type Taking, taking } from "./body.js";
import { countTokens } from "./chat-request.js";
import { checkMessages, checkTokens, checkTools, fieldRefusal } from "./check-body.js";
import { chatOfCount } from "./forms/messages-request.js";
import { chatOfResponses } from "./forms/responses-request.js";
import { livePlan } from "./live/plan.js";
import { prometheusText } from "./metrics.js";
import { chosenProfile, findProfile, listedProfiles } from "./profiles.js";
import { wholeBody } from "./reply.js";
import { isServed } from "./served-model.js";
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

/** The served model and its profiles. */
export async function modelList(service: InferenceService, ctx: Context) {
  const model = modelObject(service);
  const profiles = await listedProfiles(service, ctx);
  return { object: "list", data: [model, ...profiles.map((one) => withProfileName(model, one))] };
}

export async function modelNamed(service: InferenceService, ctx: Context, id: string) {
  const model = modelObject(service);
  if (isServed(service, id)) return model;
  return withProfileName(model, (await findProfile(service, ctx, id)).profile);
}

function withProfileName(
  { aliases: _, ...model }: ReturnType<typeof modelObject>,
  { name, description }: StoredProfile,
) {
  return { ...model, id: profileId(model.id, name), parent: model.id, profile: { name, description } };
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
export const embed = taking(EmbeddingRequest, { profiles: "run" }, async (service, ctx, asked) => {
  const { dimensions, ...body } = asked;
  const { info } = service.engine;
  if (!info.embeddings)
    throw new HttpError(400, "Embeddings are disabled; start the server with --embeddings.");
  if (dimensions !== undefined && dimensions !== info.nEmbd) {
    throw fieldRefusal("dimensions", `must be ${info.nEmbd} for this model, got ${dimensions}.`);
  }
  const live = await profileEdits(service, ctx);
  const answer = await passedOn(service, ctx, "embeddings", body, live);
  const chosen = chosenProfile(ctx);
  return chosen === undefined ? answer : { ...JSON.parse(answer), model: chosen.id };
});

/** The edits of a request's profile. Embeddings have no place for readings and no generated tokens. */
async function profileEdits(service: InferenceService, ctx: Context): Promise<LivePlan | undefined> {
  const { interventions = [] } = chosenProfile(ctx)?.profile.tapline ?? {};
  if (interventions.length === 0) return undefined;
  const { captures, noCaptureReason } = service.engine.info;
  if (!captures) throw fieldRefusal("model", `profiles need captures. ${noCaptureReason}`);
  return livePlan({ interventions }, service.library, false);
}

/** `POST /v1/rerank`: how well each document answers a query, best first. */
export const rerank = taking(RerankRequest, {}, (service, ctx, body) =>
  passedOn(service, ctx, "rerank", body),
);

/** `POST /tokenize`, in llama-server's format or, with `prompt`, in vLLM's, which evaluation harnesses use. */
export const tokenize = taking(TokenizeRequest, { profiles: "not needed" }, async (service, ctx, asked) => {
  const { model: _, prompt, add_special_tokens: special = true, ...body } = asked;
  if ((prompt === undefined) === (body.content === undefined)) {
    throw fieldRefusal("content", "exactly one of content and prompt is required.");
  }
  if (prompt === undefined) return passedOn(service, ctx, "tokenize", body);
  const request = { content: prompt, add_special: special, parse_special: true };
  const { tokens } = JSON.parse(await passedOn(service, ctx, "tokenize", request)) as { tokens: number[] };
  return { count: tokens.length, max_model_len: service.engine.info.slotContext, tokens };
});

/** `POST /detokenize`: the text as `content`, llama-server's field, and as `prompt`, vLLM's. */
export const detokenize = taking(DetokenizeRequest, {}, async (service, ctx, body) => {
  checkTokens(service.engine.info, body.tokens);
  const { content } = JSON.parse(await passedOn(service, ctx, "detokenize", body)) as { content: string };
  return { content, prompt: content };
});

/** `GET /tokenizer_info`, as in vLLM: with it, evaluation harnesses need no tokenizer of their own. */
export async function tokenizerInfo(service: InferenceService, ctx: Context) {
  const { bos_token, eos_token, chat_template } = await engineState(service, ctx, "properties");
  return { bos_token, eos_token, chat_template };
}

export const applyTemplate = taking(TemplateRequest, { profiles: "not needed" }, (service, ctx, body) => {
  checkMessages(body.messages);
  checkTools(body, service.engine.info.templateCapabilities);
  return passedOn(service, ctx, "apply-template", body);
});

// Token counts. OpenAI's answers have an `object` field, Anthropic's do not.
const object = "response.input_tokens";
export const countChat = taking(
  ChatCountRequest,
  { unsupported: unsupportedInChat, profiles: "not needed" },
  (service, ctx, body) => count(service, ctx, body, { object }),
);
export const countResponse = taking(
  ResponsesCountRequest,
  { unsupported: unsupportedInResponses, profiles: "not needed" },
  (service, ctx, body) => count(service, ctx, chatOfResponses(body), { object }),
);
export const countMessage = taking(
  CountRequest,
  { unsupported: unsupportedInMessages, profiles: "not needed" },
  (service, ctx, body) => count(service, ctx, chatOfCount(body)),
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
  live?: LivePlan,
): Promise<string> {
  const answer = await admitted(service, ctx, async (signal) =>
    wholeBody(await service.engine.request(route, body, signal, live)),
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
