import type { Question } from "../client/index.js";
import type { AskRequest, ForkRequest } from "../contracts/workbench.js";
import { workbenchLimits } from "../contracts/workbench-limits.js";
import { spreadLayers } from "../findings/layers.js";
import { HttpError } from "../http/index.js";
import { type Conversations, isRunning } from "./conversations.js";
import type { Events } from "./events.js";
import { checkTokenizer, idsOf, promptIds } from "./exact-tokens.js";
import { misfit } from "./fitting.js";
import { modelWithProfile, watchingProfile } from "./profile-run.js";
import { type Services, sentenceOf } from "./services.js";
import { ThoughtClock, textOf } from "./thought-clock.js";
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

/** Captured activations read through a dictionary. */
interface CaptureFeatures {
  prompt_tokens: number;
  rows: { index: number; features: FeatureScore[] }[];
}

/** Candidates per token, predictions per layer's lens, and watched layers. */
const counts = { candidates: 5, lens: 5, layers: 8 } as const;
const usualTokens = 256;

/** Sends questions to the served model; answers continue when the page is closed. */
export class Asker {
  readonly #running = new Map<string, AbortController>();

  constructor(
    private readonly services: Services,
    private readonly conversations: Conversations,
    private readonly events: Events,
    /** The random control of a direction, if it has one. */
    private readonly controlOf: (vector: string) => string | undefined = () => undefined,
  ) {}

