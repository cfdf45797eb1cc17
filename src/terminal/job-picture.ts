import { basename } from "node:path";
import type {
  CompareResult,
  DriftResult,
  ExplainResult,
  ExtractResult,
  FeaturesResult,
  InspectResult,
  Job,
  PatchSweepConfig,
  PatchSweepResult,
  ProbeResult,
  SaeConfig,
  SaeResult,
} from "../contracts/index.js";
import { positionText } from "../contracts/position-text.js";
import { promptsOf } from "../contracts/prompts-of.js";
import { oneLine } from "../findings/text.js";
import type { Canvas } from "./canvas.js";
import { comparePicture } from "./compare-picture.js";
import { driftPicture } from "./drift-picture.js";
import { explainPicture } from "./explain-picture.js";
import { extractPicture } from "./extract-picture.js";
import { featuresPicture } from "./features-picture.js";
import { inspectPicture } from "./inspect-picture.js";
import { labelled } from "./page.js";
import { patchSweepPicture } from "./patch-sweep-picture.js";
import { probePicture } from "./probe-picture.js";
import { saePicture } from "./sae-picture.js";
import { duration } from "./spans.js";

/** What is said of results that bring no note of their own. */
const caution = "A readout shows what can be read off a layer, not what the model uses.";

/** A job as a person reads it: what was asked, then its result, or why there is none. */
export function jobPicture(job: Job, canvas: Canvas): string[] {
  const lines = [...asked(job, canvas)];
  if (job.error !== undefined) lines.push(...labelled("Error", oneLine(job.error), canvas));
  if (job.result === undefined) return lines;
  return [...lines, "", ...resultLines(job, canvas), "", ...provenance(job, canvas)];
}

function asked({ id, status, operation, model, started, ended, config }: Job, canvas: Canvas): string[] {
  const took = started === null ? "" : ` in ${duration((ended ?? Date.now() / 1000) - started)}`;
  const row = (label: string, text: string) => labelled(label, text, canvas);
  if (config.operation === "features") {
    const count = config.texts?.length ?? 1;
    const shown = count === 1 ? oneLine(config.texts?.[0] ?? config.prompt ?? "") : `${count} texts`;
    return [
      ...row("Job", `${id}, ${operation}, ${status}${took}`),
      ...row("Model", oneLine(model)),
      ...row("Read", `${shown}, through the dictionary ${config.dictionary}`),
    ];
  }
  if (config.operation === "patch_sweep") {
    return [
      ...row("Job", `${id}, ${operation}, ${status}${took}`),
      ...row("Model", oneLine(model)),
      ...row("Patched", patchedText(config)),
    ];
  }
  if (config.operation === "explain") {
    return [
      ...row("Job", `${id}, ${operation}, ${status}${took}`),
      ...row("Model", oneLine(model)),
      ...row("Explained", `${oneLine(config.prompt)} (layer ${config.layer})`),
    ];
  }
  const layers = `${config.layers.length === 1 ? "layer" : "layers"} ${config.layers.join(", ")}`;
  const lines = [...row("Job", `${id}, ${operation}, ${status}${took}`), ...row("Model", oneLine(model))];
  switch (config.operation) {
    case "inspect":
      return [...lines, ...row("Looked into", `${oneLine(config.prompt)} (${layers})`)];
    case "compare": {
      const prompts = promptsOf(config);
      const shown = prompts.length === 1 ? oneLine(prompts[0] as string) : `${prompts.length} prompts`;
      const side = (one?: string, many?: string[]) =>
        many === undefined ? `“${oneLine(one ?? "")}”` : `the mean of ${many.length}`;
      const direction =
        config.feature === undefined
          ? `from ${side(config.negative, config.negatives)} to ${side(config.positive, config.positives)}`
          : `along feature ${config.feature[1]} of ${oneLine(String(config.feature[0]))}`;
      const edit = {
        scale: "scaled",
        ablate: "ablated",
        patch: `patched from “${oneLine(config.donor_prompt ?? "")}”`,
        steer: `steered ${direction}`,
        project_out: `without what leads ${direction}`,
        swap: `with ${(config.swap ?? []).map((token) => `“${oneLine(token)}”`).join(" and ")} exchanged`,
        clamp: `held within bounds on the way ${direction}`,
      }[config.intervention];
      const where =
        config.positions === undefined ? "the last token's" : `${positionText(config.positions)}:`;
      const at = config.intervention === "swap" ? layers : `layer ${config.layers[0]}`;
      return [...lines, ...row("Compared", `${shown}, ${where} ${at} ${edit}`)];
    }
    case "probe":
      return [...lines, ...row("Probed", `${config.examples.length} examples, ${layers}`)];
    case "drift":
      return [
        ...lines,
        ...row("Other model", oneLine(config.other)),
        ...row("Compared", `${config.examples.length} examples, ${layers}`),
      ];
    case "extract":
      return [
        ...lines,
        ...row(
          "Extracted",
          `${config.data === undefined ? `${config.examples?.length} examples` : oneLine(config.data)}, ${layers}`,
        ),
      ];
    case "sae":
      return [
        ...lines,
        ...row(
          "Trained",
          `${config.features} features on ${config.from === undefined ? `${config.examples?.length} examples` : oneLine(config.from)}, ${config.steps} steps, ${layers}`,
        ),
      ];
  }
}

function patchedText({ direction, pairs, clean = "", corrupted = "" }: PatchSweepConfig): string {
  const said = { clean: pairs?.[0]?.clean ?? clean, corrupted: pairs?.[0]?.corrupted ?? corrupted };
  const [from, into] = direction === "denoise" ? [said.clean, said.corrupted] : [said.corrupted, said.clean];
  const more = pairs === undefined || pairs.length === 1 ? "" : `, and ${pairs.length - 1} pairs more`;
  return `states of “${oneLine(from)}” into the run of “${oneLine(into)}”${more}`;
}

function resultLines({ operation, result, config }: Job, canvas: Canvas): string[] {
  switch (operation) {
    case "inspect":
      return inspectPicture(result as InspectResult, canvas);
    case "compare":
      return comparePicture(result as CompareResult, canvas);
    case "probe":
      return probePicture(result as ProbeResult, canvas);
    case "sae":
      return saePicture(result as SaeResult, (config as SaeConfig).features, canvas);
    case "features":
      return featuresPicture(result as FeaturesResult, canvas);
    case "extract":
      return extractPicture(result as ExtractResult, canvas);
    case "drift":
      return driftPicture(result as DriftResult, canvas);
    case "patch_sweep":
      return patchSweepPicture(result as PatchSweepResult, canvas);
    case "explain":
      return explainPicture(result as ExplainResult, canvas);
  }
}

function provenance({ result }: Job, canvas: Canvas): string[] {
  const { provenance: from, ...rest } = result as InspectResult;
  const note = rest.note === undefined ? caution : oneLine(rest.note);
  return [
    ...labelled(
      "Measured on",
      `${oneLine(basename(from.resolved_model.path))}: ${from.architecture}, ${from.n_layer} blocks, ${from.n_embd} wide, ` +
        `${from.quantization}, on ${oneLine(from.device)}; tapline ${from.versions.tapline}, ` +
        `llama.cpp ${from.versions["llama.cpp"]}, seed ${from.seed}`,
      canvas,
    ),
    ...labelled("Note", note, canvas),
  ];
}
