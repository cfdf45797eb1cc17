import {
  isLoop,
  type MeasuredStrength,
  measureStrength,
  type ScoredAnswer,
  type StrengthRange,
  strengthRange,
} from "../../findings/contrast.js";
import { tokensOf } from "../exact-tokens.js";
import type { Services } from "../services.js";
import type { ContrastSet } from "./sets.js";

/** Strengths that are measured first, in multiples of the activation norm. */
const usual = [0.2, 0.3, 0.42];
/** Measured if the usual ones break the language, or if they do not give the intended answer. */
const weaker = [0.07, 0.12];
const stronger = [0.6, 0.9];
/** The last prompt token and every generated one: the question itself stays as it is. */
export const positions = "last";
/** Length of the answers on which strengths are measured. */
const answerTokens = 16;
const mostQuestions = 2;

/** A strength that works at one layer, and what was measured there. */
export interface MeasuredLayer {
  layer: number;
  range: StrengthRange;
  measured: MeasuredStrength[];
}

export interface Measuring {
  services: Services;
  set: ContrastSet;
  /** The saved direction and a random one of the same norm at each layer. */
  vector: string;
  random: string;
  /** The middle one first. */
  layers: readonly number[];
  /** Whether the model has no chat template and continues texts. */
  raw: boolean;
  signal: AbortSignal;
  onAnswer: () => void;
}

/** What the direction does at its best layer, and the random control there at the strength to begin with. */
export interface MeasuredDirection extends MeasuredLayer {
  control: MeasuredStrength;
}

/** The usual number of answers of a measurement, for its progress. */
export const usualAnswers = mostQuestions * (1 + usual.length + 1);

/**
 * Measures a direction at several strengths: the middle layer first, further ones only if the direction does not work there.
 * Undefined if every strength breaks the language.
 */
export async function measureDirection(given: Measuring): Promise<MeasuredDirection | undefined> {
  const asker = new QuestionAsker(given);
  const own = await asker.askAll(undefined, 0, 0);
  let best: MeasuredLayer | undefined;
  for (const layer of given.layers) {
    const measured = await atLayer(given, asker, own, layer);
    const range = strengthRange(measured);
    if (range === undefined) continue;
    const found = { layer, range, measured };
    if (best === undefined || worth(found) > worth(best)) best = found;
    if (worth(best) > 0) break;
  }
  if (best === undefined) return undefined;
  const { layer, range } = best;
  const answers = await asker.askAll(given.random, layer, range.start, own);
  return { ...best, control: measureStrength(range.start, answers, own, given.set.expected) };
}

/** The largest share of answers that are as intended and fluent. */
function worth({ measured }: MeasuredLayer): number {
  return Math.max(...measured.map(({ both, of }) => both / of));
}

async function atLayer(
  { set, vector }: Measuring,
  asker: QuestionAsker,
  own: readonly ScoredAnswer[],
  layer: number,
): Promise<MeasuredStrength[]> {
  const measure = (strengths: readonly number[]) =>
    Promise.all(
      strengths.map(async (strength) => {
        const answers = await asker.askAll(vector, layer, strength, own);
        return measureStrength(strength, answers, own, set.expected);
      }),
    );
  const measured = await measure(usual);
  if (measured.some(({ both }) => both > 0)) return measured;
  const further = await measure(furtherStrengths(measured));
  return [...measured, ...further].sort((a, b) => a.strength - b.strength);
}

/** Where to look next if no answer was both as intended and fluent. */
export function furtherStrengths(measured: readonly MeasuredStrength[]): readonly number[] {
  const at = measured.findIndex(({ expected }) => expected > 0);
  // As intended but broken: something between this strength and the one below may be fluent.
  if (at >= 0) {
    const [below, above] = [measured[at - 1]?.strength ?? 0, measured[at]?.strength as number];
    return [0.35, 0.7].map((share) => Number((below + share * (above - below)).toFixed(3)));
  }
  return measured.at(-1)?.fluent === 0 ? weaker : stronger;
}

/** Asks a set's questions, and scores the answers with the unmodified model. */
class QuestionAsker {
  readonly #given: Measuring;
  readonly #texts: readonly string[];
  readonly #prompts = new Map<string, Promise<number[]>>();

  constructor(given: Measuring) {
    const { set, raw } = given;
    this.#given = given;
    this.#texts = (raw ? set.openings : set.questions).slice(0, mostQuestions);
  }

  /** @param own the model's own answers, once known: an equal answer needs no separate score */
  askAll(
    vector: string | undefined,
    layer: number,
    strength: number,
    own?: readonly ScoredAnswer[],
  ): Promise<ScoredAnswer[]> {
    return Promise.all(
      this.#texts.map(async (text, at) => {
        const answer = await this.#ask(text, { vector, layer, strength }, own?.[at]);
        this.#given.onAnswer();
        return answer;
      }),
    );
  }

  async #ask(
    text: string,
    { vector, layer, strength }: { vector: string | undefined; layer: number; strength: number },
    own: ScoredAnswer | undefined,
  ): Promise<ScoredAnswer> {
    const steer = { kind: "steer", layer, vector, strength, strength_unit: "row_norm", positions };
    const prompt = await this.#prompt(text);
    const { choices } = await this.#post<Completion>("/v1/completions", {
      prompt,
      ...{ temperature: 0, max_tokens: answerTokens },
      tapline: {
        ...(vector !== undefined && { interventions: [steer] }),
        watch: { layers: [layer], norms: true },
      },
    });
    const [choice] = choices;
    const ids = (choice?.tapline?.tokens ?? []).flatMap(({ token_id }) => token_id ?? []);
    const said = choice?.text ?? "";
    if (said === own?.text) return own;
    // A loop is not fluent whatever its score.
    if (isLoop(said)) return { text: said, perplexity: Number.POSITIVE_INFINITY };
    return { text: said, perplexity: await this.#perplexity(prompt, ids) };
  }

  /** The tokens of a question in the chat template, without thinking. */
  #prompt(text: string): Promise<number[]> {
    let found = this.#prompts.get(text);
    if (found === undefined) {
      found = this.#tokens(text);
      this.#prompts.set(text, found);
    }
    return found;
  }

  #tokens(text: string): Promise<number[]> {
    const { services, raw, signal } = this.#given;
    const messages = [{ role: "user", content: text }];
    return tokensOf(
      services,
      raw ? text : { messages, chat_template_kwargs: { enable_thinking: false } },
      signal,
    );
  }

  /** Of an answer's tokens after their prompt. */
  async #perplexity(prompt: readonly number[], answer: readonly number[]): Promise<number> {
    if (answer.length === 0) return Number.POSITIVE_INFINITY;
    const body = { prompt: [...prompt, ...answer], echo: true, logprobs: 0, max_tokens: 0 };
    const { choices } = await this.#post<Completion>("/v1/completions", body);
    const scores = (choices[0]?.logprobs?.token_logprobs ?? []).slice(prompt.length);
    const sum = scores.reduce<number>((total, score) => total + (score ?? 0), 0);
    return Math.exp(-sum / Math.max(1, scores.length));
  }

  #post<T>(path: string, body: object): Promise<T> {
    const { services, signal } = this.#given;
    return services.http.json<T>(path, { method: "POST", body, signal });
  }
}

interface Completion {
  choices: {
    text: string;
    tapline?: { tokens?: { token_id?: number }[] };
    logprobs?: { token_logprobs: (number | null)[] } | null;
  }[];
}
