import { copyFile, link, mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { syncFolder } from "../files/durable.js";
import type { ExtractionIndex } from "../lab/extraction/folder.js";
import type { Engine } from "./engine.js";
import { lastFile, progressIn, type SubmissionProgress } from "./progress.js";
import { type Batch, copyFolder, partsFolder, type Submission } from "./submission.js";

/** How much later than a median part another one has to end, as a factor of its duration. */
const slowFactor = 2;

/**
 * The parts that will take more than twice the median duration of the finished ones, slowest first. Empty until half of
 * the parts are finished. Durations and speeds are those since a part's last start, by the times of its files.
 * @param now in milliseconds
 */
export function stragglers({ parts }: Pick<SubmissionProgress, "parts">, now: number): number[] {
  const durations = parts
    .flatMap(({ started, ended }) => (started === undefined || ended === undefined ? [] : ended - started))
    .sort((a, b) => a - b);
  if (durations.length === 0 || 2 * durations.length < parts.length) return [];
  const most = slowFactor * (durations[Math.floor(durations.length / 2)] as number);
  return parts
    .flatMap(({ part, complete, started, done, tokens = 0 }) => {
      if (complete || started === undefined) return [];
      const elapsed = now - started;
      const projected = done > 0 ? (elapsed * tokens) / done : elapsed;
      return projected > most ? [{ part, projected }] : [];
    })
    .sort((a, b) => b.projected - a.projected)
    .map(({ part }) => part);
}

/** Second runs of slow parts: each has its own folder, and the first run to finish counts. */
export class Copies {
  /** Parts that have been started a second time: a third run would hardly be faster. */
  readonly #started = new Set<number>();

  /** @param saved called when the submission's batches have changed */
  constructor(
    private readonly submission: Submission,
    private readonly engine: Engine,
    private readonly saved: () => Promise<void>,
  ) {}

  /** Starts slow parts among the active ones a second time if places are free. @returns these parts */
  async start(progress: SubmissionProgress, active: ReadonlySet<number>): Promise<number[]> {
    const { submission, engine } = this;
    const slow = stragglers(progress, Date.now()).filter(
      (part) => active.has(part) && !this.#started.has(part),
    );
    if (slow.length === 0) return [];
    const started: number[] = [];
    for (const part of slow.slice(0, Math.max(0, submission.workers - (await engine.busy(submission))))) {
      this.#started.add(part);
      if (!(await prepareCopy(submission, part))) continue;
      const handle = await engine.start(submission, [part], true);
      submission.batches.push({ handle, parts: [part], copy: true });
      await this.saved();
      started.push(part);
    }
    return started;
  }

  /** Ends each pair of runs of which one is complete, and keeps that one's files. */
  async settle(): Promise<void> {
    const { submission } = this;
    for (const batch of submission.batches.filter(({ copy }) => copy)) {
      const [part] = batch.parts as [number];
      this.#started.add(part);
      const { complete } = await progressIn(partsFolder(submission), submission, part);
      const isActive = (await this.engine.active({ batches: [batch] })).has(part);
      if (!complete && isActive) continue;
      if (!complete && (await progressIn(copyFolder(submission, part), submission, part)).complete) {
        await this.#end(originalsOf(submission), part);
        await adopt(submission, part);
      } else if (isActive) {
        await this.#end([batch], part);
      }
      await this.#drop(batch);
    }
  }

  /** Removes the folders of copies that have been stopped. */
  async discard(): Promise<void> {
    for (const batch of this.submission.batches.filter(({ copy }) => copy)) await this.#drop(batch);
  }

  async #drop(batch: Batch): Promise<void> {
    const { submission } = this;
    for (const part of batch.parts) {
      await rm(copyFolder(submission, part), { recursive: true, force: true, maxRetries: 3 });
    }
    submission.batches.splice(submission.batches.indexOf(batch), 1);
    await this.saved();
  }

  /** Stops a part and waits until it has ended; a machine that does not answer is waited for a while only. */
  async #end(batches: Batch[], part: number): Promise<void> {
    await this.engine.stop({ batches }, [part]);
    for (let look = 0; look < 30 && (await this.engine.active({ batches })).has(part); look++) {
      await sleep(1000);
    }
  }
}

const originalsOf = ({ batches }: Submission) => batches.filter(({ copy }) => !copy);

/**
 * Makes a folder for a second run, which resumes after the files that the first one has finished.
 * @returns false if it exists: another process that follows the submission has started a second run
 */
async function prepareCopy(submission: Submission, part: number): Promise<boolean> {
  const folder = copyFolder(submission, part);
  const isNew = await mkdir(folder, { mode: 0o700 }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "EEXIST") return false;
      throw error;
    },
  );
  if (!isNew || (submission.operation ?? "extract") !== "extract") return isNew;
  const index = lastFile(submission, part);
  const text = await readFile(index, "utf8").catch(() => undefined);
  if (text === undefined) return true; // it has not counted its texts
  await copyFile(index, join(folder, basename(index)));
  for (const { file, bytes } of (JSON.parse(text) as ExtractionIndex).shards) {
    const from = join(partsFolder(submission), file);
    const size = await stat(from).then(
      ({ size }) => size,
      () => undefined,
    );
    // File systems without links: the second run computes these files again.
    if (size === bytes) await link(from, join(folder, file)).catch(() => {});
  }
  return true;
}

/** Moves a finished second run's files to where the first one's are, and removes what the first one left. */
async function adopt(submission: Submission, part: number): Promise<void> {
  const [from, to] = [copyFolder(submission, part), partsFolder(submission)];
  const unfinished = (name: string) => /\.(partial|lock|tmp)$/.test(name);
  const last = basename(lastFile(submission, part));
  const names = (await readdir(from)).filter((name) => !unfinished(name) && name !== last);
  for (const name of names) await rename(join(from, name), join(to, name));
  await syncFolder(to);
  // Only now is the part complete.
  await rename(join(from, last), join(to, last));
  await syncFolder(to);
  const own = new RegExp(`^(shard|index|part)-${part}-of-${submission.parts}[-.]`);
  for (const name of await readdir(to)) {
    if (own.test(name) && unfinished(name)) await rm(join(to, name), { force: true });
  }
}
