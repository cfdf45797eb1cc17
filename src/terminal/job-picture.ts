import { basename } from "node:path";
import type { Job, Result } from "../contracts/index.js";
import { oneLine } from "../findings/text.js";
import type { Picture } from "../operations/picture.js";
import { pictures } from "../operations/pictures.js";
import type { Canvas } from "./canvas.js";
import { labelled } from "./page.js";
import { duration } from "./spans.js";

/** The note for results without one. */
const caution = "A readout shows what can be read from a layer, not what the model uses.";

/** A job: its configuration, then its result or error. */
export function jobPicture(job: Job, canvas: Canvas): string[] {
  const { id, status, operation, model, started, ended, config, result, error } = job;
  const row = (label: string, text: string) => labelled(label, text, canvas);
  // A job's configuration and result are of its operation.
  const picture = pictures[operation] as Picture<never>;
  const took = started === null ? "" : ` in ${duration((ended ?? Date.now() / 1000) - started)}`;
  return [
    ...row("Job", `${id}, ${operation}, ${status}${took}`),
    ...row("Model", oneLine(model)),
    ...picture.asked(config as never).flatMap(([label, text]) => row(label, text)),
    ...(error === undefined ? [] : row("Error", oneLine(error))),
    ...(result === undefined
      ? []
      : ["", ...picture.draw(result as never, canvas, config as never), "", ...provenance(result, canvas)]),
  ];
}

function provenance(result: Result, canvas: Canvas): string[] {
  const { provenance: from } = result;
  const note = "note" in result ? oneLine(result.note) : caution;
  return [
    ...labelled(
      "Measured on",
      `${oneLine(basename(from.resolved_model.path))}: ${from.architecture}, ${from.n_layer} layers, width ${from.n_embd}, ` +
        `${from.quantization}, on ${oneLine(from.device)}; tapline ${from.versions.tapline}, ` +
        `llama.cpp ${from.versions["llama.cpp"]}, seed ${from.seed}`,
      canvas,
    ),
    ...labelled("Note", note, canvas),
  ];
}
