import type { Progress } from "../contracts/index.js";
import type { Output } from "./canvas.js";
import { Pace } from "./pace.js";
import { ProgressLine } from "./progress-line.js";
import { duration } from "./spans.js";

interface Seen {
  status: string;
  progress: Progress;
}

/** Descriptions of a worker's stages. */
const stages: Record<string, string> = {
  queued: "queued",
  starting: "starting a worker",
  addon: "loading the addon",
  model: "loading the model",
  capture: "capturing block outputs",
  sweep: "comparing",
  patch: "patching",
  train: "training",
  artifact: "writing artifacts",
};

/**
 * The progress of a job: one updated line on a terminal; in files, pipes and CI logs a line per stage and occasional ones
 * during a stage.
 */
export class JobProgress {
  readonly #line: ProgressLine;
  readonly #started = performance.now();
  readonly #pace = new Pace();

  constructor(output: Output) {
    this.#line = new ProgressLine(output);
  }

  show({ status, progress }: Seen): void {
    if (status !== "queued" && status !== "running") return;
    const { stage, done, total } = progress;
    const now = performance.now();
    const words = stageWords(stage);
    const seconds = this.#pace.left(progress, now / 1000);
    const left = seconds === undefined ? "" : `, about ${duration(seconds)} left`;
    this.#line.show(
      `${words}${total > 0 ? ` ${bar(done / total)} ${extent(done, total)}` : ""}  ` +
        `${duration((now - this.#started) / 1000)}${left}`,
    );
    this.#line.log(stage, `${words}${total > 0 && done > 0 ? ` ${extent(done, total)}` : ""}${left}`);
  }

  clear(): void {
    this.#line.clear();
  }
}

/** A stage in words. */
export function stageWords(stage: string): string {
  return stages[stage] ?? stage;
}

function bar(share: number): string {
  const room = 20;
  const full = Math.round(Math.min(1, Math.max(0, share)) * room);
  return "█".repeat(full) + "░".repeat(room - full);
}

/** `12/24`, or a percentage if the steps are not integers. */
function extent(done: number, total: number): string {
  return total <= 1 || !Number.isInteger(done) ? `${Math.round((done / total) * 100)} %` : `${done}/${total}`;
}
