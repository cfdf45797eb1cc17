/** A submission of a toy extraction, its parts computed in this process, and the files that one run writes. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Engine } from "../../src/submit/engine.js";
import { type Following, follow } from "../../src/submit/follow.js";
import { planned } from "../../src/submit/index.js";
import { partsFolder, prepareFolder, type Submission, save } from "../../src/submit/submission.js";
import { runExtraction, toyModel } from "../lab/toy-extraction.js";

/** @param texts their number; each has 4 tokens, and a file has two texts */
export function toySubmissions(name: string, texts: number) {
  const folder = mkdtempSync(join(tmpdir(), `tapline-${name}-`));
  const model = join(folder, "model.gguf");
  writeFileSync(model, "no model at all");
  // One for all runs: it numbers words in the order in which it meets them.
  const toy = toyModel(model);
  const data = join(folder, "texts.txt");
  writeFileSync(data, Array.from({ length: texts }, (_, i) => `a${i} b${i} c${i}`).join("\n"));
  const body = { data, shard_tokens: 8, layers: [1] };
  let made = 0;
  return {
    leave: () => rmSync(folder, { recursive: true, force: true }),
    /** A submission that has not started, with an empty home. */
    async setting({ parts = 3, workers = 1 } = {}) {
      const at = (what: string) => join(folder, `${what}-${made}`);
      const [home, out, whole] = [at("home"), at("out"), at("whole")];
      made++;
      mkdirSync(home);
      const submission = planned(
        { model: "toy" },
        { engine: "local", out, parts, workers, engineOptions: [] },
      );
      await prepareFolder(submission);
      await save(home, submission);
      await runExtraction(folder, { ...body, out: whole }, toy);
      return { home, submission, whole };
    },
    /** Computes a part. */
    compute: (submission: Submission, part: number, out = partsFolder(submission)) =>
      runExtraction(folder, { ...body, out, shard: [part, submission.parts] }, toy),
  };
}

/**
 * Follows a submission, looking at it every millisecond. Whatever goes wrong, it ends after half a minute.
 * @param more what the test observes; `signal` ends it earlier
 */
export async function followToy(
  home: string,
  submission: Submission,
  engine: Engine,
  { signal, ...more }: Partial<Following> = {},
) {
  // Not AbortSignal.any, which may lose a signal of a timeout to the garbage collector.
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(new Error("It did not end within 30 s.")), 30_000);
  signal?.addEventListener("abort", () => stop.abort(signal.reason), { once: true });
  try {
    return await follow(submission, {
      ...{ home, engine, intervalMs: 1, signal: stop.signal },
      ...{ onProgress: () => {}, onRestart: () => {}, onCopy: () => {}, onMerge: () => {} },
      ...more,
    });
  } finally {
    clearTimeout(timer);
  }
}

/** The files of a folder, as hexadecimal text. */
export const contents = (path: string) =>
  Object.fromEntries(readdirSync(path).map((name) => [name, readFileSync(join(path, name)).toString("hex")]));
