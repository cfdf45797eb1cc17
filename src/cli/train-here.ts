import { join } from "node:path";
import { type ExtractionTraining, filesOf, trainFromExtraction } from "../lab/training/from-extraction.js";
import { canvasOf, dim, JobProgress, saePicture } from "../terminal/index.js";
import { print, printJson, shortPath } from "./output.js";
import { endBy, stoppable } from "./stop-signal.js";

/** Trains on an extraction in this process, with progress, then prints the picture or JSON. */
export async function trainHere(
  training: ExtractionTraining,
  out: string,
  options: { threads: number | undefined; json: boolean; quiet: boolean },
): Promise<void> {
  const signal = stoppable();
  const progress = new JobProgress(options.quiet ? { write: () => {} } : process.stderr);
  try {
    const result = await trainFromExtraction(training, out, {
      threads: options.threads,
      signal,
      progress: (now) => progress.show({ status: "running", progress: now }),
    });
    progress.clear();
    const files = [...result.reports.flatMap(({ layer }) => filesOf(out, layer)), join(out, "sae.json")];
    if (options.json) return await printJson({ ...result, files });
    const canvas = canvasOf(process.stdout);
    const lines = saePicture(result, training.features, canvas);
    files.forEach((file, index) => {
      lines.push(dim((index === 0 ? "Saved" : "").padEnd(13), canvas.colors) + shortPath(file));
    });
    await print(lines.join("\n"));
  } catch (error) {
    progress.clear();
    if (signal.aborted) return endBy(signal.reason);
    throw error;
  }
}
