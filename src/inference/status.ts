import { createRouter, type Routes } from "../http/index.js";
import { prometheusText } from "./prometheus.js";
import type { InferenceService } from "./service.js";

/** What watches the server: health, statistics, Prometheus' metrics. */
export function statusRoutes(service: InferenceService): Routes {
  const router = createRouter();
  router.get("/health", (ctx) => {
    ctx.body = { status: "ok" };
  });
  router.get("/stats", async (ctx) => {
    ctx.body = service.stats.report(service.engine.info, await service.engine.metrics(), service.rows);
  });
  router.get("/metrics", async (ctx) => {
    const text = prometheusText(service.stats, service.engine.info, await service.engine.metrics());
    ctx.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    ctx.body = text;
  });
  return router;
}
