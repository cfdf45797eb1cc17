import type { Context } from "koa";
import {
  type ChatRequest,
  ChatRequest as ChatSchema,
  type CompletionRequest,
  CompletionRequest as CompletionSchema,
  InfillRequest,
  NativeCompletionRequest,
} from "../contracts/chat.js";
import { MessagesRequest } from "../contracts/messages.js";
import { ResponsesRequest } from "../contracts/responses.js";
import {
  unsupportedInChat,
  unsupportedInCompletions,
  unsupportedInMessages,
  unsupportedInNative,
  unsupportedInResponses,
} from "../contracts/unsupported.js";
import { clientGone } from "../http/index.js";
import type { Edit } from "../native/edit.js";
import type { LivePlan } from "../native/live.js";
import { taking } from "./body.js";
import {
  asksForNothing,
  checkAroundImages,
  countTokens,
  normalise,
  prepareChat,
  showsImages,
  thinks,
  withUsage,
} from "./chat-request.js";
import { checkGeneration, fieldRefusal } from "./check-body.js";
import { CompletionForm } from "./forms/completion.js";
import type { AnswerForm } from "./forms/form.js";
import { MessagesForm } from "./forms/messages-answer.js";
import { chatOfMessages } from "./forms/messages-request.js";
import { ResponsesForm } from "./forms/responses-answer.js";
import { chatOfResponses } from "./forms/responses-request.js";
import { SilentForm } from "./forms/silent.js";
import { chosenProfile } from "./profiles.js";
import { generate } from "./run-generation.js";
import type { InferenceService } from "./service.js";

/** `POST /v1/chat/completions` */
export const chat = taking(
  ChatSchema,
  { unsupported: unsupportedInChat, profiles: "run" },
  (service, ctx, body) => generateChat(service, ctx, body, body),
);

/** `POST /v1/responses` */
export const responses = taking(
  ResponsesRequest,
  { unsupported: unsupportedInResponses, profiles: "run" },
  (service, ctx, body) => {
    const form = new ResponsesForm(body, chosenProfile(ctx)?.id ?? service.engine.info.id);
    return generateChat(service, ctx, body, withUsage(chatOfResponses(body)), form);
  },
);

/** `POST /v1/messages` */
export const messages = taking(
  MessagesRequest,
  { unsupported: unsupportedInMessages, profiles: "run" },
  async (service, ctx, body) => {
    const request = withUsage(chatOfMessages(body));
    // Streams start with the prompt's length, which the engine reports only at the end.
    const tokens = body.stream === true ? await countTokens(service, request, clientGone(ctx).signal) : 0;
    const named = chosenProfile(ctx)?.id ?? service.engine.info.id;
    const form = new MessagesForm(named, body.stop_sequences ?? [], tokens);
    await generateChat(service, ctx, body, request, form);
  },
);

/** `POST /v1/completions` */
export const complete = taking(
  CompletionSchema,
  { unsupported: unsupportedInCompletions, profiles: "run" },
  async (service, ctx, asked) => {
    const { echo, best_of, ...body } = asked;
    checkGeneration(body, { slots: service.engine.info.slots, drafts: service.drafts });
    const perPrompt = body.n_cmpl ?? body.n ?? 1;
    if (best_of !== undefined && best_of !== perPrompt) {
      throw fieldRefusal(
        "best_of",
        `must be n (${perPrompt}), got ${best_of}; request more answers and choose among them.`,
      );
    }
    const wanted = body.logprobs ?? (body.n_probs === 0 ? undefined : body.n_probs);
    const silent = asksForNothing(body);
    if (echo && wanted !== undefined) checkEchoed(service, body);
    const rewritten = echo === true || silent || (wanted !== undefined && body.post_sampling_probs !== true);
    const form = async (signal: AbortSignal, live: LivePlan | undefined) => {
      const asked = { prompts: promptsOf(body), top: wanted, answers: perPrompt, edits: promptEdits(live) };
      const prompts = echo ? await service.scores.echo(asked, signal) : [];
      return new CompletionForm(prompts, perPrompt, wanted ?? 0, silent);
    };
    const request = normalise(service, body);
    await generate(service, ctx, "completion", body, request, null, rewritten ? form : undefined);
  },
);

/** `POST /completion`, llama-server's format. */
export const completeNatively = taking(
  NativeCompletionRequest,
  { unsupported: unsupportedInNative },
  (service, ctx, body) => generatePlainly(service, ctx, "native-completion", body),
);

/** `POST /infill` */
export const infill = taking(InfillRequest, { unsupported: unsupportedInNative }, (service, ctx, body) =>
  generatePlainly(service, ctx, "infill", body),
);

async function generatePlainly(
  service: InferenceService,
  ctx: Context,
  route: "native-completion" | "infill",
  body: NativeCompletionRequest | InfillRequest,
): Promise<void> {
  checkGeneration(body, { slots: service.engine.info.slots, drafts: service.drafts });
  const form = asksForNothing(body) ? new SilentForm() : undefined;
  await generate(service, ctx, route, body, normalise(service, body), null, form);
}

/** The prompts of a request, each a text or its tokens. */
function promptsOf({ prompt }: Pick<CompletionRequest, "prompt">): (string | number[])[] {
  const one = typeof prompt === "string" || typeof prompt[0] === "number";
  return (one ? [prompt] : prompt) as (string | number[])[];
}

/** Refuses echo where the prompt's log-probabilities would not match how the answer is generated. */
function checkEchoed({ engine }: InferenceService, body: CompletionRequest): void {
  const { captures, noCaptureReason } = engine.info;
  if (!captures) {
    throw fieldRefusal("logprobs", `with echo, these need captures of the prompt. ${noCaptureReason}`);
  }
  if (body.post_sampling_probs === true) {
    throw fieldRefusal(
      "post_sampling_probs",
      "not supported with echo, because prompt tokens are not sampled.",
    );
  }
}

/** The edits that act on a prompt: those with a condition wait for generated tokens. */
function promptEdits(live: LivePlan | undefined): readonly Edit[] {
  return (live?.edits ?? []).filter((_, index) => (live?.gates?.[index] ?? -1) < 0);
}

async function generateChat(
  service: InferenceService,
  ctx: Context,
  input: object,
  body: ChatRequest,
  form?: AnswerForm,
): Promise<void> {
  const request = prepareChat(service, body);
  if (showsImages(body)) checkAroundImages(ctx, body);
  const told = form ?? (asksForNothing(body) ? new SilentForm() : undefined);
  await generate(service, ctx, "chat", input, request, thinks(service, request), told);
}
