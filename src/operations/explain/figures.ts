import type { Description, ExplainedRow, ExplainResult } from "../../contracts/index.js";
import { count, figureOf } from "../../findings/numbers.js";
import { type Html, html } from "../../report/markup.js";
import type { Findings, Passage } from "../../report/parts.js";

/** The verbaliser's descriptions of each activation, next to their controls. */
export function explainFindings(result: ExplainResult): Findings {
  const { verbaliser, layer, length, explained, unfilled } = result;
  const [first] = explained;
  const rows = explained.map((row): Passage => {
    const { position, token, norm } = row;
    return {
      id: `explained-${position}`,
      title: `Token ${position}, ${JSON.stringify(token)}`,
      description:
        `The activation at layer ${layer} has norm ${figureOf(norm)}` +
        (length === null ? "." : ` and was scaled to ${figureOf(length)}.`),
      body: descriptionsOf(row),
    };
  });
  return {
    summary: [
      `${verbaliser.name} (${verbaliser.quantization}) describes ${count(explained.length, "activation")} of layer ${layer}` +
        (first === undefined ? "." : `; token ${first.position}: ${quoted(first.descriptions)}.`),
      ...(unfilled === undefined ? [] : [`Without an activation it says: ${quoted(unfilled)}.`]),
    ],
    cautions: [
      "A description is the verbaliser's answer, not the activation's meaning. If it says much the same for shuffled values " +
        "or without an activation, it is describing its prompt.",
      "A verbaliser not trained on this model and block will still produce plausible text.",
    ],
    parts: [
      ...rows,
      ...(unfilled === undefined
        ? []
        : [
            {
              id: "unfilled",
              title: "Without an activation",
              description: "The marker keeps its own embedding.",
              body: html`<dl>${listed("description", unfilled)}</dl>`,
            },
          ]),
    ],
  };
}

function descriptionsOf({ descriptions, shuffled = [] }: ExplainedRow): Html {
  return html`<dl>${listed("description", descriptions)}${listed("shuffled values", shuffled)}</dl>`;
}

function listed(term: string, texts: readonly Description[]): Html[] {
  return texts.map(({ text, ended }) => html`<dt>${term}</dt><dd>${text}${ended ? "" : " …"}</dd>`);
}

function quoted([first]: readonly Description[]): string {
  return first === undefined ? "nothing" : `“${first.text.trim()}${first.ended ? "" : " …"}”`;
}
