import { liveLimits } from "../../contracts/live-limits.js";

/** Upper bounds of a histogram's buckets. */
export const scoreBounds = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1] as const;

export interface ScoreHistogram {
  /** Number of scores up to each bound. */
  atMost: number[];
  sum: number;
  count: number;
}

interface Choices {
  choices?: { tapline?: { tokens?: { probes?: Record<string, number | null> }[] } }[];
}

/** Scores of watched probes on generated tokens, over all requests. */
export class ProbeScores {
  readonly #histograms = new Map<string, ScoreHistogram>();

  /** @param data an answer, or server-sent events */
  take(data: string): void {
    if (!data.includes('"probes"')) return;
    for (const line of data.split("\n")) {
      const json = line.startsWith("data: {") ? line.slice(6) : line;
      if (!json.startsWith("{")) continue;
      const { choices = [] } = JSON.parse(json) as Choices;
      for (const { tapline } of choices) {
        for (const { probes = {} } of tapline?.tokens ?? []) {
          for (const [name, score] of Object.entries(probes)) if (score !== null) this.#add(name, score);
        }
      }
    }
  }

  entries(): IterableIterator<[string, ScoreHistogram]> {
    return this.#histograms.entries();
  }

  #add(name: string, score: number): void {
    let histogram = this.#histograms.get(name);
    if (histogram === undefined) {
      // The number of names must stay bounded.
      if (this.#histograms.size >= liveLimits.stored) return;
      histogram = { atMost: scoreBounds.map(() => 0), sum: 0, count: 0 };
      this.#histograms.set(name, histogram);
    }
    for (const [place, bound] of scoreBounds.entries()) {
      if (score <= bound) histogram.atMost[place] = (histogram.atMost[place] as number) + 1;
    }
    histogram.sum += score;
    histogram.count++;
  }
}
