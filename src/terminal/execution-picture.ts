import type { Execution, ExecutionList, ExecutionSummary } from "../contracts/execution.js";
import { oneLine } from "../findings/text.js";
import type { Canvas } from "./canvas.js";
import { narrowest } from "./canvas.js";
import { wrap } from "./fit.js";
import { labelled } from "./page.js";
import { bold, dim } from "./paint.js";
import { ago, duration } from "./spans.js";
import { type Entry, table } from "./table.js";

/** Recent requests as a table, newest first. */
export function executionList(
  { executions, capacity, dropped }: ExecutionList,
  canvas: Canvas,
  now = Date.now() / 1000,
): string[] {
  if (executions.length === 0) return ["No requests yet."];
  const columns = [
    { title: "id" },
    { title: "status" },
    { title: "endpoint", dispensable: 4 },
    { title: "when", dispensable: 3 },
    { title: "took", dispensable: 2 },
    { title: "tokens", align: "right" as const, dispensable: 1 },
    { title: "answer", least: 12 },
  ];
  const rows = executions.map((execution) => [
    execution.id.slice(0, 8),
    statusOf(execution, canvas),
    execution.endpoint,
    ago(execution.started, now),
    duration((execution.ended ?? now) - execution.started),
    String(execution.output_tokens),
    oneLine(execution.preview),
  ]);
  const note = `Only the newest ${capacity} requests are stored${dropped > 0 ? `; ${dropped} older ones were dropped` : ""}.`;
  return [
    ...table(columns, rows, canvas),
    ...wrap(note, Math.max(narrowest, canvas.width)).map((line) => dim(line, canvas.colors)),
  ];
}

/** One request: its input, events and output. */
export function executionPicture(execution: Execution, canvas: Canvas, now = Date.now() / 1000): string[] {
  const { id, endpoint, status, model, started, ended, stream, output_tokens, finish_reason } = execution;
  const row = (label: string, text: string) => labelled(label, text, canvas);
  const facts = [
    `${output_tokens} tokens`,
    ...(stream ? ["streamed"] : []),
    ...(finish_reason === null ? [] : [`finish reason ${finish_reason}`]),
    ...(execution.truncated ? ["truncated to fit the history"] : []),
  ];
  const lines = [
    ...row(
      "Request",
      `${id}, ${endpoint}, ${status} in ${duration((ended ?? now) - started)}, ${ago(started, now)}`,
    ),
    ...(execution.parent_id === null ? [] : row("Parent", oneLine(execution.parent_id))),
    ...row("Model", oneLine(model)),
    ...row("Answer", facts.join(", ")),
    "",
    bold("Input", canvas.colors),
    ...inputLines(execution.input, canvas),
    "",
    bold("Events", canvas.colors),
  ];
  for (const { kind, time, choice, text } of execution.events) {
    const when = `+${duration(time - started)}`;
    const label = kind === "lifecycle" ? when : `${when} ${kind}`;
    const of = choice > 0 ? `[choice ${choice}] ` : "";
    lines.push(...wide(label, of + oneLine(text), kind === "thinking" || kind === "lifecycle", canvas));
  }
  return lines;
}

interface Message {
  role?: unknown;
  content?: unknown;
}

function inputLines(input: unknown, canvas: Canvas): string[] {
  const { messages, prompt, ...rest } = (input ?? {}) as { messages?: Message[]; prompt?: unknown };
  const shown = Array.isArray(messages)
    ? messages.flatMap(({ role, content }) => wide(oneLine(String(role)), plain(content), false, canvas))
    : prompt === undefined
      ? []
      : wide("prompt", plain(prompt), false, canvas);
  const settings = Object.entries(rest);
  if (settings.length === 0) return shown;
  const text = settings.map(([name, value]) => `${name} ${plain(value)}`).join(", ");
  return [...shown, ...wide("settings", oneLine(text), true, canvas)];
}

function plain(content: unknown): string {
  return oneLine(typeof content === "string" ? content : JSON.stringify(content));
}

/** A label with a wide margin, or with the text below it on narrow terminals. */
function wide(label: string, text: string, faint: boolean, canvas: Canvas): string[] {
  const total = Math.max(narrowest, canvas.width);
  const paint = (line: string) => (faint ? dim(line, canvas.colors) : line);
  if (total < 60)
    return [dim(label, canvas.colors), ...wrap(text, total - 2).map((line) => `  ${paint(line)}`)];
  return labelled(label, text === "" ? "∅" : text, canvas, { margin: 20, paint });
}

function statusOf({ status }: ExecutionSummary, { colors }: Canvas): Entry {
  return status === "running" ? [status, (text) => bold(text, colors)] : status;
}
