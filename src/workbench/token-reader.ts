import type { ChatDelta, TokenReport } from "../client/index.js";
import type { AnswerToken, Candidate, Turn, TurnAnswer } from "./wire.js";

/** Puts together what is told of one answer's tokens. */
export class TokenReader {
  readonly #layers: number[];
  /** Whether the text comes as it is, with what a chat's template would take for thinking in it. */
  readonly #raw: boolean;
  #thinks: boolean;

  constructor({ tokens }: TurnAnswer, { layers, request }: Turn) {
    this.#layers = layers;
    this.#raw = request.path === "/v1/completions";
    this.#thinks = tokens.at(-1)?.thinking === true;
  }

  /** The tokens of one event of the stream. */
  read(delta: ChatDelta): AnswerToken[] {
    const { content, reasoning, tapline, probabilities = [] } = delta;
    const told = (tapline?.tokens ?? []).filter(({ token_id }) => token_id !== undefined);
    if (told.length === 0) {
      // A server that watches nothing still says what it answers.
      if (content + reasoning === "") return [];
      return [
        { text: content + reasoning, ...probabilityOf(probabilities.at(-1)), ...thought(reasoning !== "") },
      ];
    }
    const thinking = this.#thinking(told, delta);
    // Probabilities are told of tokens that are text: the last ones of an event.
    const ahead = told.length - probabilities.length;
    return told.map((token, at) => {
      const probable = probabilities[at - ahead];
      const same = probable?.token_id === undefined || probable.token_id === token.token_id;
      const closing = content + reasoning === "" && probable?.token === "";
      const read: AnswerToken = {
        id: token.token_id as number,
        text: token.token ?? "",
        ...thought(thinking[at] === true),
        ...(closing && { special: true }),
        ...(same && probabilityOf(probable)),
        ...(token.norms && { norms: this.#layers.map((layer) => token.norms?.[layer] ?? Number.NaN) }),
        ...(token.lens && { lens: this.#layers.map((layer) => token.lens?.[layer] ?? []) }),
        ...(token.probes && { probes: token.probes }),
      };
      return withIds(read);
    });
  }

  /** Which tokens of an event are thought and not said. */
  #thinking(told: readonly TokenReport[], { content, reasoning }: ChatDelta): boolean[] {
    if (this.#raw) {
      return told.map(({ token = "" }) => {
        const now = this.#thinks;
        if (token.includes("</think>")) this.#thinks = false;
        return now;
      });
    }
    if (content === "") {
      this.#thinks ||=
        reasoning !== "" || told.some(({ token = "" }) => /^<[a-z_|]*think[a-z_|]*>$/.test(token));
      return told.map(() => this.#thinks);
    }
    // What stands before the answer's first text, in the same event, still belongs to the thoughts.
    let said = content.length;
    const thinks = this.#thinks;
    this.#thinks = false;
    return told
      .toReversed()
      .map(({ token = "" }) => {
        const isSaid = said > 0;
        said -= token.length;
        return thinks && !isSaid;
      })
      .reverse();
  }
}

function thought(thinking: boolean) {
  return thinking ? { thinking } : {};
}

function probabilityOf(probable: NonNullable<ChatDelta["probabilities"]>[number] | undefined) {
  if (probable === undefined || !Number.isFinite(probable.probability)) return {};
  const candidates: Candidate[] = probable.candidates.map(({ token_id = -1, token, probability }) => ({
    token_id,
    token,
    probability,
  }));
  return { probability: probable.probability, candidates };
}

/** Completions name candidates by their texts alone; the lens knows the numbers of some. */
function withIds(token: AnswerToken): AnswerToken {
  if (!token.candidates?.some(({ token_id }) => token_id < 0)) return token;
  const ids = new Map((token.lens ?? []).flat().map((candidate) => [candidate.token, candidate.token_id]));
  if (token.id !== undefined) ids.set(token.text, token.id);
  const candidates = token.candidates.map((one) => ({
    ...one,
    token_id: ids.get(one.token) ?? one.token_id,
  }));
  return { ...token, candidates };
}
