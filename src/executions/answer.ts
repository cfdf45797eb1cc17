import type { WatchedToken } from "./watched.js";

/** The recorded parts of an answer, for any API format. */
export interface Delta {
  content?: string | null;
  reasoning_content?: string | null;
  /** Some servers' name for it. */
  reasoning?: string | null;
  tool_calls?: unknown[];
}

export interface Choice {
  index?: number;
  delta?: Delta;
  message?: Delta;
  text?: string;
  finish_reason?: string | null;
  tapline?: LiveDetails;
}

/** The response to a `tapline` object: token details, and at the end a summary. */
interface LiveDetails {
  tokens?: WatchedToken[];
  interventions?: (Record<string, unknown> & {
    rows?: number;
    mean_row_length?: number;
    mean_change_length?: number;
    note?: string;
  })[];
  capture?: { id?: string; rows?: number };
  pair_of?: number;
}

/** The summary as lines of text. */
export function liveLines({ interventions = [], capture, pair_of }: Omit<LiveDetails, "tokens">): string[] {
  const figure = (value: unknown) => (typeof value === "number" ? value.toPrecision(4) : "?");
  return [
    ...(pair_of === undefined ? [] : [`baseline of choice ${pair_of}, without its interventions`]),
    ...interventions.map(({ kind, layer, point, heads, vector, strength, strength_unit: unit, ...did }) => {
      const along = vector === undefined ? "" : ` ${nameOf(vector)}`;
      const of = Array.isArray(heads) ? `heads ${heads.join(", ")} of ` : "";
      const where = `${of}${point === undefined ? "" : `${point} of `}layer ${layer}`;
      const what = `${kind}${along} at ${where}, strength ${strength}`;
      const how = `${did.rows ?? "?"} positions, mean change ${figure(did.mean_change_length)} of norm ${figure(did.mean_row_length)}`;
      return `${what}${unit === undefined ? "" : ` ${unit}`}: ${how}${did.note === undefined ? "" : `. ${did.note}`}`;
    }),
    ...(capture === undefined ? [] : [`captured ${capture.rows} activations as ${capture.id}`]),
  ];
}

/** A vector by its name, or a feature of a dictionary. */
function nameOf(vector: unknown): string {
  const { feature } = vector as { feature?: unknown };
  return Array.isArray(feature) ? `feature ${feature.join(":")}` : String(vector);
}

export interface Answer {
  choices?: Choice[];
  usage?: Record<string, unknown> | null;
  /** llama.cpp: tokens so far. */
  timings?: { predicted_n?: number };
  error?: { message?: string } | null;
}

/** An event or answer of OpenAI's Responses, Anthropic's Messages or llama-server's completion API. */
interface Other {
  type?: string;
  object?: string;
  delta?: unknown;
  item?: { type?: string };
  response?: Other & { usage?: Answer["usage"]; status?: string; error?: Answer["error"] };
  output?: Block[];
  content?: string | Block[];
  stop_reason?: string | null;
  stop_type?: string;
  status?: string;
  usage?: Answer["usage"];
  error?: Answer["error"];
  timings?: Answer["timings"];
}

interface Block {
  type?: string;
  text?: string;
  thinking?: string;
  content?: Block[];
}

/** Converts the parsed JSON of an answer, or of one event, to OpenAI's chat format. */
export function readAnswer(parsed: unknown): Answer {
  const answer = (parsed ?? {}) as Answer & Other;
  if (answer.choices !== undefined || typeof parsed !== "object") return answer;
  const { type, object, usage, error, timings } = answer;
  if (type?.startsWith("response.")) return { ...ofResponses(answer), ...(error && { error }) };
  if (object === "response") return { ...whole(answer.output ?? [], answer.status), ...(usage && { usage }) };
  if (type?.startsWith("content_block") || type === "message_delta") {
    return { choices: [{ delta: ofBlock(answer.delta), ...stop(answer) }], ...(usage && { usage }) };
  }
  if (Array.isArray(answer.content)) {
    return { ...whole(answer.content, answer.stop_reason), ...(usage && { usage }) };
  }
  if (typeof answer.content === "string") {
    const { stop_type: finish_reason } = answer;
    return {
      choices: [{ text: answer.content, ...(finish_reason !== undefined && { finish_reason }) }],
      ...(timings && { timings }),
    };
  }
  return { ...(error && { error }), ...(usage && { usage }) };
}

function ofResponses({ type, delta, item, response }: Other): Answer {
  if (type === "response.output_text.delta") return { choices: [{ delta: { content: String(delta) } }] };
  if (type === "response.reasoning_text.delta") {
    return { choices: [{ delta: { reasoning_content: String(delta) } }] };
  }
  if (type === "response.output_item.done" && item?.type === "function_call") {
    return { choices: [{ delta: { tool_calls: [item] } }] };
  }
  if (response?.usage)
    return { usage: response.usage, choices: [{ finish_reason: response.status ?? null }] };
  return response?.error ? { error: response.error } : {};
}

function ofBlock(delta: unknown): Delta {
  const { text, thinking, partial_json } = (delta ?? {}) as Block & { partial_json?: string };
  return {
    ...(text !== undefined && { content: text }),
    ...(thinking !== undefined && { reasoning_content: thinking }),
    ...(partial_json !== undefined && { tool_calls: [{ partial_json }] }),
  };
}

function stop({ delta }: Other): Pick<Choice, "finish_reason"> {
  const { stop_reason } = (delta ?? {}) as { stop_reason?: string | null };
  return stop_reason ? { finish_reason: stop_reason } : {};
}

/** Joins the text of blocks or items by kind. */
function whole(blocks: readonly Block[], finish: string | null | undefined): Answer {
  const text = (kinds: string[]) =>
    blocks
      .filter(({ type = "" }) => kinds.includes(type))
      .map(
        (block) =>
          block.text ?? block.thinking ?? (block.content ?? []).map((part) => part.text ?? "").join(""),
      )
      .join("");
  const message: Delta = {
    content: text(["text", "message"]),
    reasoning_content: text(["thinking", "reasoning"]),
    tool_calls: blocks.filter(({ type = "" }) => ["function_call", "tool_use"].includes(type)),
  };
  return { choices: [{ message, finish_reason: finish ?? null }] };
}
