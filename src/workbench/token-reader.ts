import type { ChatDelta, TokenReport } from "../client/index.js";
import type { AnswerToken, Candidate, Turn, TurnAnswer } from "./wire.js";

/** Combines the data of one answer's tokens from the stream. */
export class TokenReader {
  readonly #layers: number[];
  /** Whether the text is raw, so that thinking is not separated by a chat template. */
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
    const tokens = (tapline?.tokens ?? []).filter(({ token_id }) => token_id !== undefined);
    if (tokens.length === 0) {
      // Without watched layers, there is only text.
      if (content + reasoning === "") return [];
      return [
        { text: content + reasoning, ...probabilityOf(probabilities.at(-1)), ...thought(reasoning !== "") },
      ];
    }
    const thinking = this.#thinking(tokens, delta);
    // Only the last tokens of an event, which are text, have probabilities.
    const ahead = tokens.length - probabilities.length;
    return tokens.map((token, at) => {
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

  /** Which tokens of an event are thinking. */
  #thinking(tokens: readonly TokenReport[], { content, reasoning }: ChatDelta): boolean[] {
    if (this.#raw) {
      return tokens.map(({ token = "" }) => {
        const now = this.#thinks;
        if (token.includes("</think>")) this.#thinks = false;
        return now;
      });
    }
    if (content === "") {
      this.#thinks ||=
        reasoning !== "" || tokens.some(({ token = "" }) => /^<[a-z_|]*think[a-z_|]*>$/.test(token));
      return tokens.map(() => this.#thinks);
    }
    // In the same event, tokens before the answer's first text are still thinking.
    let remaining = content.length;
    const thinks = this.#thinks;
    this.#thinks = false;
    return tokens
      .toReversed()
      .map(({ token = "" }) => {
        const isText = remaining > 0;
        remaining -= token.length;
        return thinks && !isText;
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

/** Completions report candidates without ids; the lens has some of the ids. */
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
