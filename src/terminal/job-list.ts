import type { JobSummary } from "../contracts/index.js";
import { oneLine } from "../findings/text.js";
import type { Canvas } from "./canvas.js";
import { bold, dim, inScale, probabilityScale } from "./paint.js";
import { ago, duration } from "./spans.js";
import { type Entry, table } from "./table.js";

/** Jobs as a table, newest first; with full ids, which commands need. */
export function jobList(jobs: readonly JobSummary[], canvas: Canvas, now = Date.now() / 1000): string[] {
  if (jobs.length === 0) return ["No jobs yet."];
  // On a narrow terminal, the id gets a separate line.
  if (canvas.width < 60) {
    return jobs.flatMap((job) => [
      job.id,
      ...table(
        [{ title: "" }, { title: "" }, { title: "" }],
        [[statusOf(job, canvas), job.operation, ago(job.created, now)]],
        canvas,
      ).map((line) => `  ${line}`),
    ]);
  }
  const columns = [
    { title: "id" },
    { title: "status" },
    { title: "experiment" },
    { title: "submitted", dispensable: 1 },
    { title: "took", dispensable: 2 },
    { title: "model", least: 8, dispensable: 3 },
  ];
  const rows = jobs.map((job) => [
    job.id,
    statusOf(job, canvas),
    job.operation,
    ago(job.created, now),
    job.started === null ? "" : duration((job.ended ?? now) - job.started),
    oneLine(job.model),
  ]);
  return table(columns, rows, canvas);
}

function statusOf({ status }: JobSummary, { colors }: Canvas): Entry {
  switch (status) {
    case "running":
    case "queued":
      return [status, (text) => bold(text, colors)];
    case "completed":
      return [status, (text) => inScale(text, 0.65, probabilityScale, colors)];
    default:
      return [status, (text) => dim(text, colors)];
  }
}
