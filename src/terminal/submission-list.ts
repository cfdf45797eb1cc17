import type { Canvas } from "./canvas.js";
import { bold, dim, inScale, probabilityScale } from "./paint.js";
import { ago } from "./spans.js";
import { type Entry, table } from "./table.js";

/** A submission and how far it is. */
export interface SubmissionState {
  id: string;
  engine: string;
  /** Unix seconds. */
  submitted: number;
  out: string;
  parts: number;
  complete: number;
  /** Tokens in finished files, and of all parts as far as known. */
  done: number;
  tokens?: number | undefined;
  /** Parts that are waiting or running; undefined if the engine could not be asked. */
  active?: number | undefined;
  stopped: boolean;
  merged: boolean;
}

/** Extractions that were submitted to an engine, newest first. */
export function submissionList(
  all: readonly SubmissionState[],
  canvas: Canvas,
  now = Date.now() / 1000,
): string[] {
  if (all.length === 0) return ["No submissions yet."];
  const columns = [
    { title: "id" },
    { title: "status" },
    { title: "parts" },
    { title: "done" },
    { title: "engine", dispensable: 2 },
    { title: "submitted", dispensable: 1 },
    { title: "folder", least: 8, dispensable: 3 },
  ];
  return table(
    columns,
    all.map((state) => [
      state.id,
      statusOf(state, canvas),
      state.merged ? String(state.parts) : `${state.complete}/${state.parts}`,
      doneOf(state),
      state.engine,
      ago(state.submitted, now),
      state.out,
    ]),
    canvas,
  );
}

function doneOf({ merged, done, tokens }: SubmissionState): string {
  if (merged) return "100 %";
  return tokens === undefined || tokens === 0 ? "" : `${Math.floor((done / tokens) * 100)} %`;
}

function statusOf({ merged, stopped, complete, parts, active }: SubmissionState, { colors }: Canvas): Entry {
  if (merged) return ["merged", (text) => inScale(text, 0.65, probabilityScale, colors)];
  if (complete === parts) return ["complete, not merged", (text) => bold(text, colors)];
  if (stopped) return ["stopped", (text) => dim(text, colors)];
  if (active === undefined) return ["unknown", (text) => dim(text, colors)];
  return active > 0
    ? ["running", (text) => bold(text, colors)]
    : ["ended early", (text) => bold(text, colors)];
}
