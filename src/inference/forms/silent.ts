import { ChangedForm, type ChatAnswer, type ChatChoice } from "./form.js";

/** An answer of llama-server's /completion, or a part of one. */
interface NativeAnswer {
  content?: string;
  tokens?: number[];
  tokens_predicted?: number;
  completion_probabilities?: unknown[];
  stop_type?: string;
  stopping_word?: string;
}

/**
 * Answers to a request for no token at all (`max_tokens: 0`), which only caches its prompt. llama.cpp's engine
 * generates one token anyway, which is removed here.
 */
export class SilentForm extends ChangedForm {
  whole(answer: ChatAnswer): object {
    // Several prompts to llama-server's /completion yield a list of answers.
    if (Array.isArray(answer)) return answer.map(withoutNativeToken);
    if (!Array.isArray(answer.choices)) return withoutNativeToken(answer as NativeAnswer);
    const { usage } = answer;
    return {
      ...answer,
      choices: answer.choices.map(withoutToken),
      ...(usage && { usage: { ...usage, completion_tokens: 0, total_tokens: usage.prompt_tokens } }),
    };
  }
}

function withoutToken({ stop_reason: _, ...choice }: ChatChoice): object {
  const { message, delta, logprobs, finish_reason } = choice;
  return {
    ...choice,
    ...(message && { message: { role: "assistant", content: "" } }),
    ...(delta && { delta: "role" in delta ? { role: delta.role, content: null } : {} }),
    ...(logprobs && { logprobs: { content: [] } }),
    // The removed token may have ended the answer.
    ...(finish_reason !== null && { finish_reason: "length" }),
  };
}

function withoutNativeToken(answer: NativeAnswer): object {
  return {
    ...answer,
    ...(answer.content !== undefined && { content: "" }),
    ...(answer.tokens && { tokens: [] }),
    ...(answer.tokens_predicted !== undefined && { tokens_predicted: 0 }),
    ...(answer.completion_probabilities && { completion_probabilities: [] }),
    ...(answer.stop_type !== undefined && { stop_type: "limit", stopping_word: "" }),
  };
}
