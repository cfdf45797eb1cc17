import type { ExtractResult } from "../../contracts/index.js";
import { oneLine } from "../../findings/text.js";
import type { Canvas } from "../../terminal/canvas.js";
import { labelled } from "../../terminal/page.js";
import { bytesText } from "../../text/words.js";
import { layersText, type Picture } from "../picture.js";

const rowsOf = {
  all: "one per token",
  last: "the last token's",
  mean: "the mean",
  response: "the mean over the response",
};

/** The files of an extraction, or of its plan. */
export function extractPicture(result: ExtractResult, canvas: Canvas): string[] {
  const {
    texts,
    cut_texts: cut,
    tokens,
    rows,
    row_count: count,
    hidden,
    dtype,
    files,
    bytes,
    target,
  } = result;
  const [index, parts] = result.shard as [number, number];
  const row = (label: string, text: string) => labelled(label, text, canvas);
  const speed = result.tokens_per_second;
  return [
    ...row(
      "Texts",
      `${texts} of ${oneLine(result.data.name)}${parts === 1 ? "" : `, part ${index} of ${parts}`}, ${tokens} tokens` +
        `${cut === 0 ? "" : `; ${cut} truncated`}`,
    ),
    ...row(
      "Vectors",
      `${rowsOf[rows]}: ${count} per layer, ${hidden} wide, ${dtype}${target === undefined ? "" : `, each with ${target}`}`,
    ),
    ...row(
      "Files",
      `${files} with ${bytesText(bytes)}${result.kept_files === 0 ? "" : `, ${result.kept_files} of them already existed`}`,
    ),
    ...(result.folder === null ? [] : row("Folder", oneLine(result.folder))),
    ...(speed === null ? [] : row("Speed", `${speed.toFixed(0)} tokens per second, including disk writes`)),
  ];
}

export default {
  asked(config) {
    const what = config.data === undefined ? `${config.examples?.length} examples` : oneLine(config.data);
    return [["Extracted", `${what}, ${layersText(config)}`]];
  },
  draw: extractPicture,
} satisfies Picture<"extract">;
