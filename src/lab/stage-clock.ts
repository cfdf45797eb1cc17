/** Seconds spent per stage of a job; a stage may be entered more than once. */
export class StageClock {
  readonly seconds: Record<string, number> = { process: 0, addon: 0, model: 0, compute: 0, artifact: 0 };

  /** Adds the time until `run` settles to a stage. */
  async measure<T>(stage: string, run: () => Promise<T>): Promise<T> {
    const start = performance.now();
    try {
      return await run();
    } finally {
      this.add(stage, (performance.now() - start) / 1000);
    }
  }

  add(stage: string, seconds: number): void {
    this.seconds[stage] = Math.round(((this.seconds[stage] ?? 0) + seconds) * 1e6) / 1e6;
  }
}
