import Koa from "koa";
import { isDisconnect } from "../http/errors.js";
import { api } from "./api/middleware.js";
import { health } from "./http/health.js";
import { metrics } from "./http/metrics.js";
import type { Service } from "./service.js";
import { site } from "./site/middleware.js";

/** The whole service: health, API, website. */
export function createStudiesApp(service: Service): Koa {
  const app = new Koa();
  app.on("error", (error: { code?: unknown; name?: string }) => {
    if (isDisconnect(error)) return;
    const line = `connection failed: ${error.name ?? "error"} ${String(error.code ?? "")}`;
    service.log(line, line);
  });
  app.use(metrics(service));
  app.use(health(service));
  app.use(api(service));
  app.use(site(service));
  return app;
}
