import type { Context } from "koa";
import { type StudyPackage, studyLimits } from "../../contracts/studies/index.js";
import { HttpError, readBytes } from "../../http/index.js";
import { ApiError } from "../api-error.js";
import { checkPackage } from "../text/check-package.js";
import { parseStrictJson } from "../text/strict-json.js";

/** Reads and validates the package in the body. Returns the bytes exactly as received. */
export async function readPackage(ctx: Context): Promise<{ bytes: Buffer; study: StudyPackage }> {
  const type = ctx.req.headers["content-type"] ?? "";
  if (!/^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(type)) {
    throw new ApiError("unsupported_content_type", "The Content-Type must be application/json, in UTF-8.", {
      field: "Content-Type",
    });
  }
  const coding = ctx.req.headers["content-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "identity") {
    throw new ApiError("unsupported_content_encoding", "The body must not have a Content-Encoding.", {
      field: "Content-Encoding",
    });
  }
  const bytes = await readBytes(ctx, studyLimits.package_bytes).catch((error) => {
    if (!(error instanceof HttpError)) throw error;
    const code = ctx.req.complete || !ctx.req.destroyed ? "body_too_large" : "body_incomplete";
    throw new ApiError(code, error.message, { field: "" });
  });
  return { bytes, study: checkPackage(parseStrictJson(bytes)) };
}

/** The `Idempotency-Key` header; null if absent. */
export function readIdempotencyKey(ctx: Context): string | null {
  const key = ctx.req.headers["idempotency-key"];
  if (key === undefined) return null;
  if (typeof key !== "string" || !/^[\x21-\x7e]+$/.test(key) || key.length > studyLimits.idempotency_key) {
    throw new ApiError(
      "invalid_idempotency_key",
      `Idempotency-Key must be 1 to ${studyLimits.idempotency_key} printable ASCII characters without spaces.`,
      { field: "Idempotency-Key" },
    );
  }
  return key;
}
