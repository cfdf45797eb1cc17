import { randomUUID } from "node:crypto";
import type { Execution, ExecutionEvent, ExecutionList, ExecutionSummary } from "../contracts/execution.js";
import { limits } from "../contracts/limits.js";
import { type Answer, type Choice, liveLines, readAnswer } from "./answer.js";
import { Watched } from "./watched.js";

/** How a request ended. */
export type Outcome = "completed" | "failed" | "cancelled";

export interface ExecutionStart {
  endpoint: string;
  parentId: string | null;
  model: string;
  thinking: boolean | null;
  stream: boolean;
  /** The request: a value, or the raw body, which is parsed only when the record is read. */
  input: unknown | Uint8Array;
}

/** Records the events of one request. If the recorder is full, a request gets a trace that records nothing. */
export interface ExecutionTrace {
  readonly id: string | null;
  lifecycle(text: string): void;
  /**
   * Server-sent events as sent.
   * @param tokens number of tokens in them; by default, each event with text counts as one
   * @param time Unix seconds at which they were sent; default: now
   */
  sent(data: string, tokens?: number, time?: number): void;
  /** A whole OpenAI answer. */
  answered(body: string, time?: number): void;
  failed(sentence: string): void;
  ended(outcome: Outcome): void;
  /** `fold` is called before the record is read, so that callers can defer the processing of answers. */
  beforeReading(fold: () => void): void;
}

/**
 * The most recent requests and responses, in memory. Limited in records, text and events. Answers are processed after
 * they were sent.
 */
export class ExecutionRecorder {
  #records: Recording[] = [];
  #dropped = 0;

  begin(start: ExecutionStart): ExecutionTrace {
    const records = this.#records;
    if (records.length >= limits.execution_history) {
      const finished = records.findIndex((record) => record.status !== "running");
      if (finished === -1) {
        this.#dropped++;
        return nothing;
      }
      records.splice(finished, 1);
    }
    const record = new Recording(start);
    records.push(record);
    return record;
  }

  list(): ExecutionList {
    const executions = this.#records.toReversed().map((record) => record.summary());
    return {
      executions,
      capacity: limits.execution_history,
      text_limit: limits.execution_text_bytes,
      dropped: this.#dropped,
    };
  }

  find(id: string): Execution | undefined {
    return this.#records.find((record) => record.id === id)?.full();
  }

  /** Removes finished records. Active requests continue and stay recorded. */
  clear(): void {
    this.#records = this.#records.filter((record) => record.status === "running");
    this.#dropped = 0;
  }
}

/** Events and bytes reserved for notes, so that they are recorded however long the answer is. */
const reserved = { events: 32, bytes: 32_768 };
const noteBytes = reserved.bytes / reserved.events;
/** Always recorded at the end: that the answer was truncated, and how the request ended. */
const lastNotes = 2;

const nothing: ExecutionTrace = {
  id: null,
  lifecycle() {},
  sent() {},
  answered() {},
  failed() {},
  ended() {},
  beforeReading() {},
};

class Recording implements ExecutionTrace {
  readonly id = randomUUID().replaceAll("-", "");
  status: ExecutionSummary["status"] = "running";
  readonly #start: Omit<ExecutionStart, "input">;
  readonly #started = now();
  #ended: number | null = null;
  readonly #events: ExecutionEvent[] = [];
  /** By choice. */
  readonly #watched = new Map<number, Watched>();
  /** Remaining bytes for the answer. After the first overflow nothing more is recorded, so the record is a prefix. */
  #room = limits.execution_text_bytes - reserved.bytes;
  #full = false;
  #notes = 0;
  #truncated = false;
  #finishReason: string | null = null;
  #usage: Record<string, unknown> | null = null;
  #tokens = 0;
  #preview = "";
  #input: unknown;
  #fold: () => void = () => {};

  constructor({ input, ...start }: ExecutionStart) {
    this.#start = start;
    const kept = input instanceof Uint8Array ? keepBytes(input) : keepValue(input);
    this.#input = kept.input;
    this.#truncated = !kept.whole;
    this.lifecycle("received");
  }

  beforeReading(fold: () => void): void {
    this.#fold = fold;
  }

  lifecycle(text: string): void {
    this.#note("lifecycle", text);
  }

  sent(data: string, tokens?: number, time = now()): void {
    this.#tokens += tokens ?? 0;
    for (const line of data.split("\n")) {
      if (!/^data: ?\{/.test(line)) continue;
      const answer = parsed(line.slice(5));
      if (answer === undefined) continue;
      const text = this.#take(answer, time);
      if (tokens === undefined) this.#tokens = answer.timings?.predicted_n ?? this.#tokens + (text ? 1 : 0);
      this.#count(answer);
    }
  }

  answered(body: string, time = now()): void {
    const answer = parsed(body);
    if (answer === undefined) return;
    this.#take(answer, time);
    this.#count(answer);
  }

  /** The backend's own token count takes precedence. */
  #count({ usage }: Answer): void {
    const tokens = usage?.completion_tokens ?? usage?.output_tokens;
    if (typeof tokens === "number") this.#tokens = tokens;
  }

  failed(sentence: string): void {
    this.#note("error", sentence);
  }

