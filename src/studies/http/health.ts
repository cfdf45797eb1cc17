import type { Middleware } from "koa";
import { sql } from "kysely";
import type { Service } from "../service.js";

/** `/healthz`: the process answers. `/readyz`: so does its database. Without credentials, for machines. */
export function health(service: Service): Middleware {
  return async (ctx, next) => {
    if (ctx.path !== "/healthz" && ctx.path !== "/readyz") return next();
    ctx.set("Cache-Control", "no-store");
    let ready = true;
    if (ctx.path === "/readyz") {
      ready = await sql`select 1`.execute(service.store.db).then(
        () => true,
        () => false,
      );
    }
    ctx.status = ready ? 200 : 503;
    ctx.body = { status: ready ? "ok" : "unavailable" };
  };
}
