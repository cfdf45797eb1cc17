import { ChangedForm, type ChatAnswer, type ChatChoice } from "./form.js";

/** OpenAI's legacy form of log-probabilities: parallel lists, and where each token begins in the text. */
interface LegacyLogprobs {
  tokens: string[];
  token_logprobs: (number | null)[];
  top_logprobs: (Record<string, number> | null)[];
  text_offset: number[];
}

/** A token and how probable it was; the first of a prompt was not predicted by anything. */
export interface ScoredToken {
  bytes: Uint8Array;
  logprob: number | null;
  /** Most probable first. */
  top: { bytes: Uint8Array; logprob: number }[] | null;
}

/** A prompt that its answers begin with. */
export interface EchoedPrompt {
  text: string;
  /** Its tokens; none where no log-probabilities were asked for. */
  scored: readonly ScoredToken[];
  /** Characters of the tokens that stand before the text. */
  before?: number;
}

/** What `/v1/completions` adds to the engine's answers: the prompt in front, and log-probabilities in their own form. */
export class CompletionForm extends ChangedForm {
  readonly #prompts: readonly EchoedPrompt[];
  readonly #perPrompt: number;
  readonly #top: number;
  readonly #silent: boolean;
  readonly #begun = new Map<number, Offsets>();

  /**
   * @param prompts to begin the answers with; empty: none
   * @param perPrompt answers for each prompt
   * @param top alternatives that were asked for: with none, only the chosen token is told
   * @param silent whether no token was asked for; llama.cpp's engine makes one all the same
   */
  constructor(prompts: readonly EchoedPrompt[], perPrompt: number, top: number, silent: boolean) {
    super();
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

  #choice(choice: ChatChoice): object {
    const { index } = choice;
    const content = choice.logprobs?.content;
    const asked = content !== undefined || (this.#silent && choice.logprobs);
    const logprobs: LegacyLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
    let text = this.#silent ? "" : (choice.text ?? "");
    let offsets = this.#begun.get(index);
    let scored: readonly ScoredToken[] = [];
    if (offsets === undefined) {
      const prompt = this.#prompts[Math.floor(index / this.#perPrompt) % this.#prompts.length];
      scored = prompt?.scored ?? [];
      add(logprobs, scored, new Offsets(-(prompt?.before ?? 0)), this.#top);
      text = (prompt?.text ?? "") + text;
      offsets = new Offsets(prompt?.text.length ?? 0);
      this.#begun.set(index, offsets);
    }
    if (!this.#silent) {
      const generated = (content ?? []).map(
        ({ bytes, token, logprob, top_logprobs = [] }): ScoredToken => ({
          bytes: bytesOf(bytes, token),
          logprob,
          top: top_logprobs.map((entry) => ({ ...entry, bytes: bytesOf(entry.bytes, entry.token) })),
        }),
      );
      add(logprobs, generated, offsets, this.#top);
    }
    return {
      ...choice,
      text,
      // The one token that the engine made may have ended the answer; nobody asked for it.
      ...(this.#silent && choice.finish_reason !== null && { finish_reason: "length" }),
      ...((asked || scored.length > 0) && { logprobs }),
    };
  }
}

/** Where in the text each of a row of tokens begins: a character may be spread over several. */
class Offsets {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #at: number;

  constructor(start: number) {
    this.#at = start;
  }

  of(token: Uint8Array): number {
    const at = this.#at;
    this.#at += this.#decoder.decode(token, { stream: true }).length;
    return Math.max(0, at);
  }
}

function add(to: LegacyLogprobs, scored: readonly ScoredToken[], offsets: Offsets, top: number): void {
  for (const { bytes, logprob, top: others } of scored) {
    const token = spelled(bytes);
    to.tokens.push(token);
    to.token_logprobs.push(logprob);
    to.top_logprobs.push(
      logprob === null || others === null ? null : alternatives(token, logprob, top === 0 ? [] : others),
    );
    to.text_offset.push(offsets.of(bytes));
  }
}

/** By their text, of which two tokens may have the same: the more probable one is told. The token itself is among them. */
function alternatives(
  token: string,
  logprob: number,
  others: NonNullable<ScoredToken["top"]>,
): Record<string, number> {
  const told = new Map<string, number>();
  for (const other of others) {
    const text = spelled(other.bytes);
    if (!told.has(text)) told.set(text, other.logprob);
  }
  if (!told.has(token)) told.set(token, logprob);
  return Object.fromEntries(told);
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A token's text; OpenAI's name for bytes that are none. */
function spelled(bytes: Uint8Array): string {
  try {
    return strict.decode(bytes);
  } catch {
    return `bytes:${Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("")}`;
  }
}

function bytesOf(bytes: readonly number[] | null | undefined, token: string): Uint8Array {
  return bytes ? Uint8Array.from(bytes) : Buffer.from(token);
}
