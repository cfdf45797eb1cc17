import type { Description, ExplainedRow, ExplainResult } from "../../contracts/index.js";
import { count, figureOf } from "../../findings/numbers.js";
import { type Html, html } from "../../report/markup.js";
import type { Findings, Passage } from "../../report/parts.js";

/** What the verbaliser said to each row, with its controls beside it. */
export function explainFindings(result: ExplainResult): Findings {
  const { verbaliser, layer, length, explained, unfilled } = result;
  const [first] = explained;
  const rows = explained.map((row): Passage => {
    const { position, token, norm } = row;
    return {
      id: `explained-${position}`,
      title: `Token ${position}, ${JSON.stringify(token)}`,
      description:
        `The row of layer ${layer} is ${figureOf(norm)} long` +
        (length === null ? "." : ` and was put in ${figureOf(length)} long.`),
      body: said(row),
    };
  });
  return {
    summary: [
      `${verbaliser.name} (${verbaliser.quantization}) puts ${count(explained.length, "row")} of layer ${layer} into words` +
        (first === undefined ? "." : `; to token ${first.position}: ${quoted(first.descriptions)}.`),
      ...(unfilled === undefined ? [] : [`Without a row it says: ${quoted(unfilled)}.`]),
    ],
    cautions: [
      "What a verbaliser says to a row is its answer, not the row's meaning: where it says the like to the same numbers in " +
        "another order, or without a row, it speaks of its prompt.",
      "A verbaliser that was not trained on rows of this model and block says something, too.",
    ],
    parts: [
      ...rows,
      ...(unfilled === undefined
        ? []
        : [
            {
              id: "unfilled",
              title: "Without a row",
              description: "The marker stands in its place, as it is typed.",
              body: html`<dl>${listed("said", unfilled)}</dl>`,
            },
          ]),
    ],
  };
}

function said({ descriptions, shuffled = [] }: ExplainedRow): Html {
  return html`<dl>${listed("said", descriptions)}${listed("to its numbers in another order", shuffled)}</dl>`;
}

function listed(term: string, texts: readonly Description[]): Html[] {
  return texts.map(({ text, ended }) => html`<dt>${term}</dt><dd>${text}${ended ? "" : " …"}</dd>`);
}

function quoted([first]: readonly Description[]): string {
  return first === undefined ? "nothing" : `“${first.text.trim()}${first.ended ? "" : " …"}”`;
}
