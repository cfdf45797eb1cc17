import { createHash } from "node:crypto";
import { pack, sendPacked, unpack } from "../http/conditional.js";
import { readCounters } from "../store/counters.js";
import { canonicalQuery, type Parameters } from "./parameters.js";
import type { Visit } from "./visit.js";

/** Larger pages are not cached. */
const mostCachedBytes = 128_000;

const headersOfPages = [
  "Content-Security-Policy",
  "Content-Type",
  "Content-Disposition",
  "X-Content-SHA256",
  "X-Study-Version",
];

/** Paths of pages that are the same for everyone who is not signed in. */
const publicPaths =
  /^\/(?:$|top$|reproduced$|docs$|robots\.txt$|sitemap[\d-]*\.xml$|feed\.atom$|models(?:$|\/)|studies\/|authors\/)/;

/**
 * Whether the response contains public data only. Visitors with cookies get pages with their own forms, which are neither
 * cached nor compressed.
 */
export function isPublic({ ctx, session }: Visit): boolean {
  return (
    session === null &&
    ctx.req.headers.cookie === undefined &&
    (ctx.method === "GET" || ctx.method === "HEAD") &&
    publicPaths.test(ctx.path)
  );
}

/**
 * Serves a public page from the cache if public data has not changed, or answers 304.
 * @param parameters query parameters that the page reads; all others are removed
 */
export async function answerPublic(
  visit: Visit,
  parameters: Parameters,
  make: () => Promise<void>,
): Promise<void> {
  const { ctx, service } = visit;
  ctx.vary("Cookie");
  const { generation } = await readCounters(service.store);
  ctx.querystring = canonicalQuery(ctx.querystring, parameters);
  const key = `${ctx.path}?${ctx.querystring}`;
  const page = await service.pages.get(generation, key, async () => {
    await make();
    const body = Buffer.isBuffer(ctx.body) ? ctx.body : Buffer.from(String(ctx.body ?? ""));
    const headers: Record<string, string> = {};
    for (const name of headersOfPages) {
      const value = ctx.response.get(name);
      if (value) headers[name] = value;
    }
    const hash = createHash("sha256").update(`${ctx.status} `).update(body).digest("hex");
    return { status: ctx.status, headers, packed: await pack(body, hash) };
  });
  if (page.packed.bytes.length > mostCachedBytes) service.pages.forget(key);
  ctx.status = page.status;
  ctx.set(page.headers);
  ctx.set("Cache-Control", "no-cache");
  if (page.status === 200) await sendPacked(ctx, page.packed);
  else ctx.body = await unpack(page.packed);
}
