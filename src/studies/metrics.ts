/** Histogram bucket bounds, in seconds. */
const bounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export type Area = "api" | "site" | "machine";

interface Series {
  /** Requests by the first digit of the status. */
  statuses: Map<number, number>;
  buckets: number[];
  seconds: number;
  count: number;
}

/** Request counters of this process. Label values are fixed; clients cannot add any. */
export class Metrics {
  readonly startedAt = Date.now();
  readonly #areas = new Map<Area, Series>();
  /** Logged faults. */
  faults = 0;

  record(area: Area, status: number, seconds: number): void {
    let series = this.#areas.get(area);
    if (series === undefined) {
      series = { statuses: new Map(), buckets: bounds.map(() => 0), seconds: 0, count: 0 };
      this.#areas.set(area, series);
    }
    const kind = Math.floor(status / 100);
    series.statuses.set(kind, (series.statuses.get(kind) ?? 0) + 1);
    for (const [place, bound] of bounds.entries()) if (seconds <= bound) series.buckets[place]! += 1;
    series.seconds += seconds;
    series.count += 1;
  }

  /**
   * All metrics in Prometheus text format 0.0.4.
   * @param gauges of the database; null values (database unavailable) are omitted
   */
  text(gauges: readonly (readonly [name: string, help: string, value: number | null])[]): string {
    const lines: string[] = [];
    const begin = (name: string, kind: string, help: string) => {
      lines.push(`# HELP tapline_studies_${name} ${help}`, `# TYPE tapline_studies_${name} ${kind}`);
    };
    const add = (name: string, labels: string, value: number) =>
      lines.push(`tapline_studies_${name}${labels} ${value}`);
    begin("requests_total", "counter", "Requests by area and status class.");
    for (const [area, { statuses }] of this.#areas)
      for (const [kind, count] of statuses)
        add("requests_total", `{area="${area}",status="${kind}xx"}`, count);
    begin("request_seconds", "histogram", "Seconds until the response was ready.");
    for (const [area, { buckets, seconds, count }] of this.#areas) {
      for (const [place, bound] of bounds.entries())
        add("request_seconds_bucket", `{area="${area}",le="${bound}"}`, buckets[place] as number);
      add("request_seconds_bucket", `{area="${area}",le="+Inf"}`, count);
      add("request_seconds_sum", `{area="${area}"}`, seconds);
      add("request_seconds_count", `{area="${area}"}`, count);
    }
    begin("faults_total", "counter", "Requests that failed with an internal error.");
    add("faults_total", "", this.faults);
    begin("start_time_seconds", "gauge", "Start time of this process, in Unix seconds.");
    add("start_time_seconds", "", this.startedAt / 1000);
    begin("memory_bytes", "gauge", "Resident memory of this process.");
    add("memory_bytes", "", process.memoryUsage.rss());
    for (const [name, help, value] of gauges) {
      if (value === null) continue;
      begin(name, "gauge", help);
      add(name, "", value);
    }
    return `${lines.join("\n")}\n`;
  }
}
