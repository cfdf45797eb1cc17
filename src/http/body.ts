import type { Context } from "koa";
import type { Static, TSchema } from "typebox";
import { InvalidInput, validate } from "../contracts/validate.js";
import { HttpError } from "./errors.js";

export interface BodyOptions {
  /** Largest accepted body, in bytes. */
  limit: number;
  /** Whether a missing body counts as `{}`. */
  optional?: boolean;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads a request's JSON body. Rejects with 400: bodies over the limit, content codings, invalid UTF-8, invalid JSON, and
 * empty bodies (unless optional).
 */
export async function readJson(ctx: Context, options: BodyOptions): Promise<unknown> {
  const bytes = await readBytes(ctx, options.limit);
  if (bytes.length === 0) {
    if (options.optional) return {};
    throw new HttpError(400, "The body is empty; send a JSON object.");
  }
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    throw new HttpError(400, "The body is not valid UTF-8.");
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new HttpError(400, "The body is not valid JSON.");
  }
}

/**
 * Reads a request's body, at most `limit` bytes. The rest is read and discarded, so that a client that writes everything
 * before it reads still gets the error.
 */
export function readBytes(ctx: Pick<Context, "req">, limit: number): Promise<Buffer> {
  const request = ctx.req;
  const coding = request.headers["content-encoding"];
  if (coding !== undefined && coding.toLowerCase() !== "identity") {
    return Promise.reject(
      new HttpError(400, `The body has the content coding ${coding}; send it without one.`),
    );
  }
  const announced = Number(request.headers["content-length"]);
  if (announced > limit) {
    return Promise.reject(
      new HttpError(400, `The body has ${announced} bytes; at most ${limit} are accepted.`),
    );
  }
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const settle = (action: () => void) => {
      request.off("data", onData).off("end", onEnd).off("error", onGone).off("close", onGone);
      action();
    };
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      if (length <= limit) {
        chunks.push(chunk);
        return;
      }
      settle(() => reject(new HttpError(400, `The body has more than ${limit} bytes, which is the limit.`)));
      request.resume();
    };
    const onEnd = () => settle(() => resolve(Buffer.concat(chunks, length)));
    const onGone = () =>
      settle(() => reject(new HttpError(400, "The request ended before its body was complete.")));
    request.on("data", onData).on("end", onEnd).on("error", onGone).on("close", onGone);
  });
}

/** Validates a value against a schema. @throws HttpError 400 */
export function checked<S extends TSchema>(schema: S, value: unknown): Static<S> {
  return accepted(() => validate(schema, value));
}

/** Runs a check of input. @throws HttpError 400 with the check's message */
export function accepted<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw error instanceof InvalidInput ? new HttpError(400, error.message) : error;
  }
}
