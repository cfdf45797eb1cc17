import type { TSchema } from "typebox";
import { DetokenizeRequest, TemplateRequest, TokenizeRequest } from "../contracts/chat.js";
import { inferenceLimits } from "../contracts/inference-limits.js";
import { clientGone, createRouter, type Routes, readJson } from "../http/index.js";
import type { EngineRoute } from "../native/engine.js";
import { checkBody, checkMessages, checkTokens, checkTools } from "./check-body.js";
import { wholeBody } from "./reply.js";
import type { InferenceService } from "./service.js";

/** llama-server's endpoints between text and tokens. */
export function textRoutes(service: InferenceService): Routes {
  const router = createRouter();
  const answer = (path: string, schema: TSchema, route: EngineRoute, check: (body: never) => void) => {
    router.post(path, async (ctx) => {
      const body = checkBody(schema, await readJson(ctx, { limit: inferenceLimits.body_bytes }));
      check(body as never);
      const leave = service.admission.enter();
      try {
        const reply = await service.engine.request(route, body as object, clientGone(ctx).signal);
        ctx.type = "application/json";
        ctx.body = wholeBody(reply);
      } finally {
        leave();
      }
    });
  };
  answer("/tokenize", TokenizeRequest, "tokenize", () => {});
  answer("/detokenize", DetokenizeRequest, "detokenize", (body: { tokens: number[] }) => {
    checkTokens(service.engine.info, body.tokens);
  });
  answer("/apply-template", TemplateRequest, "apply-template", (body: TemplateRequest) => {
    checkMessages(body.messages);
    checkTools(body, service.engine.info.templateCapabilities);
  });
  return router;
}
