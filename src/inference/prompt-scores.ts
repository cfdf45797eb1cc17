import { inferenceLimits as limits } from "../contracts/inference-limits.js";
import { HttpError } from "../http/index.js";
import type { Edit } from "../native/edit.js";
import type { Engine, ScoreRequest, PromptScores as Scores } from "../native/engine.js";
import { NativeError } from "../native/index.js";
import { SerialQueue } from "../native/serial.js";
import { checkTokens, fieldRefusal } from "./check-body.js";
import type { EchoedPrompt, ScoredToken } from "./forms/completion.js";
import { wholeBody } from "./reply.js";

/** JSON has no minus infinity; like llama-server, use the lowest 32-bit float. */
const leastLogprob = -3.4028234663852886e38;

/** Prompts to echo before their answers. */
export interface EchoRequest {
  prompts: readonly (string | number[])[];
  /** Alternatives per prompt token; undefined for no log-probabilities. */
  top: number | undefined;
  /** Answers per prompt. */
  answers: number;
  /** Act on the prompt's tokens. */
  edits?: readonly Edit[];
}

/** Scores the prompts of `/v1/completions`, one at a time, because the passes run on the thread that generates. */
export class PromptScores {
  readonly #turns = new SerialQueue("scorer");

  constructor(private readonly engine: Engine) {}

  /** @throws HttpError 400 if a prompt or the whole answer is too long; NativeError CANCELLED */
  async echo({ prompts, top, answers, edits }: EchoRequest, signal: AbortSignal): Promise<EchoedPrompt[]> {
    if (top === undefined) {
      return Promise.all(
        prompts.map(async (prompt) => ({ text: await this.#text(prompt, signal), scored: [] })),
      );
    }
    const tokens: number[][] = [];
    for (const prompt of prompts) tokens.push(await this.#tokens(prompt, signal));
    this.#checkSizes(tokens, (top + 1) * answers);
    const echoed: EchoedPrompt[] = [];
    for (const [index, ids] of tokens.entries()) {
      const prompt = prompts[index];
      const asked = { tokens: Int32Array.from(ids), top, signal, ...(edits && { edits }) };
      const scores = await this.#score(asked);
      echoed.push(echoedPrompt(ids, scores, typeof prompt === "string" ? prompt : null));
    }
    return echoed;
  }

  async #text(prompt: string | number[], signal: AbortSignal): Promise<string> {
    if (typeof prompt === "string") return prompt;
    const tokens = checkTokens(this.engine.info, prompt);
    const reply = await this.engine.request("detokenize", { tokens }, signal);
    return (JSON.parse(wholeBody(reply)) as { content: string }).content;
  }

  /** The engine's tokens of a prompt. */
  async #tokens(prompt: string | number[], signal: AbortSignal): Promise<number[]> {
    if (typeof prompt !== "string") return [...checkTokens(this.engine.info, prompt)];
    const asked = { content: prompt, add_special: true, parse_special: true };
    const reply = await this.engine.request("tokenize", asked, signal);
    return (JSON.parse(wholeBody(reply)) as { tokens: number[] }).tokens;
  }

  #checkSizes(tokens: readonly number[][], entries: number): void {
    const { slotContext } = this.engine.info;
    const longest = tokens.reduce((most, ids) => Math.max(most, ids.length), 0);
    if (longest >= slotContext) {
      throw new HttpError(
        400,
        `prompt: ${longest} tokens and an answer do not fit into the context of ${slotContext}.`,
        { param: "prompt", code: "context_length_exceeded" },
      );
    }
    const told = tokens.reduce((sum, ids) => sum + ids.length, 0) * entries;
    if (told > limits.prompt_logprobs) {
      throw fieldRefusal(
        "logprobs",
        `with echo, at most ${limits.prompt_logprobs} log-probabilities of prompt tokens per answer, got ${told}; request fewer prompts, alternatives or answers.`,
      );
    }
  }

  async #score(request: ScoreRequest): Promise<Scores> {
    try {
      return await this.#turns.run(() => this.engine.score(request));
    } catch (error) {
      throw refused(error);
    }
  }
}

/** Reports limits of the model or the machine in the native error's words. */
function refused(error: unknown): unknown {
  if (!(error instanceof NativeError)) return error;
  if (error.code === "UNSUPPORTED_ARCHITECTURE") return fieldRefusal("logprobs", `${error.message}`);
  if (error.code === "OUT_OF_MEMORY") return new HttpError(503, error.message);
  return error.code === "COMPUTE" ? new HttpError(500, error.message) : error;
}

/** @param text the prompt; null if it was given as tokens */
function echoedPrompt(ids: readonly number[], scores: Scores, text: string | null): EchoedPrompt {
  const { logProbabilities, top, topIds, topLogProbabilities, pieces } = scores;
  const bytes = (id: number) => pieces.get(id) ?? new Uint8Array();
  const finite = (value: number) => Math.max(leastLogprob, value);
  const scored = ids.map((id, place): ScoredToken => {
    if (place === 0) return { bytes: bytes(id), logprob: null, top: null };
    const row = place - 1;
    const entries = Array.from({ length: top }, (_, i) => ({
      bytes: bytes(topIds[row * top + i] as number),
      logprob: finite(topLogProbabilities[row * top + i] as number),
    }));
    return { bytes: bytes(id), logprob: finite(logProbabilities[row] as number), top: entries };
  });
  const spelled = new TextDecoder("utf-8", { ignoreBOM: true }).decode(
    Buffer.concat(ids.map((id) => bytes(id))),
  );
  // Tokenizers may prepend a token or a space, which is not part of the text. If they change more, the answer starts
  // with the decoded tokens.
  if (text === null || !spelled.endsWith(text)) return { text: spelled, scored, before: 0 };
  return { text, scored, before: spelled.length - text.length };
}
