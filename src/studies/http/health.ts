import type { Middleware } from "koa";
import { sql } from "kysely";
import type { Service } from "../service.js";
import { faultOf } from "../store/fault.js";
import type { Store } from "../store/store.js";

/** The database is probed at most once per this interval. */
const probeMs = 1000;

export interface Readiness {
  reads: boolean;
  writes: boolean;
}

/**
 * `/healthz`: the process is up. `/readyz`: its database accepts reads and writes. `/readyz/reads`: it accepts at least
 * reads, as on a full disk. No credentials needed.
 */
export function health(service: Service): Middleware {
  const probe = readinessOf(service);
  return async (ctx, next) => {
    if (ctx.path === "/healthz") {
      ctx.set("Cache-Control", "no-store");
      ctx.body = { status: "ok" };
      return;
    }
    if (ctx.path !== "/readyz" && ctx.path !== "/readyz/reads") return next();
    ctx.set("Cache-Control", "no-store");
    const { reads, writes } = await probe();
    const ready = reads && (writes || ctx.path === "/readyz/reads");
    ctx.status = ready ? 200 : 503;
    const word = (works: boolean) => (works ? "ok" : "failed");
    ctx.body = { status: ready ? "ok" : "unavailable", reads: word(reads), writes: word(writes) };
  };
}

/** Probes the database and caches the result briefly. */
export function readinessOf(service: Service): () => Promise<Readiness> {
  let last: { at: number; found: Promise<Readiness> } | undefined;
  return () => {
    const now = performance.now();
    if (last === undefined || now - last.at >= probeMs) last = { at: now, found: probeDatabase(service) };
    return last.found;
  };
}

async function probeDatabase(service: Service): Promise<Readiness> {
  const works = (what: string, work: Promise<unknown>) =>
    work.then(
      () => true,
      (error) => {
        const fault = faultOf(error)?.text ?? (error as Error).name;
        service.log(`the database does not accept ${what}: ${fault}`, `database without ${what}: ${fault}`);
        return false;
      },
    );
  const { db, quick } = service.store;
  const [reads, writes] = await Promise.all([
    works("reads", sql`select 1`.execute(db)),
    works("writes", writeNothing(quick, service.store)),
  ]);
  return { reads, writes };
}

/** Writes a dummy row, to try a real commit. */
function writeNothing(quick: Store["quick"], { dialect }: Store): Promise<unknown> {
  return quick
    .insertInto("limits")
    .values({ key: "readyz", recent: "[]", touched_at: dialect.now })
    .onConflict((conflict) => conflict.column("key").doUpdateSet({ touched_at: dialect.now }))
    .execute();
}
