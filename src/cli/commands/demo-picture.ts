import { noTemplateSentence } from "../../findings/chat-template.js";
import { oneLine } from "../../findings/text.js";
import { type Canvas, inspectPicture, labelled } from "../../terminal/index.js";
import { shortPath } from "../output.js";
import type { DemoReport } from "./demo-run.js";

/** The demo's results as text. */
export function demoPicture(report: DemoReport, canvas: Canvas, folder = process.cwd()): string {
  const { model, chat, job, files } = report;
  const { result } = job;
  const row = (label: string, text: string) => labelled(label, text, canvas);
  return [
    ...row(
      "Model",
      `${model.model}: ${model.architecture}, ${model.n_layer} blocks, ${model.n_embd} wide, ` +
        `${result.provenance.quantization}, on ${model.backend}`,
    ),
    ...row("Asked", oneLine(chat.question)),
    ...(chat.thinking.trim() === "" ? [] : row("Thought", oneLine(chat.thinking))),
    ...row("Answered", oneLine(chat.answer) + (chat.finish_reason === "length" ? " …" : "")),
    ...(model.chat_template === false ? row("", noTemplateSentence) : []),
    "",
    ...row("Inspected", oneLine(job.config.prompt ?? "")),
    "",
    ...inspectPicture(result, canvas),
    "",
    ...row("Resident", residentSentence(report)),
    ...(files === null
      ? []
      : [
          ...row("Written", `${shortPath(files.activations, folder)} (${arraysOf(report)})`),
          ...row("", shortPath(files.report, folder)),
        ]),
    ...row("Note", oneLine(result.note)),
    ...row(
      "Next",
      "tapline workbench opens a page where you can inspect every token of an answer and change layers.",
    ),
  ].join("\n");
}

function residentSentence({
  capture,
  captured_while_answering,
  largest_norm_difference,
}: DemoReport): string {
  const layers = capture.layers.map(({ layer }) => layer);
  const when = captured_while_answering ? "while it was answering" : "right after its answer";
  const apart =
    largest_norm_difference === 0
      ? "are bit-identical"
      : `differ by at most ${(largest_norm_difference * 100).toPrecision(1)} %`;
  return `captured the serving model ${when} (layers ${layers.join(", ")}); its norms and those of the isolated job ${apart}.`;
}

function arraysOf({ job }: DemoReport): string {
  const { tokens, layers, provenance } = job.result;
  const [first, last] = [layers[0]?.layer, layers.at(-1)?.layer];
  const names = first === last ? `layer_${first}` : `layer_${first} … layer_${last}`;
  return `${names}: float32 [1, ${tokens.length}, ${provenance.n_embd}]`;
}
