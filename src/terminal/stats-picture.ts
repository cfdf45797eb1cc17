import type { BackendStats, RouterStats } from "../contracts/router.js";
import type { Stats } from "../contracts/stats.js";
import { shortNumber } from "../findings/numbers.js";
import { oneLine } from "../findings/text.js";
import type { Canvas } from "./canvas.js";
import { labelled } from "./page.js";
import { inScale, probabilityScale } from "./paint.js";
import { bytes, duration } from "./spans.js";
import { table } from "./table.js";

/** What a server did since it started. */
export function statsPicture(stats: Stats, canvas: Canvas): string[] {
  const { requests, tokens, throughput, latency_ms, slots, memory, captures, row_captures: kept } = stats;
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
      `${requests.total} in all, ${requests.active} active, ${requests.queued} waiting, ${requests.failed} failed, ` +
        `${requests.cancelled} cancelled`,
    ),
    ...row(
      "Tokens",
      `${tokens.prompt} of prompts (${tokens.cached} from the cache), ${tokens.generated} generated`,
    ),
    ...row(
      "Speed",
      `${shortNumber(throughput.prompt_tokens_per_second)} prompt tokens/s, ` +
        `${shortNumber(throughput.generated_tokens_per_second)} generated tokens/s`,
    ),
    ...row("Slots", `${slotBar(slots, canvas)} ${slots.busy} of ${slots.total} busy`),
    ...row("Memory", `${bytes(memory.rss_bytes)} in all, model ${bytes(memory.model_bytes)}`),
    ...row(
      "Captures",
      `${captures.served} served, ${captures.expired} expired, ${captures.rejected} rejected`,
    ),
    ...(kept === undefined || kept.kept + kept.dropped === 0
      ? []
      : row("Kept rows", `${kept.kept} captures, ${bytes(kept.bytes)}; ${kept.dropped} made room`)),
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

/** What a router did since it started, and how its backends are. */
export function routerStatsPicture(stats: RouterStats, canvas: Canvas): string[] {
  const { requests, latency_ms, backends } = stats;
  const row = (label: string, text: string) => labelled(label, text, canvas);
  const right = { align: "right" as const };
  const first = latency_ms.time_to_first_token;
  return [
    ...row("Up", duration(stats.uptime_seconds)),
    ...row(
      "Requests",
      `${requests.total} in all, ${requests.active} active, ${requests.failed} failed, ` +
        `${requests.cancelled} cancelled, ${requests.refused} refused, ${requests.retried} tried again`,
    ),
    ...row(
      "First token",
      first.p50 === null
        ? "no stream yet"
        : `half within ${milliseconds(first.p50)}, 95 of 100 within ${milliseconds(first.p95)}`,
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
