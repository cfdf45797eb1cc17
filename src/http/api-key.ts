import { createHash, timingSafeEqual } from "node:crypto";
import { HttpError } from "./errors.js";

/**
 * A check of `Authorization: Bearer <key>` headers, in time that tells nothing about the key. It throws a 401 for
 * any other header; without a key everything passes.
 */
export function apiKeyCheck(key: string | undefined): (authorization: string | undefined) => void {
  if (key === undefined) return () => {};
  const wanted = digest(key);
  return (authorization = "") => {
    const given = /^Bearer +(.+)$/i.exec(authorization)?.[1] ?? "";
    if (timingSafeEqual(digest(given), wanted)) return;
    throw new HttpError(401, "A valid API key is needed: send Authorization: Bearer <key>.", {
      code: "invalid_api_key",
      headers: { "WWW-Authenticate": "Bearer" },
    });
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
