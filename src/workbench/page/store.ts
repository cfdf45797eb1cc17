import { useEffect, useLayoutEffect, useReducer } from "preact/hooks";
import type { ContrastStatus, Conversation, Numbered, State, WorkbenchEvent } from "../wire.js";
import { call, unlessGone } from "./session.js";

/** The state of the page: loaded once, then updated by events. */
export const known: {
  state: State | undefined;
  conversations: Map<string, Conversation>;
  /** Why the event stream is down, while it is. */
  lost: string | undefined;
  /** The contrast sets on the served model, once loaded. */
  contrasts: ContrastStatus[] | undefined;
} = { state: undefined, conversations: new Map(), lost: undefined, contrasts: undefined };

const listeners = new Map<string, Set<() => void>>();

/** Listens to a topic: `state`, `library`, `conversation ID`, `tokens ID`. @returns a function that stops it */
export function listen(topic: string, listener: () => void): () => void {
  const all = listeners.get(topic) ?? new Set();
  listeners.set(topic, all.add(listener));
  return () => void all.delete(listener);
}

export function changed(topic: string): void {
  for (const listener of listeners.get(topic) ?? []) listener();
}

/** Renders a component again when a topic changes. */
export function useTopic(topic: string): void {
  const [, again] = useReducer((count: number) => count + 1, 0);
  // A layout effect: a later one would miss changes in between.
  useLayoutEffect(() => listen(topic, () => again(undefined as never)), [topic]);
}

/** An effect that runs again when one of `on` changes; `isOver` reports whether its result comes too late. */
export function useWork(on: readonly unknown[], work: (isOver: () => boolean) => unknown): void {
  useEffect(() => {
    let over = false;
    work(() => over);
    return () => {
      over = true;
    };
  }, on);
}

/** Loads the whole state: at the start, and after missed events. */
export async function readState(): Promise<void> {
  known.state = await call<State>("/api/state");
  changed("state");
  changed("library");
  // A conversation that another tab deleted stays visible here, and does not block loading the others.
  const there = new Set(known.state.conversations.map(({ id }) => id));
  for (const id of known.conversations.keys()) {
    if (there.has(id)) await readConversation(id).catch(unlessGone);
  }
}

/** Pending loads, with the events of their conversations that arrived in the meantime. */
const reads = new Set<{ id: string; events: Numbered[] }>();

/** Loads a conversation. */
export async function readConversation(id: string): Promise<void> {
  const read = { id, events: [] as Numbered[] };
  reads.add(read);
  try {
    const found = await call<{ number: number; conversation: Conversation }>(`/api/conversations/${id}`);
    known.conversations.set(id, found.conversation);
    // Apply the events that are newer than the response but arrived earlier.
    for (const { number, event } of read.events) {
      if (number > found.number && "conversation" in event) inConversation(event);
    }
  } finally {
    reads.delete(read);
  }
  changed(`conversation ${id}`);
}

/** Applies an event. @returns false if an earlier event is missing */
export function take(numbered: Numbered): boolean {
  const { number, event } = numbered;
  const { state } = known;
  if ("conversation" in event) {
    for (const { id, events } of reads) if (id === event.conversation) events.push(numbered);
  }
  if (state === undefined || number <= state.number) return true;
  if (number > state.number + 1) return false;
  state.number = number;
  return apply(state, event);
}

function apply(state: State, event: WorkbenchEvent): boolean {
  if ("conversation" in event) return inConversation(event);
  if (event.type === "contrasts") {
    known.contrasts = event.contrasts;
    changed("contrasts");
    return true;
  }
  const { type, ...change } = event;
  Object.assign(state, change);
  changed(type === "library" ? type : "state");
  return true;
}

function inConversation(event: Extract<WorkbenchEvent, { conversation: string }>): boolean {
  const shown = known.conversations.get(event.conversation);
  if (shown === undefined) return true;
  if (event.type === "turn") {
    shown.turns[event.index] = event.turn;
    changed(`conversation ${event.conversation}`);
    return true;
  }
  if (event.type === "control") {
    const turn = shown.turns[event.turn];
    if (turn === undefined) return false;
    turn.control = event.control;
    changed(`conversation ${event.conversation}`);
    return true;
  }
  const answer = shown.turns[event.turn]?.answers[event.answer];
  if (answer === undefined) return false;
  if (event.thoughtSeconds !== undefined) answer.thoughtSeconds = event.thoughtSeconds;
  if (event.type === "tokens") {
    // The event may repeat tokens that were already loaded.
    if (event.at > answer.tokens.length) return false;
    answer.tokens.splice(event.at, event.tokens.length, ...event.tokens);
    changed(`tokens ${event.conversation}`);
    return true;
  }
  const { state, finish, error, edits, unread } = event;
  Object.assign(answer, { state, finish, error, edits, unread });
  changed(`conversation ${event.conversation}`);
  return true;
}
