import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import type { Context } from "koa";
import { matchesEtag } from "../../http/send-file.js";

const compress = promisify(gzip);
const expand = promisify(gunzip);

/** Compressing shorter bodies saves little. */
const worthIt = 1000;

/**
 * A cached body, compressed if that helps. Never for a secret together with text that someone else chose: the
 * compressed length would leak the secret.
 */
export interface Packed {
  etag: string;
  bytes: Buffer;
  gzipped: boolean;
}

/** A page of the website that stays the same for everyone until public data changes. */
export interface PublicPage {
  status: number;
  headers: Record<string, string>;
  packed: Packed;
}

export function etagOf(hash: string): string {
  return `"${hash.slice(0, 32)}"`;
}

/** @param hash of the body, used as its ETag */
export async function pack(body: Buffer, hash: string): Promise<Packed> {
  const etag = etagOf(hash);
  if (body.length < worthIt) return { etag, bytes: body, gzipped: false };
  return { etag, bytes: await compress(body, { level: 5 }), gzipped: true };
}

/** Sets the ETag, and answers 304 if the client has that body. @returns whether it did */
export function answeredAsKnown(ctx: Context, etag: string): boolean {
  ctx.set("ETag", etag);
  ctx.vary("Accept-Encoding");
  const known = matchesEtag(ctx.get("If-None-Match"), etag);
  if (known) ctx.status = 304;
  return known;
}

/** Whether the client accepts gzip; without an Accept-Encoding header it gets uncompressed bytes. */
export function wantsGzip(ctx: Context): boolean {
  return ctx.get("Accept-Encoding") !== "" && ctx.acceptsEncodings("gzip", "identity") === "gzip";
}

/** The uncompressed body. */
export function unpack({ bytes, gzipped }: Packed): Promise<Buffer> {
  return gzipped ? expand(bytes) : Promise.resolve(bytes);
}

/** Sends a body, gzipped if the client accepts it, or answers 304. */
export async function sendPacked(ctx: Context, packed: Packed): Promise<void> {
  const { etag, bytes, gzipped } = packed;
  if (answeredAsKnown(ctx, etag)) return;
  if (gzipped && wantsGzip(ctx)) {
    ctx.set("Content-Encoding", "gzip");
    ctx.body = bytes;
  } else ctx.body = await unpack(packed);
}
