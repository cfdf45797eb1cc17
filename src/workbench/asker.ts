import type { Question } from "../client/index.js";
import type { AskRequest, ForkRequest } from "../contracts/workbench.js";
import { workbenchLimits } from "../contracts/workbench-limits.js";
import { spreadLayers } from "../findings/layers.js";
import { HttpError } from "../http/index.js";
import { type Conversations, isRunning } from "./conversations.js";
import type { Events } from "./events.js";
import { misfit } from "./fitting.js";
import { type Services, sentenceOf } from "./services.js";
import { ThoughtClock } from "./thought-clock.js";
import { TokenReader } from "./token-reader.js";
import type {
  AnswerToken,
  Branch,
  Conversation,
  DoneEdit,
  FeatureScore,
  ServerStatus,
  Turn,
  TurnAnswer,
} from "./wire.js";

/** What the server tells of kept rows read through a dictionary. */
interface CaptureFeatures {
  prompt_tokens: number;
  rows: { index: number; features: FeatureScore[] }[];
}

/** Candidates of the model's own choice, and of each layer's lens. */
const counts = { candidates: 5, lens: 5, layers: 8 } as const;
const usualTokens = 256;

/** Asks the served model in the name of the pages; an answer goes on whoever looks. */
export class Asker {
  readonly #services: Services;
  readonly #conversations: Conversations;
  readonly #events: Events;
  readonly #running = new Map<string, AbortController>();

  constructor(services: Services, conversations: Conversations, events: Events) {
    this.#services = services;
    this.#conversations = conversations;
    this.#events = events;
  }

