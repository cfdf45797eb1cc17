/** An answer in parts and whole as llama.cpp's chat format has it, for the forms that are made of it. */
import * as assert from "uvu/assert";
import type { ChatAnswer, ChatChoice } from "../../../src/inference/forms/form.js";

export const usage = {
  prompt_tokens: 10,
  completion_tokens: 4,
  total_tokens: 14,
  prompt_tokens_details: { cached_tokens: 3 },
};

export const answer = (choice: Partial<ChatChoice> | null, more: Partial<ChatAnswer> = {}): ChatAnswer =>
  ({
    id: "e",
    created: 1,
    model: "m",
    choices: choice === null ? [] : [{ index: 0, finish_reason: null, ...choice }],
    ...more,
  }) as ChatAnswer;

export interface Event {
  type: string;
  [field: string]: unknown;
}

/** The events of a text; each names itself twice. */
export function events(text: string): Event[] {
  return text
    .split("\n\n")
    .filter((part) => part !== "")
    .map((part) => {
      const [name, data] = part.split("\n") as [string, string];
      const event = JSON.parse(data.slice("data: ".length)) as Event;
      assert.is(name, `event: ${event.type}`);
      return event;
    });
}

/** Ids are random: their beginnings in their place. */
export function plain<T>(value: T): T {
  const text = JSON.stringify(value, (key, one) =>
    ["created_at", "completed_at"].includes(key) && one !== null
      ? "now"
      : typeof one === "string"
        ? one.replace(/^([a-z]+)_[0-9a-f]{32}$/, "$1")
        : one,
  );
  return JSON.parse(text) as T;
}

export const call = (index: number, more: object) => ({ delta: { tool_calls: [{ index, ...more }] } });

export const parts: Partial<ChatChoice>[] = [
  { delta: { content: "" } },
  { delta: { reasoning_content: "hm" } },
  { delta: { reasoning_content: "m" }, tapline: { tokens: [1] } },
  { delta: { content: "Pa" }, logprobs: { content: [{ token: "Pa", logprob: -1 }] } },
  { delta: { content: "ris" }, tapline: { tokens: [2] } },
  call(0, { id: "c0", function: { name: "f", arguments: "" } }),
  call(0, { function: { arguments: '{"a"' } }),
  call(0, { function: { arguments: ":1}" } }),
  call(1, { function: { name: "g", arguments: "[" } }),
  { finish_reason: "tool_calls", delta: {} },
];