  /** Starts an answer and returns its place. @throws HttpError */
  async ask(id: string | undefined, asked: AskRequest): Promise<{ conversation: string; turn: number }> {
    const server = await this.#ready();
    const dictionary = await this.#dictionary(asked.dictionary, server);
    // The profile's own readings cannot be combined with the page's.
    const unread = asked.profile !== undefined && (await watchingProfile(this.services, asked.profile));
    // No await from here on: another tab may ask at the same time.
    const before = id === undefined ? undefined : this.conversations.get(id);
    const { instead_of: place, in_place: inPlace = false } = asked;
    if (before !== undefined && place === undefined) this.#refuseBusy(before);
    if (place !== undefined && place >= (before?.turns.length ?? 0)) {
      throw new HttpError(400, `There is no question ${place} to replace.`);
    }
    if (inPlace && (before === undefined || place !== before.turns.length - 1)) {
      throw new HttpError(400, "in_place: only the last question can be asked again in its conversation.");
    }
    const raw = before?.raw ?? asked.raw ?? false;
    const turns = before?.turns.slice(0, place) ?? [];
    const layers = unread ? [] : watchedLayers(asked, server, dictionary);
    const request = requestOf(asked, raw, turns, layers, dictionary, server.model);
    if (inPlace) this.#replaceLast(before as Conversation);
    const conversation =
      before === undefined || (place !== undefined && !inPlace)
        ? this.conversations.create(raw, asked.text, turns, branchOf(before?.id, place))
        : before;
    return this.#start(conversation, {
      question: asked.text,
      request,
      model: server.model,
      interventions: asked.interventions ?? [],
      ...(asked.profile !== undefined && { profile: asked.profile }),
      layers,
      ...(dictionary !== undefined && { dictionary }),
      kept: 0,
      answers: answersOf(isPaired(asked)),
      ...(this.#hasControl(asked) && { control: { state: "running" as const, text: "" } }),
    });
  }

  /** Continues from a token of an answer in a new conversation, with the token replaced or resampled. */
  async fork(id: string, fork: ForkRequest): Promise<{ conversation: string; turn: number }> {
    const server = await this.#ready();
    const from = this.conversations.get(id);
    const turn = from.turns[fork.turn];
    const answer = turn?.answers[fork.answer];
    if (turn === undefined || answer === undefined) throw new HttpError(404, "This answer does not exist.");
    checkTokenizer(turn, server.model);
    if (fork.token > answer.tokens.length) {
      throw new HttpError(400, `The answer has ${answer.tokens.length} tokens; got ${fork.token}.`);
    }
    const kept = answer.tokens.slice(0, fork.token);
    if (fork.token_id !== undefined) kept.push(await this.#tokenOf(fork.token_id, answer, fork.token));
    else if (fork.text !== undefined) kept.push(...(await this.#tokensOf(fork.text, answer, fork.token)));
    const ids = idsOf(kept, "continued");
    const prompt = [...(await promptIds(this.services, turn)), ...ids];
    const { messages: _, prompt: __, chat_template_kwargs: ___, model, ...same } = turn.request.body;
    const { pair: ____, interventions, ...watched } = (same.tapline ?? {}) as Record<string, unknown>;
    const edited = answer.edited && (interventions !== undefined || turn.profile !== undefined);
    const profile = edited ? turn.profile : undefined;
    const body = {
      ...same,
      // The baseline of an answer with a profile has none.
      ...(model !== undefined && (profile !== undefined || turn.profile === undefined) && { model }),
      prompt,
      logprobs: counts.candidates,
      top_logprobs: undefined,
      tapline: { ...watched, ...(edited && interventions !== undefined && { interventions }) },
    };
    const before = from.turns.slice(0, fork.turn);
    const branch = { conversation: from.id, turn: fork.turn };
    const conversation = this.conversations.create(from.raw, from.title, before, branch);
    return this.#start(conversation, {
      question: turn.question,
      request: { path: "/v1/completions", body: JSON.parse(JSON.stringify(body)) },
      model: server.model,
      interventions: edited ? turn.interventions : [],
      ...(profile !== undefined && { profile }),
      layers: turn.layers.filter((layer) => server.n_layer === null || layer < server.n_layer),
      ...(turn.dictionary !== undefined && { dictionary: turn.dictionary }),
      kept: kept.length,
      answers: [{ state: "running", edited: true, tokens: kept, finish: null }],
    });
  }

  #hasControl({ interventions = [], pair }: AskRequest): boolean {
    const controls = interventions.map(({ vector }) => typeof vector === "string" && this.controlOf(vector));
    return pair === true && controls.some((control) => typeof control === "string");
  }

  /** Stops a running answer and keeps its tokens. */
  stop(id: string): void {
    this.conversations.get(id);
    this.#running.get(id)?.abort();
  }

  close(): void {
    for (const running of this.#running.values()) running.abort();
  }

  async #ready(): Promise<ServerStatus> {
    if (!this.services.server.ok) await this.services.look();
    const { server } = this.services;
    if (!server.ok) throw new HttpError(503, server.sentence);
    return server;
  }

  /** Removes the last question, and cancels its answers if they are being generated. */
  #replaceLast(conversation: Conversation): void {
    this.#running.get(conversation.id)?.abort();
    conversation.turns.pop();
  }

  #refuseBusy({ turns }: Conversation): void {
    if (turns.some(isRunning)) throw new HttpError(409, "An answer is still being generated. Stop it first.");
    if (turns.length >= workbenchLimits.turns) {
      throw new HttpError(
        409,
        `A conversation can have at most ${workbenchLimits.turns} questions; start a new one.`,
      );
    }
  }

  #start(conversation: Conversation, turn: Turn): { conversation: string; turn: number } {
    const index = conversation.turns.push(turn) - 1;
    this.events.publish({ type: "turn", conversation: conversation.id, index, turn });
    this.conversations.publish();
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
    // The same question may have been asked again in its place.
    const isCurrent = () => conversation.turns[index] === turn;
    try {
      const deltas = this.services.model.stream(question, { request, signal: stopping.signal });
      for await (const delta of deltas) {
        const answer = turn.answers[delta.choice];
        const [reader, clock] = [readers[delta.choice], clocks[delta.choice]];
        if (answer === undefined || reader === undefined || clock === undefined) continue;
        if (!isCurrent()) break;
        const tokens = reader.read(delta);
        const thought = clock.read(tokens) ?? (delta.finishReason === null ? undefined : clock.end());
        if (thought !== undefined) answer.thoughtSeconds = thought;
        this.#add(conversation, index, delta.choice, tokens);
        answer.finish = delta.finishReason ?? answer.finish;
        if (delta.tapline?.interventions !== undefined) {
          answer.edits = delta.tapline.interventions.map((edit) => edit as unknown as DoneEdit);
        }
        const { capture } = delta.tapline ?? {};
        if (capture !== undefined && turn.dictionary !== undefined) {
          // Before the answer is marked as done, so that a done answer has everything.
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
    if (!isCurrent()) return;
    await this.#runControl(conversation, index, stopping.signal);
    if (!isCurrent()) return;
    if (this.#running.get(conversation.id) === stopping) this.#running.delete(conversation.id);
    for (const [at, answer] of turn.answers.entries()) {
      if (answer.state !== "running") continue;
      answer.state = stopping.signal.aborted ? "stopped" : "failed";
      const thought = clocks[at]?.end();
      if (thought !== undefined) answer.thoughtSeconds = thought;
      if (answer.state === "failed")
        answer.error = failed === undefined ? "The answer ended early." : sentenceOf(failed);
      this.#ended(conversation.id, index, at, answer);
    }
    this.conversations.publish();
    await this.conversations.save(conversation);
  }

  /** Answers the same request along random directions, if it was steered along ones that have such a control. */
  async #runControl(conversation: Conversation, index: number, signal: AbortSignal): Promise<void> {
    const turn = conversation.turns[index] as Turn;
    const { control } = turn;
    if (control === undefined) return;
    const publish = () => {
      if (conversation.turns[index] !== turn) return;
      this.events.publish({
        type: "control",
        conversation: conversation.id,
        turn: index,
        control: { ...control },
      });
    };
    if (signal.aborted || turn.answers.some(({ state }) => state !== "done")) {
      Object.assign(control, { state: "failed", error: "The answer was not completed." });
      return publish();
    }
    const { messages, prompt, ...request } = turn.request.body as { messages?: Question; prompt?: Question };
    const interventions = turn.interventions.map((one) => ({
      ...one,
      ...(typeof one.vector === "string" && { vector: this.controlOf(one.vector) ?? one.vector }),
    }));
    const body = { ...request, logprobs: undefined, top_logprobs: undefined, tapline: { interventions } };
    try {
      const deltas = this.services.model.stream((messages ?? prompt) as Question, { request: body, signal });
      for await (const { content } of deltas) control.text += content;
      control.state = "done";
    } catch (error) {
      Object.assign(control, { state: "failed", error: sentenceOf(error) });
    }
    publish();
  }

  #add(conversation: Conversation, turn: number, answer: number, tokens: AnswerToken[]): void {
    if (tokens.length === 0) return;
    const { tokens: all, thoughtSeconds } = (conversation.turns[turn] as Turn).answers[answer] as TurnAnswer;
    const at = all.length;
    all.push(...tokens);
    const place = { conversation: conversation.id, turn, answer, at };
    const thought = thoughtSeconds === undefined ? {} : { thoughtSeconds };
    this.events.publish({ type: "tokens", ...place, tokens, ...thought });
  }

  /** Reads an answer's captured activations through the turn's dictionary, then deletes the capture. */
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
      const read = await this.services.http.json<CaptureFeatures>(`${path}/features?${query}`);
      for (const { index: row, features } of read.rows) {
        // A token is produced at the position before it.
        const token = answer.tokens[kept + row - (read.prompt_tokens - 1)];
        if (token !== undefined) token.features = features;
      }
      const tokens = answer.tokens.slice(kept);
      const place = { conversation: conversation.id, turn, answer: index, at: kept };
      this.events.publish({ type: "tokens", ...place, tokens });
      await this.services.http.json(path, { method: "DELETE" });
    } catch (error) {
      answer.unread = `Could not read features: ${sentenceOf(error)}`;
    }
  }

  #ended(conversation: string, turn: number, index: number, answer: TurnAnswer): void {
    const { tokens: _, edited: __, ...outcome } = answer;
    this.events.publish({ type: "answer", conversation, turn, answer: index, ...outcome });
  }

  /** A dictionary and its layer. @throws HttpError if it does not exist or does not fit the served model */
  async #dictionary(name: string | undefined, server: ServerStatus): Promise<Turn["dictionary"]> {
    if (name === undefined) return undefined;
    const found = (await this.services.lab.dictionaries()).find((one) => one.name === name);
    if (found === undefined) throw new HttpError(404, `Dictionary ${name} does not exist.`);
    // The server would only reject it after the answer, when it reads the features.
    const why = misfit(found, server);
    if (why !== undefined) throw new HttpError(409, `The dictionary ${why}`);
    return { name, layer: found.layer };
  }

  #post<T>(path: string, body: object): Promise<T> {
    return this.services.http.json<T>(path, { method: "POST", body });
  }

  /** The tokens of a text that replaces a token. */
  async #tokensOf(text: string, answer: TurnAnswer, at: number): Promise<AnswerToken[]> {
    const tokens = await this.services.tokens(text, false);
    return tokens.map((token) => ({
      ...token,
      ...(answer.tokens[at]?.thinking === true && { thinking: true }),
    }));
  }

  /** A token that replaces another one. */
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