  ended(outcome: Outcome): void {
    if (this.status !== "running") return;
    this.status = outcome;
    this.#ended = now();
    this.#watched.clear();
    this.#note("lifecycle", outcome, now(), lastNotes);
  }

  summary(): ExecutionSummary {
    this.#fold();
    const { parentId, endpoint, model, thinking, stream } = this.#start;
    return {
      id: this.id,
      parent_id: parentId,
      endpoint,
      started: this.#started,
      ended: this.#ended,
      status: this.status,
      model,
      thinking,
      stream,
      truncated: this.#truncated,
      finish_reason: this.#finishReason,
      output_tokens: this.#tokens,
      usage: this.#usage,
      preview: this.#preview,
    };
  }

  full(): Execution {
    if (this.#input instanceof Uint8Array) this.#input = inputOf(this.#input);
    return { ...this.summary(), input: this.#input, events: this.#events };
  }

  /** Whether the answer carried text. */
  #take(answer: Answer, time: number): boolean {
    let text = false;
    if (answer.error) this.#note("error", answer.error.message ?? "The answer failed.", time);
    if (answer.usage) this.#usage = answer.usage;
    for (const choice of answer.choices ?? []) {
      const index = choice.index ?? 0;
      const delta = choice.delta ?? choice.message ?? {};
      const thinking = delta.reasoning_content ?? delta.reasoning;
      if (thinking) this.#push("thinking", thinking, index, time);
      const output = delta.content ?? choice.text;
      if (output) {
        this.#push("output", output, index, time);
        if (index === 0) {
          this.#preview = [...(this.#preview + output).trimStart()]
            .slice(0, limits.execution_preview_characters)
            .join("");
        }
      }
      const tools = delta.tool_calls?.length ? JSON.stringify(delta.tool_calls) : "";
      if (tools) this.#push("tool", tools, index, time);
      if (choice.finish_reason) this.#finishReason = choice.finish_reason;
      for (const line of this.#liveLinesOf(choice, index)) this.#push("lifecycle", line, index, time);
      text ||= Boolean(thinking || output || tools);
    }
    return text;
  }

  /** Lines from a `tapline` object; watched probes and projections are summarized at the end of the answer. */
  #liveLinesOf({ tapline, finish_reason }: Choice, index: number): string[] {
    if (tapline === undefined) return [];
    const watched = this.#watched.get(index) ?? new Watched();
    if (Array.isArray(tapline.tokens)) watched.add(tapline.tokens);
    // A third-party backend may number choices arbitrarily.
    if (this.#watched.size < limits.execution_events) this.#watched.set(index, watched);
    return [...liveLines(tapline), ...(finish_reason ? watched.lines() : [])];
  }

  /** Adds part of an answer, to the last event if it continues that. */
  #push(kind: ExecutionEvent["kind"], text: string, choice: number, time: number): void {
    if (this.#full) return;
    const kept = beginning(text, this.#room);
    const last = this.#events.at(-1);
    const continues = last?.kind === kind && last.choice === choice && kind !== "lifecycle";
    const placed = continues || this.#events.length - this.#notes < limits.execution_events - reserved.events;
    if (placed && kept !== "") {
      this.#room -= Buffer.byteLength(kept);
      if (continues) Object.assign(last, { text: last.text + kept, updated: time });
      else this.#add(kind, kept, choice, time);
    }
    if (placed && kept === text) return;
    this.#full = true;
    this.#truncated = true;
    this.#note("lifecycle", "the record of the answer is truncated here", time, lastNotes);
  }

  /** Records an event of the request. */
  #note(kind: "lifecycle" | "error", text: string, time = now(), lastPlaces = 0): void {
    const kept = beginning(text, noteBytes);
    if (kept !== text) this.#truncated = true;
    if (this.#notes >= reserved.events - lastNotes + lastPlaces) {
      this.#truncated = true;
      return;
    }
    this.#notes++;
    this.#add(kind, kept, 0, time);
  }

  #add(kind: ExecutionEvent["kind"], text: string, choice: number, time: number): void {
    this.#events.push({ id: this.#events.length, kind, text, time, updated: time, choice });
  }
}

/** The longest prefix of a text that fits into a number of bytes of UTF-8, in whole characters. */
function beginning(text: string, bytes: number): string {
  return Buffer.byteLength(text) <= bytes ? text : wholeCharacters(Buffer.from(text).subarray(0, bytes));
}

/** UTF-8 as text, without an incomplete character at the end. */
function wholeCharacters(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true });
}

/** An input that is too long is stored as a prefix of its JSON. */
function keepValue(input: unknown): { input: unknown; whole: boolean } {
  const text = JSON.stringify(input) ?? "null";
  const kept = beginning(text, limits.execution_text_bytes);
  return kept === text ? { input, whole: true } : { input: kept, whole: false };
}

function keepBytes(input: Uint8Array): { input: unknown; whole: boolean } {
  const whole = input.byteLength <= limits.execution_text_bytes;
  return {
    input: whole ? input : wholeCharacters(input.subarray(0, limits.execution_text_bytes)),
    whole,
  };
}

function inputOf(bytes: Uint8Array): unknown {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString();
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function parsed(text: string): Answer | undefined {
  try {
    return readAnswer(JSON.parse(text));
  } catch {
    return undefined; // not what an OpenAI-style server sends
  }
}

function now(): number {
  return Date.now() / 1000;
}
