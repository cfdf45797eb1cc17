import { allFigures } from "../card/all-figures.js";
import type { Figure } from "../findings/figure.js";
import { drawFigure, drawingStyle, type Html, html, sheet } from "../report/index.js";
import { picturesOf } from "./pictures.js";
import type { Quants } from "./result.js";
import { cautionsOf, columnsOf, findingOf, rowsOf, storageText } from "./words.js";

const width = 900;

/** A result as one self-contained page without scripts. */
export function quantsPage(quants: Quants): string {
  const { reference, machine, settings, created } = quants;
  return sheet({
    title: `Forms of ${reference.file} · tapline`,
    heading: html`What quantization does to <bdi>${reference.file}</bdi>`,
    badge: "quants",
    style: `${drawingStyle}#table th { white-space: nowrap; }`,
    content: html`<ul class="meta"><li>${reference.architecture}, ${reference.quantization ?? "unknown type"}</li><li>${new Date(created * 1000).toISOString().slice(0, 10)}</li><li>${settings.texts} texts, ${settings.tokens} predictions</li></ul>
<section class="lead">${findingOf(quants).map((sentence) => html`<p>${sentence}</p>`)}</section>
${table(quants)}
${picturesOf(quants).map(section)}
<section class="card"><h2>How it was measured</h2>
${cautionsOf(quants).map((sentence) => html`<p>${sentence}</p>`)}
<dl>${columnsOf(quants).map(({ head, what }) => html`<dt>${head}</dt><dd>${what}</dd>`)}</dl>
<p>${machine.processor}, ${machine.threads} threads, llama.cpp ${machine.llama_cpp} for ${machine.backend}. Speed: ${settings.rounds} rounds of ${settings.prompt_tokens} prompt tokens and ${settings.generated_tokens} generated ones.</p>
<details><summary>Files, settings and hashes</summary><pre tabindex="0">${JSON.stringify({ files: rowsOf(quants).map(({ name, file, fingerprint, imatrix, types }) => ({ name, file, fingerprint, imatrix, types })), settings, sha256: quants.sha256 }, null, 2)}</pre></details></section>
`,
  });
}

function section(figure: Figure): Html {
  const { head, rows } = figure.table;
  return html`<figure id="${figure.id}"><figcaption><h2>${figure.title}</h2><p>${figure.description}</p></figcaption>
<div class="drawing">${drawFigure(figure, width)}</div>
${(figure.notes ?? []).map((note) => html`<p class="soft">${note}</p>`)}
<details><summary>Table</summary><div class="scroll" tabindex="0" role="region" aria-label="${figure.title}"><table>
<thead><tr>${head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>${rows.map((cells) => html`<tr>${cells.map((text) => html`<td class="number">${text}</td>`)}</tr>\n`)}</tbody></table></div></details></figure>
`;
}

/** A line per figure and a column per form, because there are more figures than forms. */
function table(quants: Quants): Html {
  const rows = rowsOf(quants);
  const figures = columnsOf(quants).map(({ head, what, of }) => ({
    ...{ name: head, what },
    cells: rows.map((row) => {
      const found = of(row);
      return found && { value: found.value, below: found.interval === undefined ? [] : [found.interval] };
    }),
  }));
  const types = { name: "Types of weights", cells: rows.map((row) => ({ text: storageText(row) })) };
  return allFigures({
    ...{ title: "All forms", columns: rows.map(({ name }) => name), rows: [...figures, types] },
  });
}
