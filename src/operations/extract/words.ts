import { rowsAtPoint } from "../../contracts/names.js";
import { publicName } from "../../text/words.js";
import { layersText, rowsText, type Words, whereText } from "../words.js";

export default {
  heading: ({ data, point }) => [`${rowsAtPoint(point).replace(/^block /, "Block ")} of`, data.name],
  subject: (config) =>
    `${config.data === undefined ? `${config.examples?.length} texts` : publicName(config.data)}, ${layersText(config)}`,
  method: (config) =>
    `extract: ${rowsText(config.rows)} ${whereText(config, config.point)}${config.target === undefined ? "" : `, and its ${config.target}`}, written to files as ${config.dtype}.`,
  tables: [],
} satisfies Words<"extract">;
