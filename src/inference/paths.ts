import { type ErrorBody, errorBodyAt, underPath } from "../http/index.js";
import { messagesErrorBody } from "./forms/form.js";

const anthropic = underPath("/v1/messages");

/** The format of error bodies at a path of the inference server: Anthropic's, OpenAI's, llama-server's or ours. */
export function servingErrorBody(path: string): ErrorBody {
  return anthropic(path) ? messagesErrorBody : errorBodyAt(path);
}

/** Paths that web pages of allowed origins may use. */
export const forPages = underPath("/v1");
