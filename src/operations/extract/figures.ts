import type { ExtractResult } from "../../contracts/index.js";
import { count, figureOf } from "../../findings/numbers.js";
import { html } from "../../report/markup.js";
import type { Findings } from "../../report/parts.js";

const rowsOf = {
  all: "every token's row",
  last: "each text's last row",
  mean: "the mean of each text's rows",
  response: "the mean row of the response",
};

/** What was written: it is data for other programs, and shows nothing by itself. */
export function extractFindings(result: ExtractResult): Findings {
  const { layers, rows, dtype, files, bytes, tokens, texts, row_count, hidden, shard, cut_texts } = result;
  const [index, parts] = shard as [number, number];
  const speed = result.tokens_per_second;
  const facts = [
    ["texts", parts === 1 ? String(texts) : `${texts}, part ${index} of ${parts}`],
    ["cut texts", String(cut_texts)],
    ["tokens", String(tokens)],
    ["rows of each layer", `${row_count}, ${hidden} wide`],
    ["numbers", dtype],
    ["files", `${files}, ${bytes} bytes`],
    ["data", `${result.data.name}, SHA-256 ${result.data.sha256}`],
  ] as const;
  return {
    summary: [
      `Of ${count(texts, "text")} with ${count(tokens, "token")}, ${rowsOf[rows]} of ${count(layers.length, "layer")} (${layers.join(", ")}): ` +
        `${count(bytes, "byte")} in ${count(files, "file")}${result.index === null ? ", had it been computed." : "."}`,
      ...(speed === null ? [] : [`${figureOf(speed)} tokens a second, the disk included.`]),
    ],
    cautions: ["Rows of one model, of these texts: what is read off them holds for both."],
    parts: [
      {
        id: "extraction",
        title: "What was written",
        description: "The index beside the files says the same.",
        body: html`<dl>${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`,
      },
    ],
  };
}