  /** Begins an answer and returns where it will stand. @throws HttpError */
  async ask(id: string | undefined, asked: AskRequest): Promise<{ conversation: string; turn: number }> {
    const server = await this.#ready();
    const dictionary = await this.#dictionary(asked.dictionary, server);
    // From here on nothing is awaited: another tab may have asked, too.
    const before = id === undefined ? undefined : this.#conversations.get(id);
    const { instead_of: place } = asked;
    if (before !== undefined && place === undefined) this.#refuseBusy(before);
    if (place !== undefined && place >= (before?.turns.length ?? 0)) {
      throw new HttpError(400, `There is no question ${place} in whose place this could stand.`);
    }
    const raw = before?.raw ?? asked.raw ?? false;
    const turns = before?.turns.slice(0, place) ?? [];
    const request = requestOf(asked, raw, turns, watchedLayers(asked, server, dictionary), dictionary);
    const conversation =
      before === undefined || place !== undefined
        ? this.#conversations.create(raw, asked.text, turns, branchOf(before?.id, place))
        : before;
    return this.#begin(conversation, {
      question: asked.text,
      request,
      model: server.model,
      interventions: asked.interventions ?? [],
      layers: watchedLayers(asked, server, dictionary),
      ...(dictionary !== undefined && { dictionary }),
      kept: 0,
      answers: answersOf(asked.pair === true && (asked.interventions ?? []).length > 0),
    });
  }

  /** Goes on from a token of an answer, with another in its place where one is named, in a new conversation. */
  async fork(id: string, fork: ForkRequest): Promise<{ conversation: string; turn: number }> {
    const server = await this.#ready();
    const from = this.#conversations.get(id);
    const turn = from.turns[fork.turn];
    const answer = turn?.answers[fork.answer];
    if (turn === undefined || answer === undefined) throw new HttpError(404, "There is no such answer.");
    if (turn.model !== undefined && turn.model !== server.model) {
      throw new HttpError(
        409,
        `These tokens are ${turn.model}'s, and ${server.model} is served now, whose tokens are others.`,
      );
    }
    if (fork.token > answer.tokens.length) {
      throw new HttpError(400, `The answer has ${answer.tokens.length} tokens; got ${fork.token}.`);
    }
    const kept = answer.tokens.slice(0, fork.token);
    if (fork.token_id !== undefined) kept.push(await this.#tokenOf(fork.token_id, answer, fork.token));
    else if (fork.text !== undefined) kept.push(...(await this.#tokensOf(fork.text, answer, fork.token)));
    if (kept.some(({ id }) => id === undefined)) {
      throw new HttpError(409, "Not every token before it is known by its number.");
    }
    const prompt = [...(await this.#promptIds(turn)), ...kept.map(({ id }) => id as number)];
    const { messages: _, prompt: __, chat_template_kwargs: ___, ...same } = turn.request.body;
    const { pair: ____, interventions, ...watched } = (same.tapline ?? {}) as Record<string, unknown>;
    const edited = answer.edited && interventions !== undefined;
    const body = {
      ...same,
      prompt,
      logprobs: counts.candidates,
      top_logprobs: undefined,
      tapline: { ...watched, ...(edited && { interventions }) },
    };
    const before = from.turns.slice(0, fork.turn);
    const branch = { conversation: from.id, turn: fork.turn };
    const conversation = this.#conversations.create(from.raw, from.title, before, branch);
    return this.#begin(conversation, {
      question: turn.question,
      request: { path: "/v1/completions", body: JSON.parse(JSON.stringify(body)) },
      model: server.model,
      interventions: edited ? turn.interventions : [],
      layers: turn.layers.filter((layer) => server.n_layer === null || layer < server.n_layer),
      ...(turn.dictionary !== undefined && { dictionary: turn.dictionary }),
      kept: kept.length,
      answers: [{ state: "running", edited: true, tokens: kept, finish: null }],
    });
  }

  /** Ends an answer that is being given; what came of it stays. */
  stop(id: string): void {
    this.#conversations.get(id);
    this.#running.get(id)?.abort();
  }

  close(): void {
    for (const running of this.#running.values()) running.abort();
  }

  async #ready(): Promise<ServerStatus> {
    if (!this.#services.server.ok) await this.#services.look();
    const { server } = this.#services;
    if (!server.ok) throw new HttpError(503, server.sentence);
    return server;
  }

  #refuseBusy({ turns }: Conversation): void {
    if (turns.some(isRunning))
      throw new HttpError(409, "This conversation is being answered; stop that first.");
    if (turns.length >= workbenchLimits.turns) {
      throw new HttpError(
        409,
        `A conversation has at most ${workbenchLimits.turns} questions; begin another.`,
      );
    }
  }

  #begin(conversation: Conversation, turn: Turn): { conversation: string; turn: number } {
    const index = conversation.turns.push(turn) - 1;
    this.#events.publish({ type: "turn", conversation: conversation.id, index, turn });
    this.#conversations.told();
    void this.#run(conversation, index);
    return { conversation: conversation.id, turn: index };
  }

  async #run(conversation: Conversation, index: number): Promise<void> {
    const turn = conversation.turns[index] as Turn;
    const stopping = new AbortController();
    this.#running.set(conversation.id, stopping);
    const { messages, prompt, ...request } = turn.request.body as { messages?: Question; prompt?: Question };
    const question = (messages ?? prompt) as Question;
    const readers = turn.answers.map((answer) => new TokenReader(answer, turn));
    const clocks = turn.answers.map(({ tokens }) => new ThoughtClock(tokens));
    let failed: unknown;
    try {
      const deltas = this.#services.model.stream(question, { request, signal: stopping.signal });
      for await (const delta of deltas) {
        const answer = turn.answers[delta.choice];
        const [reader, clock] = [readers[delta.choice], clocks[delta.choice]];
        if (answer === undefined || reader === undefined || clock === undefined) continue;
        const tokens = reader.read(delta);
        const thought = clock.hear(tokens) ?? (delta.finishReason === null ? undefined : clock.end());
        if (thought !== undefined) answer.thoughtSeconds = thought;
        this.#add(conversation, index, delta.choice, tokens);
        answer.finish = delta.finishReason ?? answer.finish;
        if (delta.tapline?.interventions !== undefined) {
          answer.edits = delta.tapline.interventions.map((edit) => edit as unknown as DoneEdit);
        }
        const { capture } = delta.tapline ?? {};
        if (capture !== undefined && turn.dictionary !== undefined) {
          // Told before the answer is: where it says that it is complete, everything is there.
          await this.#readFeatures(conversation, index, delta.choice, capture.id);
        }
        if (delta.finishReason !== null) {
          answer.state = "done";
          this.#ended(conversation.id, index, delta.choice, answer);
        }
      }
    } catch (error) {
      failed = error;
    }
    this.#running.delete(conversation.id);
    for (const [at, answer] of turn.answers.entries()) {
      if (answer.state !== "running") continue;
      answer.state = stopping.signal.aborted ? "stopped" : "failed";
      const thought = clocks[at]?.end();
      if (thought !== undefined) answer.thoughtSeconds = thought;
      if (answer.state === "failed")
        answer.error = failed === undefined ? "The answer ended early." : sentenceOf(failed);
      this.#ended(conversation.id, index, at, answer);
    }
    this.#conversations.told();
    await this.#conversations.keep(conversation);
  }

  #add(conversation: Conversation, turn: number, answer: number, tokens: AnswerToken[]): void {
    if (tokens.length === 0) return;
    const { tokens: all, thoughtSeconds } = (conversation.turns[turn] as Turn).answers[answer] as TurnAnswer;
    const at = all.length;
    all.push(...tokens);
    const place = { conversation: conversation.id, turn, answer, at };
    const thought = thoughtSeconds === undefined ? {} : { thoughtSeconds };
    this.#events.publish({ type: "tokens", ...place, tokens, ...thought });
  }

  /** Reads the rows that the server kept of an answer through the turn's dictionary, and lets them go. */
  async #readFeatures(
    conversation: Conversation,
    turn: number,
    index: number,
    capture: string,
  ): Promise<void> {
    const { dictionary, answers, kept } = conversation.turns[turn] as Turn;
    const answer = answers[index] as TurnAnswer;
    const path = `/lab/captures/${encodeURIComponent(capture)}`;
    try {
      const query = new URLSearchParams({
        dictionary: dictionary?.name ?? "",
        top: String(workbenchLimits.features),
      });
      const read = await this.#services.http.json<CaptureFeatures>(`${path}/features?${query}`);
      for (const { index: row, features } of read.rows) {
        // The row before a token's own chose it.
        const token = answer.tokens[kept + row - (read.prompt_tokens - 1)];
        if (token !== undefined) token.features = features;
      }
      const tokens = answer.tokens.slice(kept);
      const place = { conversation: conversation.id, turn, answer: index, at: kept };
      this.#events.publish({ type: "tokens", ...place, tokens });
      await this.#services.http.json(path, { method: "DELETE" });
    } catch (error) {
      answer.unread = `Features were not read: ${sentenceOf(error)}`;
    }
  }

  #ended(conversation: string, turn: number, index: number, answer: TurnAnswer): void {
    const { state, finish, error, edits, unread, thoughtSeconds } = answer;
    this.#events.publish({
      type: "answer",
      conversation,
      turn,
      answer: index,
      state,
      finish,
      ...(error !== undefined && { error }),
      ...(edits !== undefined && { edits }),
      ...(unread !== undefined && { unread }),
      ...(thoughtSeconds !== undefined && { thoughtSeconds }),
    });
  }

  /** Where a dictionary reads. @throws HttpError where it is not there, or is for another model than the served one */
  async #dictionary(name: string | undefined, server: ServerStatus): Promise<Turn["dictionary"]> {
    if (name === undefined) return undefined;
    const found = (await this.#services.lab.dictionaries()).find((one) => one.name === name);
    if (found === undefined) throw new HttpError(404, `There is no dictionary ${name}.`);
    // Its features would be read once the answer is complete, and refused only then.
    const why = misfit(found, server);
    if (why !== undefined) throw new HttpError(409, `The dictionary ${why}`);
    return { name, layer: found.layer };
  }

  /** The tokens that a turn's answer was given after, as the server made them. */
  async #promptIds({ request: { path, body } }: Turn): Promise<number[]> {
    if (Array.isArray(body.prompt)) return body.prompt as number[];
    const { messages, chat_template_kwargs } = body;
    const text =
      path === "/v1/completions"
        ? (body.prompt as string)
        : (await this.#post<{ prompt: string }>("/apply-template", { messages, chat_template_kwargs }))
            .prompt;
    const asked = { content: text, add_special: true, parse_special: true };
    return (await this.#post<{ tokens: number[] }>("/tokenize", asked)).tokens;
  }

  #post<T>(path: string, body: object): Promise<T> {
    return this.#services.http.json<T>(path, { method: "POST", body });
  }

  /** A text that somebody put in a token's place, as the server takes it apart. */
  async #tokensOf(text: string, answer: TurnAnswer, at: number): Promise<AnswerToken[]> {
    const tokens = await this.#services.tokens(text, false);
    return tokens.map((token) => ({
      ...token,
      ...(answer.tokens[at]?.thinking === true && { thinking: true }),
    }));
  }

  /** A token that somebody put in another's place. */
  async #tokenOf(id: number, answer: TurnAnswer, at: number): Promise<AnswerToken> {
    const instead = answer.tokens[at];
    const found = [...(instead?.candidates ?? []), ...(instead?.lens ?? []).flat()].find(
      (candidate) => candidate.token_id === id,
    );
    const text =
      found?.token ?? (await this.#post<{ content: string }>("/detokenize", { tokens: [id] })).content;
    return { id, text, ...(instead?.thinking === true && { thinking: true }) };
  }
}

