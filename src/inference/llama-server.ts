import { clientGone, createRouter, HttpError, type Routes } from "../http/index.js";
import type { EngineRoute } from "../native/engine.js";
import { servingDocument } from "./endpoints.js";
import { completeNatively, infill } from "./generate.js";
import { wholeBody } from "./reply.js";
import type { InferenceService } from "./service.js";

/** llama-server's own endpoints: the native completion, filling in, and what the server tells of itself. */
export function llamaServerRoutes(service: InferenceService): Routes {
  const router = createRouter();
  for (const path of ["/completion", "/completions"]) {
    router.post(path, (ctx) => completeNatively(service, ctx));
  }
  router.post("/infill", (ctx) => infill(service, ctx));
  const tell = (path: string, route: EngineRoute) => {
    router.get(path, async (ctx) => {
      const reply = await service.engine.request(route, {}, clientGone(ctx).signal);
      ctx.body = JSON.parse(wholeBody(reply));
    });
  };
  router.get("/openapi.json", (ctx) => {
    ctx.body = servingDocument(`http://${ctx.host}`);
  });
  router.get("/props", async (ctx) => {
    const props = JSON.parse(
      wholeBody(await service.engine.request("properties", {}, clientGone(ctx).signal)),
    );
    Object.assign(props.default_generation_settings.params, service.sampling);
    ctx.body = props;
  });
  tell("/slots", "slots");
  tell("/lora-adapters", "adapters");
  for (const path of ["/props", "/lora-adapters"]) {
    router.post(path, () => {
      throw new HttpError(405, `${path} is read only here.`, { headers: { Allow: "GET, HEAD" } });
    });
  }
  return router;
}
