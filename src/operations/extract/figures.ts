import type { ExtractResult } from "../../contracts/index.js";
import { count, figureOf } from "../../findings/numbers.js";
import { html } from "../../report/markup.js";
import type { Findings } from "../../report/parts.js";

const rowsOf = {
  all: "every token's activation",
  last: "each text's last activation",
  mean: "each text's mean activation",
  response: "the mean activation of each response",
};

/** Facts about the files, which are data for other programs. */
export function extractFindings(result: ExtractResult): Findings {
  const { layers, rows, dtype, files, bytes, tokens, texts, row_count, hidden, shard, cut_texts } = result;
  const [index, parts] = shard as [number, number];
  const speed = result.tokens_per_second;
  const facts = [
    ["texts", parts === 1 ? String(texts) : `${texts}, part ${index} of ${parts}`],
    ["cut texts", String(cut_texts)],
    ["tokens", String(tokens)],
    [
      "activations per layer",
      `${row_count}, ${hidden} wide${result.target === undefined ? "" : `, each with ${result.target}`}`,
    ],
    ["number format", dtype],
    ["files", `${files}, ${bytes} bytes`],
    ["data", `${result.data.name}, SHA-256 ${result.data.sha256}`],
  ] as const;
  return {
    summary: [
      `${count(texts, "text")} with ${count(tokens, "token")}, ${rowsOf[rows]} at ${count(layers.length, "layer")} (${layers.join(", ")}): ` +
        `${count(bytes, "byte")} in ${count(files, "file")}${result.index === null ? " (plan only)." : "."}`,
      ...(speed === null ? [] : [`${figureOf(speed)} tokens per second, including disk writes.`]),
    ],
    cautions: ["Conclusions from these activations hold for this model and these texts."],
    parts: [
      {
        id: "extraction",
        title: "Files",
        description: "The index file next to them contains the same information.",
        body: html`<dl>${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`,
      },
    ],
  };
}
