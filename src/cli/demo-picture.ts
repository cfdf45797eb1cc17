import { relative } from "node:path";
import {
  bars,
  bold,
  type Canvas,
  dim,
  legend,
  lensGrid,
  magnitudeScale,
  narrowest,
  normsGrid,
  oneLine,
  probabilityScale,
  story,
  width,
  wrap,
} from "../terminal/index.js";
import type { DemoReport } from "./demo-run.js";

/** What the demo saw, as a person reads it from top to bottom. */
export function demoPicture(report: DemoReport, canvas: Canvas, folder = process.cwd()): string {
  const { model, chat, job, files } = report;
  const { result } = job;
  const row = (label: string, text: string) => labelled(label, text, canvas);
  const title = (name: string, meaning: string, key = "") => heading(name, meaning, key, canvas);
  return [
    ...row(
      "Model",
      `${model.model}: ${model.architecture}, ${model.n_layer} blocks, ${model.n_embd} wide, ` +
        `${result.provenance.quantization}, on ${model.backend}`,
    ),
    ...row("Asked", oneLine(chat.question)),
    ...(chat.thinking.trim() === "" ? [] : row("Thought", oneLine(chat.thinking))),
    ...row("Answered", oneLine(chat.answer) + (chat.finish_reason === "length" ? " …" : "")),
    "",
    ...row("Looked into", oneLine(job.config.prompt)),
    "",
    title("Logit lens", "what each block would say comes next", legend(probabilityScale, "0", "1", canvas)),
    lensGrid(result, canvas),
    "",
    ...wrap(story(result), Math.max(narrowest, canvas.width)).map((line) => bold(line, canvas.colors)),
    "",
    title(
      "Norms",
      "length of the residual stream behind each block",
      legend(magnitudeScale, "low", "high", canvas),
    ),
    normsGrid(result, canvas),
    "",
    title("Next token", "what the model itself says"),
    bars(result.next_tokens, canvas),
    "",
    ...row("Resident", residentSentence(report)),
    ...row("Written", `${shown(files.activations, folder)} (${arraysOf(report)})`),
    ...row("", shown(files.report, folder)),
    ...row("Note", oneLine(result.note)),
  ].join("\n");
}

function residentSentence({
  capture,
  captured_while_answering,
  largest_norm_difference,
}: DemoReport): string {
  const layers = capture.layers.map(({ layer }) => layer);
  const when = captured_while_answering ? "while it answered" : "right behind its answer";
  const apart =
    largest_norm_difference === 0
      ? "are the same to the last bit"
      : `differ by at most ${(largest_norm_difference * 100).toPrecision(1)} %`;
  return `the serving model was captured ${when} (layers ${layers.join(", ")}); its norms and those of the isolated job ${apart}.`;
}

function arraysOf({ job }: DemoReport): string {
  const { tokens, layers, provenance } = job.result;
  const [first, last] = [layers[0]?.layer, layers.at(-1)?.layer];
  const names = first === last ? `layer_${first}` : `layer_${first} … layer_${last}`;
  return `${names}: float32 [1, ${tokens.length}, ${provenance.n_embd}]`;
}

/** A path as short as it can be said from where the user stands. */
function shown(path: string, folder: string): string {
  const near = relative(folder, path);
  return near.startsWith("..") || near === "" ? path : near;
}

/** Label at the left, text beside it, as many lines as it needs. */
function labelled(label: string, text: string, canvas: Canvas): string[] {
  const margin = 13;
  const room = Math.max(narrowest, canvas.width) - margin;
  if (room < 30) return [dim(label, canvas.colors), ...wrap(text, Math.max(narrowest, canvas.width))];
  return wrap(text, room).map(
    (line, index) => dim((index === 0 ? label : "").padEnd(margin), canvas.colors) + line,
  );
}

/** Title, what it means, and the legend at the right edge; where room is scarce, the meaning goes first. */
function heading(title: string, meaning: string, key: string, canvas: Canvas): string {
  const { colors } = canvas;
  const room = Math.max(narrowest, canvas.width);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours start with an escape character
  const keyWidth = key === "" ? 0 : 2 + width(key.replace(/\u001b\[[\d;]*m/g, ""));
  const full = width(title) + 2 + width(meaning);
  const [left, leftWidth] =
    full + keyWidth <= room
      ? [`${bold(title, colors)}  ${dim(meaning, colors)}`, full]
      : [bold(title, colors), width(title)];
  if (key === "" || leftWidth + keyWidth > room) return left;
  return left + " ".repeat(room - leftWidth - keyWidth + 2) + key;
}