/** Whether the unmodified answer is generated as well: only of an answer that is modified. */
function isPaired({ pair, interventions = [], profile }: AskRequest): boolean {
  return pair === true && (interventions.length > 0 || profile !== undefined);
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

/** The request for a question. */
function requestOf(
  asked: AskRequest,
  raw: boolean,
  before: Turn[],
  layers: number[],
  dictionary: Turn["dictionary"],
  model: string | null,
): Turn["request"] {
  const { interventions = [], probes = [], profile } = asked;
  const watch = {
    ...{ layers, norms: true, lens: counts.lens },
    ...(probes.length > 0 && { probes }),
    ...(dictionary !== undefined && { states: true }),
  };
  const tapline = {
    ...(interventions.length > 0 && { interventions }),
    ...(isPaired(asked) && { pair: true }),
    ...(layers.length > 0 && { watch }),
  };
  const settings = {
    ...modelWithProfile(model, profile),
    max_tokens: asked.max_tokens ?? usualTokens,
    temperature: asked.temperature ?? 0,
    ...(asked.seed !== undefined && { seed: asked.seed }),
    ...((layers.length > 0 || profile !== undefined) && { tapline }),
  };
  if (raw) {
    const prompt = [...before.flatMap((turn) => [turn.question, answerOf(turn)]), asked.text].join("");
    return { path: "/v1/completions", body: { prompt, ...settings, logprobs: counts.candidates } };
  }
  const messages = [
    ...(asked.system === undefined ? [] : [{ role: "system", content: asked.system }]),
    ...before.flatMap((turn) => [
      { role: "user", content: turn.question },
      { role: "assistant", content: answerOf(turn) },
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

/** The answer that the conversation continues with: the one with interventions, without thinking. */
function answerOf({ answers: [answer] }: Turn): string {
  return answer === undefined ? "" : textOf(answer);
}

/** The requested layers, or evenly spaced ones that include the last; always with the dictionary's layer. */
function watchedLayers(asked: AskRequest, server: ServerStatus, dictionary: Turn["dictionary"]): number[] {
  const layers = asked.layers ?? (server.n_layer === null ? [] : spreadLayers(server.n_layer, counts.layers));
  if (dictionary === undefined || layers.includes(dictionary.layer)) return layers;
  const away = (layer: number) => Math.abs(layer - dictionary.layer);
  const nearest = layers.toSorted((a, b) => away(a) - away(b))[0];
  const others = layers.length < counts.layers ? layers : layers.filter((layer) => layer !== nearest);
  return [...others, dictionary.layer].sort((a, b) => a - b);
}
