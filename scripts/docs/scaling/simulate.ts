import { TestRandom } from "../../../test/support/random.js";

/** Workers that take parts from one queue. Times in seconds. */
export interface Cluster {
  workers: number;
  parts: number;
  /** Of all parts together. */
  tokens: number;
  /** Tokens per second of a usual worker. */
  rate: number;
  /** From the start of a part's process to its first token. */
  start: number;
  /** Tokens per file: what a part that starts again repeats at most. */
  fileTokens: number;
  /** Standard deviation of the workers' speeds, as a share of `rate`. */
  spread: number;
  /** Share of workers that are slow, and by how much. */
  slow: { share: number; factor: number };
  /** Hours until a worker fails, on average; it is back after `repair` seconds. */
  failure: { hours: number; repair: number };
  /** Whether slow parts run a second time on idle workers, as `--submit` does it. */
  secondRuns: boolean;
  seed: number;
}

export interface Simulated {
  seconds: number;
  /** Time that computing takes without any loss, as a share of the time that all workers were there. */
  efficiency: number;
  failures: number;
  secondRuns: number;
  /** Tokens that were computed more than once. */
  repeated: number;
}

interface Run {
  part: number;
  worker: number;
  begin: number;
  /** Tokens of files that an earlier run of the part has finished. */
  kept: number;
  end: number;
  fails: boolean;
  over: boolean;
}

/** How much slower than the median part one has to be to run a second time, see src/submit/copies.ts. */
const slowFactor = 2;

/** Follows a cluster from event to event until all parts are complete. */
export function simulate(cluster: Cluster): Simulated {
  const { workers, parts, tokens, rate, start, fileTokens, spread, slow, failure } = cluster;
  const random = new TestRandom(cluster.seed);
  const each = tokens / parts;
  const speeds = Array.from({ length: workers }, (_, worker) => {
    const usual = rate * Math.max(0.5, 1 + spread * random.normal());
    return worker < slow.share * workers ? usual / slow.factor : usual;
  });
  // Slow workers are anywhere in the order in which workers take parts.
  const idle = Array.from({ length: workers }, (_, worker) => worker);
  for (let i = workers - 1; i > 0; i--) {
    const other = random.below(i + 1);
    [idle[i], idle[other]] = [idle[other] as number, idle[i] as number];
  }
  const waiting = Array.from({ length: parts }, (_, part) => ({ part, kept: 0 })).reverse();
  const events = new Queue<{ time: number; run?: Run; worker?: number }>();
  const runs = new Map<number, Run[]>();
  const twice = new Set<number>();
  const durations: number[] = [];
  let [time, failures, repeated] = [0, 0, 0];
  let looking = false;

  const doneAt = (run: Run, at: number) =>
    Math.min(each, run.kept + Math.max(0, at - run.begin - start) * (speeds[run.worker] as number));
  const begin = (part: number, kept: number, worker: number) => {
    const end = time + start + (each - kept) / (speeds[worker] as number);
    const fails = time - Math.log(1 - random.uniform()) * failure.hours * 3600;
    const run: Run = {
      part,
      worker,
      begin: time,
      kept,
      end: Math.min(end, fails),
      fails: fails < end,
      over: false,
    };
    runs.set(part, [...(runs.get(part) ?? []), run]);
    events.add({ time: run.end, run });
  };
  const finishedFiles = (run: Run) => {
    const done = doneAt(run, time);
    return done >= each ? each : run.kept + Math.floor((done - run.kept) / fileTokens) * fileTokens;
  };
  /** Ends a run early; what it has computed besides its finished files is lost. */
  const cut = (run: Run) => {
    run.over = true;
    runs.set(
      run.part,
      (runs.get(run.part) as Run[]).filter((other) => other !== run),
    );
  };
  const share = () => {
    while (idle.length > 0 && waiting.length > 0) {
      const { part, kept } = waiting.pop() as { part: number; kept: number };
      begin(part, kept, idle.pop() as number);
    }
    if (!cluster.secondRuns || idle.length === 0 || 2 * durations.length < parts) return;
    const sorted = [...durations].sort((a, b) => a - b);
    const most = slowFactor * (sorted[Math.floor(sorted.length / 2)] as number);
    const projected = [...runs.values()].flatMap((own) => {
      const [run] = own;
      if (run === undefined || own.length > 1 || twice.has(run.part)) return [];
      const [elapsed, files] = [time - run.begin, finishedFiles(run)];
      const whole = files > 0 ? (elapsed * each) / files : elapsed;
      return whole > most ? [{ run, whole, files }] : [];
    });
    for (const { run, files } of projected.sort((a, b) => b.whole - a.whole)) {
      const worker = idle.pop();
      if (worker === undefined) return;
      twice.add(run.part);
      begin(run.part, files, worker);
    }
  };

  share();
  while (durations.length < parts) {
    const event = events.take();
    time = event.time;
    const { run, worker } = event;
    if (worker !== undefined) idle.push(worker);
    if (run === undefined && worker === undefined) looking = false;
    if (run !== undefined && !run.over) {
      const files = finishedFiles(run);
      cut(run);
      const others = runs.get(run.part) as Run[];
      if (run.fails) {
        failures++;
        repeated += doneAt(run, time) - files;
        events.add({ time: time + failure.repair, worker: run.worker });
        if (others.length === 0) waiting.push({ part: run.part, kept: files });
      } else {
        durations.push(time - run.begin);
        idle.push(run.worker);
        for (const other of others) {
          // What both runs have computed: the later one began after the earlier one's finished files.
          repeated += Math.max(0, doneAt(other, time) - Math.max(run.kept, other.kept));
          cut(other);
          idle.push(other.worker);
        }
      }
    }
    // Idle workers look again a minute later for parts that have become slow.
    share();
    if (idle.length > 0 && cluster.secondRuns && !looking) {
      looking = true;
      events.add({ time: time + 60 });
    }
  }
  return {
    ...{ seconds: time, failures, repeated, secondRuns: twice.size },
    efficiency: tokens / rate / (workers * time),
  };
}

/** Events by time: a binary heap. */
class Queue<T extends { time: number }> {
  readonly #heap: T[] = [];

  add(event: T): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    for (let up = (at - 1) >> 1; at > 0 && (heap[up] as T).time > event.time; up = (at - 1) >> 1) {
      heap[at] = heap[up] as T;
      at = up;
    }
    heap[at] = event;
  }

  take(): T {
    const heap = this.#heap;
    const first = heap[0] as T;
    const last = heap.pop() as T;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= heap.length) break;
      if (down + 1 < heap.length && (heap[down + 1] as T).time < (heap[down] as T).time) down++;
      if ((heap[down] as T).time >= last.time) break;
      heap[at] = heap[down] as T;
      at = down;
    }
    heap[at] = last;
    return first;
  }
}
