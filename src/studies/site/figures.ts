import type { TSchema } from "typebox";
import { type Compiled, compile } from "../../contracts/compile.js";
import type { Operation, Result } from "../../contracts/index.js";
import { blockLabels, ResultBlocks } from "../../contracts/studies/index.js";
import type { Figure } from "../../findings/figure.js";
import { drawFigure, findingsOf } from "../../report/index.js";
import { type Html, html } from "./html.js";
import type { Outline } from "./outline.js";
import type { Pace } from "./pace.js";
import type { Shown } from "./reveal.js";

/** Drawing widths in pixels, for the page column and for phones. The stylesheet shows one of them. */
const widths = { wide: 700, narrow: 272 } as const;
/** Most rows and cells of a figure's table. */
const mostRows = 400;
const mostCells = 8000;

const validators = new Map<string, Compiled>();

/**
 * The figures of a fenced block `tapline-result`, each with its data as a table.
 * @returns null for other or invalid blocks, which are shown as text
 */
export async function resultFigures(
  label: string,
  text: string,
  shown: Shown,
  pace: Pace,
  outline?: Outline,
): Promise<Html | null> {
  if (label !== blockLabels.result) return null;
  const block = readResult(text);
  if (block === null) return null;
  try {
    await pace.turn();
    const { summary, parts } = findingsOf({ operation: block.operation, result: block.result });
    const figures: Html[] = [];
    for (const part of parts) {
      await pace.turn();
      if ("chart" in part) figures.push(await figureView(part, shown, pace, outline));
    }
    const left = block.left_out === undefined ? null : html`<p class="hint">${shown(block.left_out)}</p>`;
    return html`<div class="result">${summary.map((sentence) => html`<p dir="auto">${shown(sentence)}</p>`)}${left}${figures}</div>`;
  } catch (error) {
    // Inconsistent results, such as fewer tokens than norms, are detected only while drawing.
    if (error instanceof TypeError || error instanceof RangeError) return null;
    throw error;
  }
}

interface ResultOfJob {
  operation: Operation;
  result: Result;
  left_out?: string;
}

function readResult(text: string): ResultOfJob | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  const operation = String((value as { operation?: unknown } | null)?.operation);
  if (!Object.hasOwn(ResultBlocks, operation)) return null;
  let validator = validators.get(operation);
  if (validator === undefined) {
    const schema: TSchema = ResultBlocks[operation as Operation];
    validator = compile(schema);
    validators.set(operation, validator);
  }
  // Blocks omit provenance and artifacts, which figures do not need.
  return validator.Check(value) ? (value as ResultOfJob) : null;
}

async function figureView(figure: Figure, shown: Shown, pace: Pace, outline?: Outline): Promise<Html> {
  const { title, description, notes = [], table } = figure;
  const drawings: Html[] = [];
  for (const [name, width] of Object.entries(widths)) {
    const drawn = drawFigure(figure, width);
    await pace.turn();
    if (drawn.length > 0) drawings.push(html`<div class="drawing ${name}">${drawn}</div>`);
  }
  const rows = table.rows.slice(
    0,
    Math.min(mostRows, Math.floor(mostCells / Math.max(1, table.head.length))),
  );
  const cells: Html[] = [];
  for (const row of rows) {
    await pace.turn();
    cells.push(html`<tr>${row.map((cell) => html`<td>${shown(cell)}</td>`)}</tr>`);
  }
  const more = table.rows.length - rows.length;
  const id = outline?.figure(title, drawings);
  return html`<figure${id === undefined ? null : html` id="${id}"`}><figcaption><strong>${shown(title)}</strong> ${shown(description)}</figcaption>${drawings}${
    drawings.length === 0 ? html`<p class="hint">Too many values to plot here.</p>` : null
  }${notes.map((note) => html`<p class="hint">${shown(note)}</p>`)}
<details><summary>Data of “${shown(title)}” as a table</summary><div class="scroll" role="group" aria-label="Data" tabindex="0"><table><thead><tr>${table.head.slice(0, mostCells).map((name) => html`<th scope="col">${shown(name)}</th>`)}</tr></thead>
<tbody>${cells}</tbody></table></div>${more > 0 ? html`<p class="hint">${more} more rows are in the package download.</p>` : null}</details></figure>`;
}
