import type { ServerResponse } from "node:http";
import type { Context } from "koa";
import { HttpError, toHttpError } from "../http/index.js";
import type { EngineReply } from "../native/engine.js";
import { NativeError } from "../native/index.js";
import { type AnswerForm, type ChatAnswer, translate } from "./forms/form.js";

/** A comment that keeps a silent stream from being taken for dead. */
const keepAlive = ": still working\n\n";
const keepAliveMs = 15_000;

/**
 * llama.cpp lets a grammar of its own making read what the answer begins with, and where that does not fit, the exception
 * that says so is thrown again as one that says nothing (common_sampler_init).
 */
const unfit = {
  theirs: "Failed to initialize samplers: std::exception",
  ours:
    "The answer that is to be continued, a last message from the assistant, does not fit the format that it has to follow " +
    "(json_schema, response_format, text.format or tools).",
};

/**
 * The body of a whole answer.
 * @throws HttpError with the engine's sentence where it refused
 */
export function wholeBody(reply: Pick<EngineReply, "status" | "body">): string {
  if (reply.status < 400) return reply.body;
  const { error } = JSON.parse(reply.body) as { error: { message: string; type: string } };
  // What this engine does not do is the request's fault, and so is a grammar that cannot be followed.
  const status = reply.status === 501 || error.message.includes("grammar stack") ? 400 : reply.status;
  const code = error.type === "exceed_context_size_error" ? "context_length_exceeded" : null;
  const sentence = error.message === unfit.theirs ? unfit.ours : error.message;
  throw new HttpError(status, sentence, code === null ? {} : { code });
}

/**
 * An answer whose thinking was cut off right after it began: llama.cpp takes the tag alone for the answer's text, where a
 * stream of the same answer has no text.
 * @param tag what the template writes where thinking begins; empty where it writes nothing
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
 * Sends a stream part by part: the next is asked for only when the client has taken the last. Resolves when all
 * was handed over; a fault in the middle becomes an event, then the stream ends.
 * @param form what the engine's events become; as they are without one
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
      // Nothing drains once the client has gone; the next part then says that the request was cancelled.
      const text = form === undefined ? data : translate(form, data);
      if (text !== "" && !res.write(text) && !res.destroyed) await drained(res);
      sent(data, tokens);
    }
    res.end();
  } catch (error) {
    const ending = error instanceof NativeError && error.code === "CLOSED";
    const message = ending ? "The server is ending." : toHttpError(error).message;
    const body = { error: { message, type: "server_error", param: null, code: null } };
    if (!res.destroyed) res.end(form?.fault(message) ?? `data: ${JSON.stringify(body)}\n\n`);
    throw error;
  } finally {
    clearInterval(silence);
  }
}

function drained(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      res.off("drain", settle).off("close", settle);
      resolve();
    };
    res.on("drain", settle).on("close", settle);
  });
}
