import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { Context } from "koa";
import { HttpError } from "./errors.js";

/** Non-blocking, since opening a FIFO blocks until its other end opens. Windows has neither flag. */
const reading = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0);

/**
 * Sends a file as `application/octet-stream`, with `Content-Length`, a strong `ETag`, conditional requests and single byte
 * ranges. Links are not followed. Missing files and anything but regular files give 404.
 */
export async function sendFile(ctx: Context, path: string): Promise<void> {
  const file = await open(path, reading).catch((error) => {
    if (["ENOENT", "ELOOP", "ENOTDIR", "ENXIO"].includes(error.code))
      throw new HttpError(404, "File not found.");
    throw error;
  });
  let streaming = false;
  try {
    const found = await file.stat({ bigint: true });
    if (!found.isFile()) throw new HttpError(404, "File not found.");
    const { mtimeNs } = found;
    const size = Number(found.size);
    const etag = `"${size.toString(16)}-${mtimeNs.toString(16)}"`;
    ctx.set("Accept-Ranges", "bytes");
    ctx.set("ETag", etag);
    if (matchesEtag(ctx.get("If-None-Match"), etag)) {
      ctx.status = 304;
      return;
    }
    const usable = ctx.get("If-Range") === "" || ctx.get("If-Range") === etag;
    const range = usable ? parseRange(ctx.get("Range"), size) : null;
    if (range === "unsatisfiable") {
      throw new HttpError(416, `The range is outside the file's ${size} bytes.`, {
        headers: { "Content-Range": `bytes */${size}` },
      });
    }
    const { start, end } = range ?? { start: 0, end: size - 1 };
    ctx.status = range === null ? 200 : 206;
    if (range !== null) ctx.set("Content-Range", `bytes ${start}-${end}/${size}`);
    ctx.set("Content-Type", "application/octet-stream");
    ctx.length = end - start + 1;
    if (ctx.method === "HEAD" || size === 0) {
      if (size === 0) ctx.body = Buffer.alloc(0);
      return;
    }
    const length = end - start + 1;
    ctx.body = file.createReadStream({ start, end, autoClose: true });
    ctx.length = length; // Koa resets the length when the body is a stream.
    streaming = true;
  } finally {
    if (!streaming) await file.close();
  }
}

/** Whether an `If-None-Match` header matches an ETag. */
export function matchesEtag(header: string, etag: string): boolean {
  return header.split(",").some((one) => one.trim() === "*" || one.trim().replace(/^W\//, "") === etag);
}

/**
 * The single range that a header requests. Null if the whole file should be sent: no header, another unit, several ranges,
 * or an invalid range.
 */
export function parseRange(
  header: string,
  size: number,
): { start: number; end: number } | "unsatisfiable" | null {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header);
  if (match === null || (match[1] === "" && match[2] === "")) return null;
  if (match[1] === "") {
    const last = Number(match[2]);
    if (last === 0 || size === 0) return "unsatisfiable";
    return { start: Math.max(0, size - last), end: size - 1 };
  }
  const start = Number(match[1]);
  const end = match[2] === "" ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (match[2] !== "" && Number(match[2]) < start) return null;
  if (start >= size) return "unsatisfiable";
  return { start, end };
}
