import { randomBytes } from "node:crypto";
import type { Execution, ExecutionEvent, ExecutionList, ExecutionSummary } from "../contracts/execution.js";
import { limits } from "../contracts/limits.js";
import type { Outcome } from "./stats.js";

export interface ExecutionStart {
  endpoint: string;
  parentId: string | null;
  model: string;
  thinking: boolean | null;
  stream: boolean;
  input: unknown;
}

/** Receives what happens to one request. A request that found no place gets one that keeps nothing. */
export interface ExecutionTrace {
  readonly id: string | null;
  lifecycle(text: string): void;
  /** Server-sent events as they were sent. */
  sent(data: string, tokens: number): void;
  /** A whole OpenAI answer. */
  answered(body: string): void;
  failed(sentence: string): void;
  ended(outcome: Outcome): void;
}

/**
 * The last requests of each endpoint, in memory: what was asked, what came out, when. Bounded in records, text
 * and steps; it looks at an answer after it was sent.
 */
export class ExecutionRecorder {
  readonly #records = new Map<string, Recording[]>();
  #dropped = 0;

  begin(start: ExecutionStart): ExecutionTrace {
    const records = this.#records.get(start.endpoint) ?? [];
    this.#records.set(start.endpoint, records);
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
    const executions = this.#all()
      .sort((a, b) => b.order - a.order)
      .map((record) => record.summary());
    return {
      executions,
      capacity: limits.execution_history,
      text_limit: limits.execution_text_bytes,
      dropped: this.#dropped,
    };
  }

  find(id: string): Execution | undefined {
    return this.#all()
      .find((record) => record.id === id)
      ?.full();
  }

  /** Forgets finished records; active requests keep running and stay. */
  clear(): void {
    for (const [endpoint, records] of this.#records) {
      this.#records.set(
        endpoint,
        records.filter((record) => record.status === "running"),
      );
    }
    this.#dropped = 0;
  }

  #all(): Recording[] {
    return [...this.#records.values()].flat();
  }
}

const nothing: ExecutionTrace = {
  id: null,
  lifecycle() {},
  sent() {},
  answered() {},
  failed() {},
  ended() {},
};

interface Delta {
  content?: string | null;
  reasoning_content?: string | null;
  tool_calls?: unknown[];
}

interface Choice {
  index?: number;
  delta?: Delta;
  message?: Delta;
  text?: string;
  finish_reason?: string | null;
}

interface Answer {
  choices?: Choice[];
  usage?: Record<string, unknown> | null;
  timings?: { predicted_n?: number };
  error?: { message?: string };
}

let order = 0;

class Recording implements ExecutionTrace {
  readonly id = randomBytes(16).toString("hex");
  readonly order = order++;
  status: ExecutionSummary["status"] = "running";
  readonly #start: ExecutionStart;
  readonly #started = now();
  #ended: number | null = null;
  readonly #events: ExecutionEvent[] = [];
  #room: number;
  #truncated = false;
  #finishReason: string | null = null;
  #usage: Record<string, unknown> | null = null;
  #tokens = 0;
  #preview = "";
  readonly #input: unknown;

  constructor(start: ExecutionStart) {
    this.#start = start;
    const text = JSON.stringify(start.input) ?? "null";
    // What does not fit is kept as the beginning of its text.
    const fits = Buffer.byteLength(text) <= limits.execution_text_bytes;
    this.#input = fits ? start.input : text.slice(0, limits.execution_text_bytes);
    this.#truncated = !fits;
    this.#room = limits.execution_text_bytes;
    this.lifecycle("received");
  }

  lifecycle(text: string): void {
    this.#push("lifecycle", text, 0);
  }

  sent(data: string, tokens: number): void {
    this.#tokens += tokens;
    for (const event of data.split("\n\n")) {
      if (event.startsWith("data: {")) this.#take(JSON.parse(event.slice(6)) as Answer);
    }
  }

  answered(body: string): void {
    const answer = JSON.parse(body) as Answer;
    this.#take(answer);
    const completion = answer.usage?.completion_tokens;
    if (typeof completion === "number") this.#tokens = completion;
  }

  failed(sentence: string): void {
    this.#push("error", sentence, 0);
  }

  ended(outcome: Outcome): void {
    if (this.status !== "running") return;
    this.status = outcome;
    this.#ended = now();
    this.lifecycle(outcome);
  }

  summary(): ExecutionSummary {
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
    return { ...this.summary(), input: this.#input, events: this.#events };
  }

  #take(answer: Answer): void {
    if (answer.error !== undefined) this.failed(answer.error.message ?? "The answer failed.");
    if (answer.usage) this.#usage = answer.usage;
    for (const choice of answer.choices ?? []) {
      const index = choice.index ?? 0;
      const delta = choice.delta ?? choice.message ?? {};
      if (delta.reasoning_content) this.#push("thinking", delta.reasoning_content, index);
      const output = delta.content ?? choice.text;
      if (output) {
        this.#push("output", output, index);
        if (index === 0 && this.#preview.length < limits.execution_preview_characters) {
          this.#preview = [...(this.#preview + output).trimStart()]
            .slice(0, limits.execution_preview_characters)
            .join("");
        }
      }
      if (delta.tool_calls?.length) this.#push("tool", JSON.stringify(delta.tool_calls), index);
      if (choice.finish_reason) this.#finishReason = choice.finish_reason;
    }
  }

  /** Adds text to the last event where it continues it. */
  #push(kind: ExecutionEvent["kind"], text: string, choice: number): void {
    const bytes = Buffer.byteLength(text);
    if (bytes > this.#room) {
      this.#truncated = true;
      return;
    }
    const last = this.#events.at(-1);
    const time = now();
    if (last !== undefined && last.kind === kind && last.choice === choice && kind !== "lifecycle") {
      last.text += text;
      last.updated = time;
    } else if (this.#events.length >= limits.execution_events) {
      this.#truncated = true;
      return;
    } else {
      this.#events.push({ id: this.#events.length, kind, text, time, updated: time, choice });
    }
    this.#room -= bytes;
  }
}

function now(): number {
  return Date.now() / 1000;
}
