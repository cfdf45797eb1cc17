import type { ServerResponse } from "node:http";
import type { Context } from "koa";
import { HttpError, toHttpError } from "../http/index.js";
import type { EngineReply } from "../native/engine.js";
import { NativeError } from "../native/index.js";
import { type AnswerForm, type ChatAnswer, translate } from "./forms/form.js";

/** A comment that keeps idle streams alive. */
const keepAlive = ": still working\n\n";
const keepAliveMs = 15_000;

/**
 * llama.cpp applies generated grammars to the start of a continued answer. If it does not match, the exception is
 * rethrown without its message (common_sampler_init).
 */
const unfit = {
  theirs: "Failed to initialize samplers: std::exception",
  ours:
    "The final assistant message, which is to be continued, does not match the required format " +
    "(json_schema, response_format, text.format or tools).",
};

/** The body of a whole answer. @throws HttpError with the engine's sentence if it refused */
export function wholeBody(reply: Pick<EngineReply, "status" | "body">): string {
  if (reply.status < 400) return reply.body;
  const { error } = JSON.parse(reply.body) as { error: { message: string; type: string } };
  // Unsupported features and unsatisfiable grammars are errors of the request.
  const status = reply.status === 501 || error.message.includes("grammar stack") ? 400 : reply.status;
  const code = error.type === "exceed_context_size_error" ? "context_length_exceeded" : null;
  const sentence = error.message === unfit.theirs ? unfit.ours : error.message;
  throw new HttpError(status, sentence, code === null ? {} : { code });
}

/**
 * Fixes an answer whose thinking was cut off right after its start: llama.cpp returns the lone tag as the answer's
 * text, while a stream of the same answer has no text.
 * @param tag the template's tag at the start of thinking; empty if there is none
 */
export function withoutLoneTag(body: string, tag: string): string {
  if (tag.trim() === "" || !body.includes(`"content":${JSON.stringify(tag.trim()).slice(0, -1)}`))
    return body;
  const answer = JSON.parse(body) as ChatAnswer;
  for (const { message } of answer.choices) {
    if (message === undefined || message.reasoning_content) continue;
    if (message.content?.trim() === tag.trim())
      Object.assign(message, { content: "", reasoning_content: "" });
  }
  return JSON.stringify(answer);
}

/**
 * Sends a stream part by part, requesting the next only once the client has accepted the last. Resolves when all
 * parts are sent; an error in the middle becomes an event and ends the stream.
 * @param form converts the engine's events; undefined to send them unchanged
 * @param sent called after each part was written
 */
export async function sendStream(
  ctx: Context,
  parts: NonNullable<EngineReply["parts"]>,
  form: AnswerForm | undefined,
  sent: (data: string, tokens: readonly number[]) => void,
): Promise<void> {
  const { res } = ctx;
  ctx.respond = false;
  ctx.status = 200;
  res.setHeader("Content-Type", "text/event-stream; charset=utf-8");
  res.setHeader("X-Accel-Buffering", "no");
  res.flushHeaders();
  const silence = setInterval(() => res.write(keepAlive), keepAliveMs);
  try {
    for await (const { data, tokens } of parts) {
      silence.refresh();
      // Nothing drains once the client has disconnected; the next part then reports the cancellation.
      const text = form === undefined ? data : translate(form, data);
      if (text !== "" && !res.write(text) && !res.destroyed) await drained(res);
      sent(data, tokens);
    }
    res.end();
  } catch (error) {
    const ending = error instanceof NativeError && error.code === "CLOSED";
    const message = ending ? "The server is shutting down." : toHttpError(error).message;
    const body = { error: { message, type: "server_error", param: null, code: null } };
    if (!res.destroyed) res.end(form?.fault(message) ?? `data: ${JSON.stringify(body)}\n\n`);
    throw error;
  } finally {
    clearInterval(silence);
  }
}

/** Waits until a response takes more, or its client is gone. */
export function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      res.off("drain", settle).off("close", settle);
      resolve();
    };
    res.on("drain", settle).on("close", settle);
  });
}
