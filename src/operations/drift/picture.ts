import type { DriftResult, Measured } from "../../contracts/index.js";
import { driftFinding } from "../../findings/drift-finding.js";
import { oneLine } from "../../findings/text.js";
import type { Canvas } from "../../terminal/canvas.js";
import { finding, heading, labelled } from "../../terminal/page.js";
import { table } from "../../terminal/table.js";
import { layersText, type Picture } from "../picture.js";

/** Two models side by side: block outputs by layer, and artefacts. */
export function driftPicture(result: DriftResult, canvas: Canvas): string[] {
  const right = { align: "right" as const };
  const layers = [...result.layers].sort((a, b) => a.layer - b.layer);
  const [one, two] = result.models.map(({ name, quantization }) => oneLine(`${name} ${quantization}`.trim()));
  const columns = [
    { title: "layer", ...right },
    { title: "cosine", ...right },
    { title: "|b| / |a|", ...right },
    { title: "|a - b| / |a|", ...right, dispensable: 1 },
  ];
  const rows = layers.map(({ layer, cosine, relative_length, relative_difference }) => [
    String(layer),
    ...[cosine, relative_length, relative_difference].map(shown),
  ]);
  return [
    ...labelled("Models", `a: ${one}; b: ${two}`, canvas),
    "",
    heading(
      "Block outputs",
      `means over ${result.tokens} tokens of ${result.texts} texts, 95 % intervals over texts`,
      "",
      canvas,
    ),
    ...table(columns, rows, canvas),
    "",
    ...finding(driftFinding(result), canvas),
    ...artefacts(result, canvas),
  ];
}

function artefacts({ dictionary, probe, vector }: DriftResult, canvas: Canvas): string[] {
  const rows = [
    ...(dictionary === undefined
      ? []
      : [
          [
            `${oneLine(dictionary.name)}, ${dictionary.point === undefined ? "" : `${dictionary.point} of `}layer ${dictionary.layer}`,
            "shared active features",
            "",
            "",
            dictionary.jaccard === null ? "none" : shown(dictionary.jaccard),
          ],
        ]),
    ...(dictionary?.loss_recovered && dictionary.loss_recovered_difference
      ? [
          [
            oneLine(dictionary.name),
            "loss recovered",
            ...dictionary.loss_recovered.map(shown),
            shown(dictionary.loss_recovered_difference),
          ],
        ]
      : []),
    ...(probe === undefined
      ? []
      : [
          [
            `${oneLine(probe.name)}, layer ${probe.layer}`,
            "AUROC",
            ...probe.auroc.map(shown),
            shown(probe.difference),
          ],
        ]),
    ...(vector === undefined
      ? []
      : [
          [
            `${oneLine(vector.name)}, layer ${vector.layer}`,
            "separation",
            ...vector.separation.map(shown),
            shown(vector.difference),
          ],
        ]),
  ];
  if (rows.length === 0) return [];
  return [
    "",
    heading("Artefacts", "the same measurements in both models", "", canvas),
    ...table(
      [
        { title: "name", least: 8 },
        { title: "measured", least: 8 },
        { title: "a" },
        { title: "b" },
        { title: "both" },
      ],
      rows,
      canvas,
    ),
  ];
}

function shown({ value, low, high }: Measured): string {
  return `${value.toFixed(4)} (${low.toFixed(4)} to ${high.toFixed(4)})`;
}

export default {
  asked: (config) => [
    ["Other model", oneLine(config.other)],
    ["Compared", `${config.examples.length} examples, ${layersText(config)}`],
  ],
  draw: driftPicture,
} satisfies Picture<"drift">;
