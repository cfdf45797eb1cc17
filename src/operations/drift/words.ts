import { publicName } from "../../text/words.js";
import { layersText, type Words, whereText } from "../words.js";

export default {
  heading: ({ models }) => [
    "Drift between",
    models.map(({ name, quantization }) => `${name} ${quantization}`.trim()).join(" and "),
  ],
  subject: (config) => `${config.examples.length} examples, ${layersText(config)}`,
  method: (config) =>
    `drift: block outputs of ${publicName(config.model)} and of ${publicName(config.other)} on the same texts ` +
    `(${whereText(config)}), with bootstrap intervals over texts.`,
  tables: ["drift-by-layer", "drift-artefacts"],
} satisfies Words<"drift">;