function answersOf(pair: boolean): TurnAnswer[] {
  return [true, ...(pair ? [false] : [])].map((edited) => ({
    state: "running",
    edited,
    tokens: [],
    finish: null,
  }));
}

function branchOf(conversation: string | undefined, turn: number | undefined): Branch | undefined {
  return conversation === undefined || turn === undefined ? undefined : { conversation, turn };
}

/** The request that a question becomes, as the server is sent it. */
function requestOf(
  asked: AskRequest,
  raw: boolean,
  before: Turn[],
  layers: number[],
  dictionary: Turn["dictionary"],
): Turn["request"] {
  const { interventions = [], pair, probes = [] } = asked;
  const tapline = {
    ...(interventions.length > 0 && { interventions, ...(pair === true && { pair: true }) }),
    watch: {
      layers,
      norms: true,
      lens: counts.lens,
      ...(probes.length > 0 && { probes }),
      ...(dictionary !== undefined && { states: true }),
    },
  };
  const settings = {
    max_tokens: asked.max_tokens ?? usualTokens,
    temperature: asked.temperature ?? 0,
    ...(asked.seed !== undefined && { seed: asked.seed }),
    ...(layers.length > 0 && { tapline }),
  };
  if (raw) {
    const prompt = [...before.flatMap((turn) => [turn.question, textOf(turn)]), asked.text].join("");
    return { path: "/v1/completions", body: { prompt, ...settings, logprobs: counts.candidates } };
  }
  const messages = [
    ...before.flatMap((turn) => [
      { role: "user", content: turn.question },
      { role: "assistant", content: textOf(turn) },
    ]),
    { role: "user", content: asked.text },
  ];
  return {
    path: "/v1/chat/completions",
    body: {
      messages,
      ...settings,
      logprobs: true,
      top_logprobs: counts.candidates,
      ...(asked.thinking !== undefined && { chat_template_kwargs: { enable_thinking: asked.thinking } }),
    },
  };
}

/** The answer that the conversation goes on with: the one with the interventions, without what was thought. */
function textOf({ answers }: Turn): string {
  return (answers[0]?.tokens ?? [])
    .map(({ text, thinking, special }) => (thinking === true || special === true ? "" : text))
    .join("");
}

/** The layers that were asked for, or as many as can be watched, evenly, the last among them; a dictionary's, too. */
function watchedLayers(asked: AskRequest, server: ServerStatus, dictionary: Turn["dictionary"]): number[] {
  const layers = asked.layers ?? (server.n_layer === null ? [] : spreadLayers(server.n_layer, counts.layers));
  if (dictionary === undefined || layers.includes(dictionary.layer)) return layers;
  const away = (layer: number) => Math.abs(layer - dictionary.layer);
  const nearest = layers.toSorted((a, b) => away(a) - away(b))[0];
  const others = layers.length < counts.layers ? layers : layers.filter((layer) => layer !== nearest);
  return [...others, dictionary.layer].sort((a, b) => a - b);
}
