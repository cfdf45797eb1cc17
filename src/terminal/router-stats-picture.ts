import type { BackendStats, RouterStats } from "../contracts/router.js";
import { shortNumber } from "../findings/numbers.js";
import { oneLine } from "../findings/text.js";
import type { Canvas } from "./canvas.js";
import { labelled } from "./page.js";
import { duration } from "./spans.js";
import { table } from "./table.js";

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
