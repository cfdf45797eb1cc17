import { type Html, html } from "../report/index.js";

/** A table of all figures of a page, which scrolls sideways where it is too wide. */
export interface AllFigures {
  title: string;
  /** Over the names of the rows. */
  corner?: string;
  columns: readonly string[];
  rows: readonly { name: string; what?: string; cells: readonly FigureCell[] }[];
}

/** A figure with smaller lines below it; text that is no figure; or nothing, as a dash. */
export type FigureCell = { value: string; below?: readonly string[] } | { text: string } | undefined;

export function allFigures({ title, corner, columns, rows }: AllFigures): Html {
  const first = corner === undefined ? html`<td></td>` : html`<th scope="col">${corner}</th>`;
  const heads = columns.map((name) => html`<th scope="col">${name}</th>`);
  const body = rows.map(({ name, what, cells }) => {
    const head =
      what === undefined
        ? html`<th scope="row">${name}</th>`
        : html`<th scope="row" title="${what}">${name}</th>`;
    return html`<tr>${head}${cells.map(cellOf)}</tr>\n`;
  });
  return html`<figure id="table"><figcaption><h2>${title}</h2></figcaption><div class="scroll" tabindex="0" role="region" aria-label="${title}"><table>
<thead><tr>${first}${heads}</tr></thead>
<tbody>${body}</tbody></table></div></figure>`;
}

function cellOf(cell: FigureCell): Html {
  if (cell === undefined) return html`<td class="number">–</td>`;
  if ("text" in cell) return html`<td class="soft">${cell.text}</td>`;
  const below = (cell.below ?? []).map((line) => html`<br><span class="soft">${line}</span>`);
  return html`<td class="number">${cell.value}${below}</td>`;
}
