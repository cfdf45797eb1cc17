import type { Description, ExplainResult } from "../../contracts/index.js";
import { oneLine } from "../../findings/text.js";
import type { Canvas } from "../../terminal/canvas.js";
import { heading, labelled } from "../../terminal/page.js";
import type { Picture } from "../picture.js";

/** Activations in words, each with the descriptions of its shuffled values. */
export function explainPicture(result: ExplainResult, canvas: Canvas): string[] {
  const { verbaliser, layer, length, explained, unfilled } = result;
  const texts = (label: string, descriptions: readonly Description[] = []) =>
    descriptions.flatMap(({ text, ended }) =>
      labelled(label, `${oneLine(text).trim()}${ended ? "" : " …"}`, canvas),
    );
  const scaled = length === null ? "unscaled" : `scaled to norm ${length}`;
  return [
    ...labelled(
      "Verbaliser",
      `${oneLine(`${verbaliser.name} ${verbaliser.quantization}`.trim())}, activations of layer ${layer}, ${scaled}`,
      canvas,
    ),
    ...explained.flatMap(({ position, token, norm, descriptions, shuffled }) => [
      "",
      heading(`Token ${position}`, `“${oneLine(token)}”, norm ${norm.toPrecision(4)}`, "", canvas),
      ...texts("Description", descriptions),
      ...texts("Shuffled", shuffled),
    ]),
    ...(unfilled === undefined
      ? []
      : [
          "",
          heading("Without an activation", "the marker's own embedding", "", canvas),
          ...texts("Description", unfilled),
        ]),
  ];
}

export default {
  asked: ({ prompt, layer }) => [["Explained", `${oneLine(prompt)} (layer ${layer})`]],
  draw: explainPicture,
} satisfies Picture<"explain">;
