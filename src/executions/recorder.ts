import { randomUUID } from "node:crypto";
import type { Execution, ExecutionEvent, ExecutionList, ExecutionSummary } from "../contracts/execution.js";
import { limits } from "../contracts/limits.js";
import { type Answer, type Choice, readAnswer, toldLines } from "./answer.js";
import { Watched } from "./watched.js";

/** How a request ended. */
export type Outcome = "completed" | "failed" | "cancelled";

export interface ExecutionStart {
  endpoint: string;
  parentId: string | null;
  model: string;
  thinking: boolean | null;
  stream: boolean;
  /** What was asked: a value, or the request's body as it came, which is parsed only when someone reads it. */
  input: unknown | Uint8Array;
}

/** Receives what happens to one request. A request that found no place gets one that keeps nothing. */
export interface ExecutionTrace {
  readonly id: string | null;
  lifecycle(text: string): void;
  /**
   * Server-sent events as they were sent.
   * @param tokens how many tokens they carry; without it, each event with text counts as one
   * @param time Unix seconds at which they were sent; now unless told otherwise
   */
  sent(data: string, tokens?: number, time?: number): void;
  /** A whole OpenAI answer. */
  answered(body: string, time?: number): void;
  failed(sentence: string): void;
  ended(outcome: Outcome): void;
  /** `fold` is called before the record is read: for who looks at an answer only when somebody asks for it. */
  beforeReading(fold: () => void): void;
}

/**
 * The last requests, in memory: what was asked, what came out, when. Bounded in records, text
 * and steps; it looks at an answer after it was sent.
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

  /** Forgets finished records; active requests keep running and stay. */
  clear(): void {
    this.#records = this.#records.filter((record) => record.status === "running");
    this.#dropped = 0;
  }
}

/** Places and bytes that no answer takes: what happened to a request is told, however long its answer is. */
const keptBack = { events: 32, bytes: 32_768 };
const noteBytes = keptBack.bytes / keptBack.events;
/** Told last, and in any case: that an answer is cut, and how the request ended. */
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
  /** Bytes of the answer that still fit. Once something did not, nothing does: what is kept is its beginning. */
  #room = limits.execution_text_bytes - keptBack.bytes;
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

  /** The backend's own count is the right one, where it gives one. */
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
      for (const line of this.#toldOf(choice, index)) this.#push("lifecycle", line, index, time);
      text ||= Boolean(thinking || output || tools);
    }
    return text;
  }

  /** What a `tapline` object was told; of what it watches at the answer's end. */
  #toldOf({ tapline, finish_reason }: Choice, index: number): string[] {
    if (tapline === undefined) return [];
    const watched = this.#watched.get(index) ?? new Watched();
    if (Array.isArray(tapline.tokens)) watched.add(tapline.tokens);
    // Choices of somebody else's backend may be any number.
    if (this.#watched.size < limits.execution_events) this.#watched.set(index, watched);
    return [...toldLines(tapline), ...(finish_reason ? watched.lines() : [])];
  }

  /** Adds what an answer holds, to the last event where it continues it. */
  #push(kind: ExecutionEvent["kind"], text: string, choice: number, time: number): void {
    if (this.#full) return;
    const kept = beginning(text, this.#room);
    const last = this.#events.at(-1);
    const goesOn = last?.kind === kind && last.choice === choice && kind !== "lifecycle";
    const placed = goesOn || this.#events.length - this.#notes < limits.execution_events - keptBack.events;
    if (placed && kept !== "") {
      this.#room -= Buffer.byteLength(kept);
      if (goesOn) Object.assign(last, { text: last.text + kept, updated: time });
      else this.#add(kind, kept, choice, time);
    }
    if (placed && kept === text) return;
    this.#full = true;
    this.#truncated = true;
    this.#note("lifecycle", "the record of the answer ends here: more is not kept", time, lastNotes);
  }

  /** Tells what happened to the request. */
  #note(kind: "lifecycle" | "error", text: string, time = now(), lastPlaces = 0): void {
    const kept = beginning(text, noteBytes);
    if (kept !== text) this.#truncated = true;
    if (this.#notes >= keptBack.events - lastNotes + lastPlaces) {
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

/** As much of a text's beginning as fits into so many bytes of UTF-8, in whole characters. */
function beginning(text: string, bytes: number): string {
  return Buffer.byteLength(text) <= bytes ? text : wholeCharacters(Buffer.from(text).subarray(0, bytes));
}

/** UTF-8 as text, without a character that is cut at its end. */
function wholeCharacters(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: true });
}

/** What does not fit is kept as the beginning of its text. */
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
