/** What Chromium's own trace says of a page's main thread. */
import type { Browser, Page } from "playwright-core";

interface TraceEvent {
  name: string;
  ph: string;
  pid: number;
  tid: number;
  /** Microseconds; `tdur` is processor time. */
  dur?: number;
  tdur?: number;
  args?: { name?: string };
}

export interface Tasks {
  /** Milliseconds of each task of the main thread, and its processor time where the trace has it. */
  wall: number[];
  processor: number[];
}

/** Traces a page while something happens in it. */
export async function traced(browser: Browser, page: Page, work: () => Promise<void>): Promise<Tasks> {
  const categories = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"];
  await browser.startTracing(page, { categories });
  await work();
  const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as {
    traceEvents: TraceEvent[];
  };
  const mains = new Set(
    traceEvents
      .filter(({ name, args }) => name === "thread_name" && args?.name === "CrRendererMain")
      .map(({ pid, tid }) => `${pid} ${tid}`),
  );
  const tasks = traceEvents.filter(
    ({ name, ph, pid, tid }) => ph === "X" && /RunTask$/.test(name) && mains.has(`${pid} ${tid}`),
  );
  return {
    wall: tasks.map(({ dur = 0 }) => dur / 1000),
    processor: tasks.flatMap(({ tdur }) => (tdur === undefined ? [] : [tdur / 1000])),
  };
}
