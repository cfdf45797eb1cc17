import {
  isFluent,
  type MeasuredStrength,
  measureStrength,
  type ScoredAnswer,
  type StrengthRange,
  strengthRange,
} from "../../findings/contrast.js";
import type { Services } from "../services.js";
import type { ContrastSet } from "./sets.js";

/** Strengths that are measured, in multiples of the activation norm. */
const strengths = [0.12, 0.18, 0.24, 0.3, 0.38, 0.48];
/** The last prompt token and every generated one: the question itself stays as it is. */
export const positions = "last";
/** Length of the answers on which they are measured. */
const answerTokens = 24;
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

/** What the direction does at its best layer, and the random control there at the same strengths. */
export interface MeasuredDirection extends MeasuredLayer {
  control: MeasuredStrength[];
}

/** The number of answers of a measurement, for its progress: at least those of one layer and the control. */
export function answersOf({ questions }: ContrastSet): number {
  return Math.min(mostQuestions, questions.length) * (2 * strengths.length + 1);
}

/**
 * Measures a direction at several strengths: the middle layer first, further ones only if the direction does not work there.
 * Undefined if it works nowhere.
 */
export async function measureDirection(given: Measuring): Promise<MeasuredDirection | undefined> {
  const asker = new QuestionAsker(given);
  const own = await asker.askAll(undefined, 0, 0);
  let best: MeasuredLayer | undefined;
  for (const layer of given.layers) {
    const measured = await atLayer(given, asker, own, given.vector, layer);
    const range = strengthRange(measured);
    if (range === undefined) continue;
    const found = { layer, range, measured };
    if (best === undefined || worth(found) > worth(best)) best = found;
    if (works(found)) break;
  }
  if (best === undefined) return undefined;
  return { ...best, control: await atLayer(given, asker, own, given.random, best.layer) };
}

function works({ measured, range }: MeasuredLayer): boolean {
  const start = measured.find(({ strength }) => strength === range.start);
  return start !== undefined && start.both === start.of;
}

function worth({ measured }: MeasuredLayer): number {
  return Math.max(...measured.map(({ both, of }) => both / of));
}

async function atLayer(
  { set }: Measuring,
  asker: QuestionAsker,
  own: readonly ScoredAnswer[],
  vector: string,
  layer: number,
): Promise<MeasuredStrength[]> {
  const measured: MeasuredStrength[] = [];
  for (const strength of strengths) {
    const answers = await asker.askAll(vector, layer, strength);
    measured.push(measureStrength(strength, answers, own, set.expected));
    // Stronger ones would be broken as well.
    if (!answers.some((answer, at) => isFluent(answer, own[at] as ScoredAnswer))) break;
  }
  return measured;
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

  askAll(vector: string | undefined, layer: number, strength: number): Promise<ScoredAnswer[]> {
    return Promise.all(
      this.#texts.map(async (text) => {
        const answer = await this.#ask(text, vector, layer, strength);
        this.#given.onAnswer();
        return answer;
      }),
    );
  }

  async #ask(
    text: string,
    vector: string | undefined,
    layer: number,
    strength: number,
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
    return { text: choice?.text ?? "", perplexity: await this.#perplexity(prompt, ids) };
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

  async #tokens(text: string): Promise<number[]> {
    const messages = [{ role: "user", content: text }];
    const content = this.#given.raw
      ? text
      : (
          await this.#post<{ prompt: string }>("/apply-template", {
            messages,
            chat_template_kwargs: { enable_thinking: false },
          })
        ).prompt;
    const asked = { content, add_special: true, parse_special: true };
    return (await this.#post<{ tokens: number[] }>("/tokenize", asked)).tokens;
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
