import type { ExtractResult } from "../../contracts/index.js";
import { oneLine } from "../../findings/text.js";
import type { Canvas } from "../../terminal/canvas.js";
import { labelled } from "../../terminal/page.js";
import { bytesText } from "../../text/words.js";
import { layersAsked, type Picture } from "../picture.js";

const rowsOf = {
  all: "a row a token",
  last: "the last token's row",
  mean: "the mean row",
  response: "the mean row of the response",
};

/** What an extraction has written, or would write. */
export function extractPicture(result: ExtractResult, canvas: Canvas): string[] {
  const { texts, cut_texts: cut, tokens, rows, row_count: count, hidden, dtype, files, bytes } = result;
  const [index, parts] = result.shard as [number, number];
  const row = (label: string, text: string) => labelled(label, text, canvas);
  const speed = result.tokens_per_second;
  return [
    ...row(
      "Texts",
      `${texts} of ${oneLine(result.data.name)}${parts === 1 ? "" : `, part ${index} of ${parts}`}, ${tokens} tokens` +
        `${cut === 0 ? "" : `; the end of ${cut} was cut`}`,
    ),
    ...row("Rows", `${rowsOf[rows]}: ${count} of each layer, ${hidden} wide, ${dtype}`),
    ...row(
      "Files",
      `${files} with ${bytesText(bytes)}${result.kept_files === 0 ? "" : `, ${result.kept_files} of them there already`}`,
    ),
    ...(result.folder === null ? [] : row("Folder", oneLine(result.folder))),
    ...(speed === null ? [] : row("Speed", `${speed.toFixed(0)} tokens a second, the disk included`)),
  ];
}

export default {
  asked(config) {
    const what = config.data === undefined ? `${config.examples?.length} examples` : oneLine(config.data);
    return [["Extracted", `${what}, ${layersAsked(config)}`]];
  },
  draw: extractPicture,
} satisfies Picture<"extract">;
