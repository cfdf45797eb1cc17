import { createHash } from "node:crypto";
import { pack, sendPacked, unpack } from "../http/conditional.js";
import { readCounters } from "../store/counters.js";
import { canonicalQuery, type Parameters } from "./parameters.js";
import type { Visit } from "./visit.js";

/** Larger ones are made for every request. */
const mostKeptBytes = 128_000;

const headersOfPages = [
  "Content-Security-Policy",
  "Content-Type",
  "Content-Disposition",
  "X-Content-SHA256",
  "X-Study-Version",
];

/** Addresses whose pages are the same for everybody who is not signed in. */
const publicPaths =
  /^\/(?:$|top$|reproduced$|docs$|robots\.txt$|sitemap[\d-]*\.xml$|feed\.atom$|studies\/|authors\/)/;

/**
 * Whether an answer holds nothing but what everybody may read. A visitor with cookies gets pages with forms of their own,
 * which are neither kept nor compressed.
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
 * Answers a public page: as it was made last, if nothing has changed since, and not at all if the client has it.
 * @param parameters what the page reads from its query; it sees nothing else of it
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
  if (page.packed.bytes.length > mostKeptBytes) service.pages.forget(key);
  ctx.status = page.status;
  ctx.set(page.headers);
  ctx.set("Cache-Control", "no-cache");
  if (page.status === 200) await sendPacked(ctx, page.packed);
  else ctx.body = await unpack(page.packed);
}
