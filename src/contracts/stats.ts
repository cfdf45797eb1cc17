import Type, { type Static } from "typebox";
import { optional, orNull } from "./optional.js";

/** A counter. */
export const count = () => Type.Integer({ minimum: 0 });
/** Percentiles of a latency, in milliseconds; null without measurements. */
export const percentiles = Type.Object({
  p50: orNull(Type.Number()),
  p95: orNull(Type.Number()),
  p99: orNull(Type.Number()),
});

/** The answer of `GET /stats`: counters since the server started. */
export const Stats = Type.Object(
  {
    uptime_seconds: Type.Number(),
    model: orNull(Type.String()),
    requests: Type.Object({
      total: count(),
      active: count(),
      queued: count(),
      failed: count(),
      cancelled: count(),
    }),
    tokens: Type.Object({ prompt: count(), cached: count(), generated: count() }),
    throughput: Type.Object({
      prompt_tokens_per_second: Type.Number(),
      generated_tokens_per_second: Type.Number(),
    }),
    latency_ms: Type.Object({
      time_to_first_token: percentiles,
      inter_token: percentiles,
      total: percentiles,
    }),
    slots: Type.Object({ total: count(), busy: count() }),
    memory: Type.Object({ rss_bytes: count(), model_bytes: count() }),
    captures: Type.Object({ served: count(), expired: count(), rejected: count() }),
    row_captures: optional.Object({ kept: count(), bytes: count(), dropped: count() }),
  },
  { title: "Stats" },
);
export type Stats = Static<typeof Stats>;
