import type { BlockPoint } from "../../contracts/names.js";
import { cut, publicName } from "../../text/words.js";
import { layersText, rowsText, type Words, whereText } from "../words.js";
import type { SaeConfig } from "./contract.js";

export default {
  heading: ({ provenance, target }) => [
    target === undefined ? "A sparse autoencoder on" : "A transcoder on",
    `${provenance.requested_model}, ${layersText(provenance)}`,
  ],
  subject: (config) =>
    `${config.from === undefined ? `${config.examples?.length} examples` : publicName(config.from)}, ${layersText(config)}`,
  method: (config) =>
    `sae: ${kindOf(config)} with ${config.features} features, ${config.steps} steps, on ${rowsText(config.rows)} ${whereText(config, pointOf(config))}.`,
  tables: ["quality", "features"],
  *shorter(whole) {
    for (const [examples, most] of [
      [3, 200],
      [1, 60],
    ] as const) {
      const reports = whole.reports.map((report) => ({
        ...report,
        losses: report.losses.filter(
          (_, at, all) => at % Math.ceil(all.length / 100) === 0 || at === all.length - 1,
        ),
        features: report.features.map((feature) => ({
          ...feature,
          examples: feature.examples
            .slice(0, examples)
            .map((example) => ({ ...example, text: cut(example.text, most) })),
        })),
      }));
      yield [
        `most steps of the loss and all but ${examples} examples per feature, ${most} characters of each`,
        { ...whole, reports },
      ];
    }
  },
} satisfies Words<"sae">;

/** Of a transcoder, it may be left out with an extraction. */
function pointOf({ point, target }: SaeConfig): BlockPoint | undefined {
  return point ?? (target === undefined ? undefined : "ffn_in");
}

function kindOf({ architecture = "relu", k, target, skip }: SaeConfig): string {
  const what =
    target === undefined
      ? "autoencoder"
      : `${skip === true ? "skip " : ""}transcoder from ffn_in to ${target}`;
  if (architecture === "relu") return `ReLU ${what} with an L1 penalty`;
  return architecture === "jumprelu"
    ? `JumpReLU ${what}`
    : `${what} (${architecture}${k === undefined ? "" : `, k ${k}`})`;
}
