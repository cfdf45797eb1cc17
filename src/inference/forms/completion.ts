import { ChangedForm, type ChatAnswer, type ChatChoice } from "./form.js";

/** OpenAI's legacy form of log-probabilities: parallel lists, and the offset of each token in the text. */
interface LegacyLogprobs {
  tokens: string[];
  token_logprobs: (number | null)[];
  top_logprobs: (Record<string, number> | null)[];
  text_offset: number[];
}

/** A token and its log-probability; a prompt's first token has none. */
export interface ScoredToken {
  bytes: Uint8Array;
  logprob: number | null;
  /** Most probable first. */
  top: { bytes: Uint8Array; logprob: number }[] | null;
}

/** A prompt that its answers start with. */
export interface EchoedPrompt {
  text: string;
  /** Its tokens; empty if no log-probabilities were requested. */
  scored: readonly ScoredToken[];
  /** Length of the tokens before the text, in characters. */
  before?: number;
}

/**
 * The answers of `/v1/completions`: optionally start with the prompt, and have log-probabilities in the legacy
 * format.
 */
export class CompletionForm extends ChangedForm {
  readonly #begun = new Map<number, Offsets>();

  /**
   * @param prompts prompts that the answers start with; empty for none
   * @param perPrompt answers per prompt
   * @param top number of alternatives requested; with 0, only the chosen token is returned
   * @param silent whether no token was requested; llama.cpp's engine generates one anyway
   */
  constructor(
    private readonly prompts: readonly EchoedPrompt[],
    private readonly perPrompt: number,
    private readonly top: number,
    private readonly silent: boolean,
  ) {
    super();
  }

  whole(answer: ChatAnswer): object {
    const { usage } = answer;
    return {
      ...answer,
      choices: answer.choices.map((choice) => this.#choice(choice)),
      ...(usage &&
        this.silent && { usage: { ...usage, completion_tokens: 0, total_tokens: usage.prompt_tokens } }),
    };
  }

  #choice(choice: ChatChoice): object {
    const { index } = choice;
    const content = choice.logprobs?.content;
    const asked = content !== undefined || (this.silent && choice.logprobs);
    const logprobs: LegacyLogprobs = { tokens: [], token_logprobs: [], top_logprobs: [], text_offset: [] };
    let text = this.silent ? "" : (choice.text ?? "");
    let offsets = this.#begun.get(index);
    let scored: readonly ScoredToken[] = [];
    if (offsets === undefined) {
      const prompt = this.prompts[Math.floor(index / this.perPrompt) % this.prompts.length];
      scored = prompt?.scored ?? [];
      add(logprobs, scored, new Offsets(-(prompt?.before ?? 0)), this.top);
      text = (prompt?.text ?? "") + text;
      offsets = new Offsets(prompt?.text.length ?? 0);
      this.#begun.set(index, offsets);
    }
    if (!this.silent) {
      const generated = (content ?? []).map(
        ({ bytes, token, logprob, top_logprobs = [] }): ScoredToken => ({
          bytes: bytesOf(bytes, token),
          logprob,
          top: top_logprobs.map((entry) => ({ ...entry, bytes: bytesOf(entry.bytes, entry.token) })),
        }),
      );
      add(logprobs, generated, offsets, this.top);
    }
    return {
      ...choice,
      text,
      // The engine's unrequested token may have ended the answer.
      ...(this.silent && choice.finish_reason !== null && { finish_reason: "length" }),
      ...((asked || scored.length > 0) && { logprobs }),
    };
  }
}

/** Tracks the offsets of consecutive tokens in the text; a character may span several tokens. */
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

/** Keyed by text. If two tokens have the same text, the more probable one is returned. Includes the token itself. */
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

/** A token's text, or OpenAI's notation for bytes that are not valid UTF-8. */
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
