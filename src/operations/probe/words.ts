import { cut } from "../../text/words.js";
import { layersText, rowsText, type Words, whereText } from "../words.js";

export default {
  heading: ({ provenance }) => [
    "A linear probe on",
    `${provenance.requested_model}, ${layersText(provenance)}`,
  ],
  subject: (config) => `${config.examples.length} examples, ${layersText(config)}`,
  method: (config) =>
    `probe: L2-regularised logistic regression on ${rowsText(config.rows)} ${whereText(config, config.point)}, with majority and ` +
    "shuffled-label controls.",
  tables: ["accuracy-by-layer", "rows-by-layer", "grid"],
  *shorter(whole) {
    for (const most of [200, 40, 8]) {
      const reports = whole.reports.map((report) => ({
        ...report,
        scores: report.scores.map((score) => ({ ...score, text: cut(score.text, most) })),
      }));
      yield [`texts beyond ${most} characters`, { ...whole, reports }];
    }
  },
} satisfies Words<"probe">;
