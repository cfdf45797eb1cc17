import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import type { Context } from "koa";
import { matchesEtag } from "../../http/send-file.js";

const compress = promisify(gzip);
const expand = promisify(gunzip);

/** Shorter bodies would hardly get shorter. */
const worthIt = 1000;

/**
 * A body in the form that it is kept in: compressed where that helps. For what everybody may read, or what holds nothing
 * secret beside text that somebody else chose: compressed together, lengths would tell one from the other.
 */
export interface Packed {
  etag: string;
  bytes: Buffer;
  gzipped: boolean;
}

/** What everybody gets under an address of the website while nothing public changes. */
export interface PublicPage {
  status: number;
  headers: Record<string, string>;
  packed: Packed;
}

export function etagOf(hash: string): string {
  return `"${hash.slice(0, 32)}"`;
}

/** @param hash of the body, which names it */
export async function pack(body: Buffer, hash: string): Promise<Packed> {
  const etag = etagOf(hash);
  if (body.length < worthIt) return { etag, bytes: body, gzipped: false };
  return { etag, bytes: await compress(body, { level: 5 }), gzipped: true };
}

/** Names the body to the client; one that has it already, and says so, is told no more. @returns whether it was */
export function answeredAsKnown(ctx: Context, etag: string): boolean {
  ctx.set("ETag", etag);
  ctx.vary("Accept-Encoding");
  const known = matchesEtag(ctx.get("If-None-Match"), etag);
  if (known) ctx.status = 304;
  return known;
}

/** Whether the client says that it takes gzip; one that says nothing gets the bytes as they are. */
export function wantsGzip(ctx: Context): boolean {
  return ctx.get("Accept-Encoding") !== "" && ctx.acceptsEncodings("gzip", "identity") === "gzip";
}

/** A body as it was. */
export function unpack({ bytes, gzipped }: Packed): Promise<Buffer> {
  return gzipped ? expand(bytes) : Promise.resolve(bytes);
}

/** Sends a body in the form that the client takes, or says that it has it. */
export async function sendPacked(ctx: Context, packed: Packed): Promise<void> {
  const { etag, bytes, gzipped } = packed;
  if (answeredAsKnown(ctx, etag)) return;
  if (gzipped && wantsGzip(ctx)) {
    ctx.set("Content-Encoding", "gzip");
    ctx.body = bytes;
  } else ctx.body = await unpack(packed);
}
