import { join } from "node:path";
import { type ExtractionTraining, filesOf, trainFromExtraction } from "../lab/training/from-extraction.js";
import { canvasOf, dim, saePicture } from "../terminal/index.js";
import { print, printJson, shortPath } from "./output.js";
import { withProgress } from "./with-progress.js";

/** Trains on an extraction in this process, with progress, then prints the picture or JSON. */
export function trainHere(
  training: ExtractionTraining,
  out: string,
  { threads, json, quiet }: { threads: number | undefined; json: boolean; quiet: boolean },
): Promise<void> {
  return withProgress(
    { quiet },
    (progress, signal) =>
      trainFromExtraction(training, out, {
        threads,
        signal,
        progress: (now) => progress.show({ status: "running", progress: now }),
      }),
    async (result) => {
      const files = [
        ...result.reports.flatMap(({ layer }) => filesOf(out, layer, training)),
        join(out, "sae.json"),
      ];
      if (json) return printJson({ ...result, files });
      const canvas = canvasOf(process.stdout);
      const lines = saePicture({ ...result, target: training.target }, training.features, canvas);
      files.forEach((file, index) => {
        lines.push(dim((index === 0 ? "Saved" : "").padEnd(13), canvas.colors) + shortPath(file));
      });
      return print(lines.join("\n"));
    },
  );
}
