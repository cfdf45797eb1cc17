import type { BackendStats, RouterStats } from "../contracts/router.js";
import type { Stats } from "../contracts/stats.js";
import { shortNumber } from "../findings/numbers.js";
import { oneLine } from "../findings/text.js";
import type { Canvas } from "./canvas.js";
import { labelled } from "./page.js";
import { inScale, probabilityScale } from "./paint.js";
import { bytes, duration } from "./spans.js";
import { table } from "./table.js";

/** A server's statistics since its start. */
export function statsPicture(stats: Stats, canvas: Canvas): string[] {
  const { requests, tokens, throughput, latency_ms, slots, memory, captures, row_captures: rows } = stats;
  const row = (label: string, text: string) => labelled(label, text, canvas);
  const right = { align: "right" as const };
  const latency = (name: string, { p50, p95, p99 }: Stats["latency_ms"]["total"]) => [
    name,
    ...[p50, p95, p99].map((value) => (value === null ? "–" : `${shortNumber(value)} ms`)),
  ];
  return [
    ...row("Model", stats.model === null ? "none" : oneLine(stats.model)),
    ...row("Up", duration(stats.uptime_seconds)),
    ...row(
      "Requests",
      `${requests.total} total, ${requests.active} active, ${requests.queued} queued, ${requests.failed} failed, ` +
        `${requests.cancelled} cancelled`,
    ),
    ...row("Tokens", `${tokens.prompt} prompt (${tokens.cached} cached), ${tokens.generated} generated`),
    ...row(
      "Speed",
      `${shortNumber(throughput.prompt_tokens_per_second)} prompt tokens/s, ` +
        `${shortNumber(throughput.generated_tokens_per_second)} generated tokens/s`,
    ),
    ...row("Slots", `${slotBar(slots, canvas)} ${slots.busy} of ${slots.total} busy`),
    ...row("Memory", `${bytes(memory.rss_bytes)} total, model ${bytes(memory.model_bytes)}`),
    ...row(
      "Captures",
      `${captures.served} served, ${captures.expired} expired, ${captures.rejected} rejected`,
    ),
    ...(rows === undefined || rows.kept + rows.dropped === 0
      ? []
      : row("Stored", `${rows.kept} captures, ${bytes(rows.bytes)}; ${rows.dropped} evicted`)),
    "",
    ...table(
      [
        { title: "latency" },
        { title: "p50", ...right },
        { title: "p95", ...right, dispensable: 1 },
        { title: "p99", ...right },
      ],
      [
        latency("first token", latency_ms.time_to_first_token),
        latency("between tokens", latency_ms.inter_token),
        latency("whole answer", latency_ms.total),
      ],
      canvas,
    ),
  ];
}

function slotBar({ busy, total }: Stats["slots"], { colors }: Canvas): string {
  const room = Math.min(total, 16);
  const full = total === 0 ? 0 : Math.ceil((busy / total) * room);
  return inScale("█".repeat(full) + "·".repeat(room - full), 0.62, probabilityScale, colors);
}

/** A router's statistics since its start, and the state of its backends. */
export function routerStatsPicture(stats: RouterStats, canvas: Canvas): string[] {
  const { requests, latency_ms, backends } = stats;
  const row = (label: string, text: string) => labelled(label, text, canvas);
  const right = { align: "right" as const };
  const first = latency_ms.time_to_first_token;
  return [
    ...row("Up", duration(stats.uptime_seconds)),
    ...row(
      "Requests",
      `${requests.total} total, ${requests.active} active, ${requests.failed} failed, ` +
        `${requests.cancelled} cancelled, ${requests.refused} rejected, ${requests.retried} retried`,
    ),
    ...row(
      "First token",
      first.p50 === null
        ? "no streams yet"
        : `median ${milliseconds(first.p50)}, 95th percentile ${milliseconds(first.p95)}`,
    ),
    "",
    ...table(
      [
        { title: "backend" },
        { title: "state" },
        { title: "busy", ...right },
        { title: "requests", ...right, dispensable: 2 },
        { title: "first token", ...right, dispensable: 1 },
      ],
      backends.map((backend) => [
        oneLine(backend.url),
        stateOf(backend),
        `${backend.active + backend.elsewhere} of ${backend.slots}`,
        String(backend.requests),
        milliseconds(backend.time_to_first_token_ms),
      ]),
      canvas,
    ),
  ];
}

function stateOf({ state, last_error }: BackendStats): string {
  return state === "aside" ? `set aside: ${oneLine(last_error ?? "")}` : state;
}

function milliseconds(value: number | null): string {
  return value === null ? "–" : `${shortNumber(value)} ms`;
}
