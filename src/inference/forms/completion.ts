import type { AnswerForm, ChatAnswer, ChatChoice, TokenLogprob } from "./form.js";

/** OpenAI's legacy form of log-probabilities: parallel lists, and where each token begins in the text. */
interface LegacyLogprobs {
  tokens: string[];
  token_logprobs: number[];
  top_logprobs: Record<string, number>[];
  text_offset: number[];
}

/** What `/v1/completions` adds to the engine's answers: the prompt in front, and log-probabilities in their own form. */
export class CompletionForm implements AnswerForm {
  readonly #prompts: readonly string[];
  readonly #perPrompt: number;
  readonly #top: number;
  readonly #silent: boolean;
  readonly #sent = new Map<number, number>();

  /**
   * @param prompts texts to begin the answers with; empty: none
   * @param perPrompt answers for each prompt
   * @param top alternatives that were asked for: with none, only the chosen token is told
   * @param silent whether no token was asked for; llama.cpp's engine makes one all the same
   */
  constructor(prompts: readonly string[], perPrompt: number, top: number, silent: boolean) {
    this.#prompts = prompts;
    this.#perPrompt = perPrompt;
    this.#top = top;
    this.#silent = silent;
  }

  whole(answer: ChatAnswer): object {
    const { usage } = answer;
    return {
      ...answer,
      choices: answer.choices.map((choice) => this.#choice(choice)),
      ...(usage &&
        this.#silent && { usage: { ...usage, completion_tokens: 0, total_tokens: usage.prompt_tokens } }),
    };
  }

  event(answer: ChatAnswer): string {
    return `data: ${JSON.stringify(this.whole(answer))}\n\n`;
  }

  end(): string {
    return "data: [DONE]\n\n";
  }

  fault(sentence: string): string {
    const error = { message: sentence, type: "server_error", param: null, code: null };
    return `data: ${JSON.stringify({ error })}\n\n`;
  }

  #choice(choice: ChatChoice): object {
    const { index } = choice;
    const text = this.#silent ? "" : (choice.text ?? "");
    let sent = this.#sent.get(index);
    let before = "";
    if (sent === undefined) {
      before = this.#prompts[Math.floor(index / this.#perPrompt) % this.#prompts.length] ?? "";
      sent = before.length;
    }
    const logprobs = this.#silent && choice.logprobs ? [] : choice.logprobs?.content;
    this.#sent.set(index, sent + text.length);
    return {
      ...choice,
      text: before + text,
      ...(logprobs !== undefined && { logprobs: legacy(logprobs, sent, this.#top) }),
    };
  }
}

function legacy(content: readonly TokenLogprob[], start: number, top: number): LegacyLogprobs {
  let at = start;
  const logprobs: LegacyLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
  for (const { token, logprob, top_logprobs = [] } of content) {
    logprobs.tokens.push(token);
    logprobs.token_logprobs.push(logprob);
    logprobs.top_logprobs.push(
      Object.fromEntries(
        (top === 0 ? [{ token, logprob }] : top_logprobs).map((entry) => [entry.token, entry.logprob]),
      ),
    );
    logprobs.text_offset.push(at);
    at += token.length;
  }
  return logprobs;
}
