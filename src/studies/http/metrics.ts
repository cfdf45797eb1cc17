import type { Context, Middleware } from "koa";
import type { Area } from "../metrics.js";
import { isDisabled, type Service } from "../service.js";
import { readCounters } from "../store/counters.js";
import { countOf } from "../store/rows.js";
import { sameText } from "../text/same.js";
import { readinessOf } from "./health.js";
import { isSecure } from "./transport.js";

/** Counts every request, and serves `/metrics` to callers with the operator's token. Without a configured token there is no such page. */
export function metrics(service: Service): Middleware {
  const probe = readinessOf(service);
  return async (ctx, next) => {
    const begin = performance.now();
    try {
      if (ctx.path === "/metrics" && service.metricsToken !== null) {
        await answer(service, ctx as Context, service.metricsToken, probe);
      } else await next();
    } finally {
      service.metrics.record(areaOf(ctx.path), ctx.status, (performance.now() - begin) / 1000);
    }
  };
}

function areaOf(path: string): Area {
  if (path === "/api" || path.startsWith("/api/")) return "api";
  return /^\/(?:healthz|readyz|readyz\/reads|metrics)$/.test(path) ? "machine" : "site";
}

async function answer(
  service: Service,
  ctx: Context,
  token: string,
  probe: ReturnType<typeof readinessOf>,
): Promise<void> {
  ctx.set("Cache-Control", "no-store");
  ctx.set("X-Content-Type-Options", "nosniff");
  ctx.type = "text/plain";
  if (!isSecure(service, ctx)) {
    ctx.status = 403;
    ctx.body = "This service is available over HTTPS only.\n";
    return;
  }
  const given = /^Bearer +(\S+)$/i.exec(ctx.get("Authorization"))?.[1] ?? "";
  if (!sameText(given, token)) {
    ctx.status = 401;
    ctx.set("WWW-Authenticate", 'Bearer realm="tapline studies metrics"');
    ctx.body = "Send `Authorization: Bearer` followed by the value of TAPLINE_METRICS_TOKEN.\n";
    return;
  }
  const { reads, writes } = await probe();
  const waiting = reads ? await waitingOf(service).catch(() => null) : null;
  ctx.status = 200;
  ctx.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  ctx.body = service.metrics.text([
    ["database_reads", "1 if the database accepts reads.", Number(reads)],
    ["database_writes", "1 if the database accepts writes.", Number(writes)],
    ["api_disabled", "1 if the API is disabled.", Number(isDisabled(service))],
    ["studies", "Listed studies.", waiting?.studies ?? null],
    ["reports_open", "Open reports.", waiting?.reports ?? null],
    ["appeals_open", "Open appeals.", waiting?.appeals ?? null],
  ]);
}

async function waitingOf({ store }: Service) {
  const { studies } = await readCounters(store);
  const open = (table: "reports" | "appeals") => store.db.selectFrom(table).where("closed_at", "is", null);
  return { studies, reports: await countOf(open("reports")), appeals: await countOf(open("appeals")) };
}
