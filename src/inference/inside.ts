import { type Capabilities, CaptureRequest, limits } from "../contracts/index.js";
import { checked, createRouter, type Routes, readJson } from "../http/index.js";
import { Captures } from "./capture.js";
import type { InferenceService } from "./service.js";

/** What only programs on this machine may ask: captures of the resident model. */
export function insideRoutes(service: InferenceService): Routes {
  const router = createRouter();
  const captures = new Captures(service);
  router.get("/lab/capabilities", (ctx) => {
    const { info } = service.engine;
    ctx.body = {
      serving_activations: info.captures,
      model: info.id,
      fingerprint: service.library.model.fingerprint,
      max_layers: limits.capture_layers,
      max_input_tokens: limits.capture_input_tokens,
      n_layer: info.nLayer,
      n_embd: info.nEmbd,
      architecture: info.architecture,
      backend: service.backend.backend,
      points: [...info.points],
      pending: captures.pending,
    } satisfies Capabilities;
  });
  router.post("/lab/activations", async (ctx) => {
    const body = await readJson(ctx, { limit: limits.capture_body_bytes });
    ctx.body = await captures.run(checked(CaptureRequest, body) as CaptureRequest);
  });
  return router;
}
