import type { Description, ExplainResult } from "../../contracts/index.js";
import { oneLine } from "../../findings/text.js";
import type { Canvas } from "../../terminal/canvas.js";
import { heading, labelled } from "../../terminal/page.js";
import type { Picture } from "../picture.js";

/** Rows in words, each with what the verbaliser says to the same numbers in another order. */
export function explainPicture(result: ExplainResult, canvas: Canvas): string[] {
  const { verbaliser, layer, length, explained, unfilled } = result;
  const texts = (label: string, said: readonly Description[] = []) =>
    said.flatMap(({ text, ended }) => labelled(label, `${oneLine(text).trim()}${ended ? "" : " …"}`, canvas));
  const scaled = length === null ? "as long as they are" : `scaled to a length of ${length}`;
  return [
    ...labelled(
      "Verbaliser",
      `${oneLine(`${verbaliser.name} ${verbaliser.quantization}`.trim())}, rows of layer ${layer}, ${scaled}`,
      canvas,
    ),
    ...explained.flatMap(({ position, token, norm, descriptions, shuffled }) => [
      "",
      heading(`Token ${position}`, `“${oneLine(token)}”, ${norm.toPrecision(4)} long`, "", canvas),
      ...texts("Said", descriptions),
      ...texts("Shuffled", shuffled),
    ]),
    ...(unfilled === undefined
      ? []
      : ["", heading("Without a row", "the marker as it is typed", "", canvas), ...texts("Said", unfilled)]),
  ];
}

export default {
  asked: ({ prompt, layer }) => [["Explained", `${oneLine(prompt)} (layer ${layer})`]],
  draw: explainPicture,
} satisfies Picture<"explain">;
