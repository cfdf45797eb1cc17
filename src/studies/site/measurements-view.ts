import { percent } from "../../findings/numbers.js";
import type { Measured } from "../../findings/uncertainty.js";
import { bytesText, cut, listed } from "../../text/words.js";
import { type Independent, mostCompared } from "../store/independent-forms.js";
import type { MeasuredForm } from "../store/measurements.js";
import { type Compared, compareMeasurements, nats } from "../text/compare-measurements.js";
import { studyPath } from "./address.js";
import { type Html, html } from "./html.js";
import { authorLink, signature } from "./layout.js";
import { revealed } from "./reveal.js";

/** Characters of a name in a table. */
const mostName = 120;

/** Enough of a hash to distinguish files on one page. */
export const shortHash = (hash: string): Html => html`<code title="${hash}">${hash.slice(0, 12)}</code>`;

export const nameOf = (name: string): Html => html`<bdi>${revealed(cut(name, mostName))}</bdi>`;

export const bitsText = (bits: number): string => bits.toFixed(2);

/** @param more how it was measured */
function figureCell(
  figure: Measured | null,
  text: (value: number) => string,
  more: Html | null = null,
): Html {
  if (figure === null) return html`<td>–</td>`;
  const shown = (value: number) => html`<span class="whole">${text(value)}</span>`;
  const { value, low, high } = figure;
  return html`<td>${shown(value)}<br><span class="hint">${shown(low)} to ${shown(high)}${more}</span></td>`;
}

/** Measurements, one row each. */
export function measurementsTable(rows: readonly MeasuredForm[]): Html {
  const heads = [
    "Form",
    "Measured by",
    "Size",
    "Bits per weight",
    "KL",
    "Same top token",
    "Drift",
    "Features surviving",
  ];
  return html`<div class="scroll" role="group" aria-label="Measurements" tabindex="0"><table class="measured wide"><thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead>
<tbody>${rows.map(measurementRow)}</tbody></table></div>
<p class="hint">Small figures are 95% intervals over the texts. KL: divergence of the predictions from the model's, in nats per token. Same top
token: share of predictions with the same most probable token. Drift: relative difference of block outputs at the last layer measured.
Features surviving: share of a dictionary's features that are active on at least half of the same tokens.</p>`;
}

function measurementRow(row: MeasuredForm): Html {
  const { drift, survival } = row;
  const file = row.name === row.file ? null : html`${nameOf(row.file)} `;
  return html`<tr><th scope="row">${nameOf(row.name)}<br><span class="hint">${file}${shortHash(row.form)}</span></th>
<td>${authorLink(row)}<br><a href="${studyPath(row.study)}"><bdi>${revealed(row.title)}</bdi></a></td>
<td class="whole">${bytesText(row.bytes)}</td><td>${bitsText(row.bits)}</td>${figureCell(row.divergence, nats)}${figureCell(row.agreement, percent)}${figureCell(
    drift,
    percent,
    drift && html`, layer ${drift.layer}`,
  )}${figureCell(survival, percent, survival && html`, ${nameOf(survival.dictionary)} at layer ${survival.layer}`)}</tr>`;
}

/** Measurements of one form by different authors, next to each other. */
export function comparisonView({ measured, more }: Independent): Html {
  const { compared, left } = compareMeasurements(measured);
  const names = measured.map((one) => signature(one.author, one.handle));
  const first = measured[0] as MeasuredForm;
  return html`<h3>${nameOf(first.name)} ${shortHash(first.form)}</h3>
<p>${verdict(measured, names, compared)}</p>
<div class="scroll" role="group" aria-label="Comparison" tabindex="0"><table class="measured"><thead><tr><th scope="col">Figure</th>${measured.map(
    (one) =>
      html`<th scope="col"><a href="${studyPath(one.study)}">${signature(one.author, one.handle)}</a></th>`,
  )}<th scope="col">Difference</th></tr></thead>
<tbody>${compared.map(
    (one) =>
      html`<tr><th scope="row">${one.name}</th>${one.figures.map((figure) => figureCell(figure, one.text))}<td class="detail">${difference(one, names)}</td></tr>`,
  )}</tbody></table></div>${left.map((sentence) => html`<p class="hint">${sentence}</p>`)}${
    more ? html`<p class="hint">Only the ${mostCompared} most recent authors are compared.</p>` : null
  }`;
}

/** Who measured it, and whether their intervals overlap. */
function verdict(
  measured: readonly MeasuredForm[],
  names: readonly Html[],
  compared: readonly Compared[],
): Html {
  const same = new Set(measured.map(({ texts }) => texts)).size === 1;
  const apart = compared.filter((one) => one.apart !== null).map(({ what }) => what);
  const intervals =
    apart.length === 0
      ? "Their intervals overlap for every figure."
      : `${names.length === 2 ? "Their intervals do not overlap" : "Not all of their intervals overlap"} for ${listed(apart)}.`;
  const reason = compared.every((one) => one.difference === null)
    ? "Every value is the same."
    : same
      ? "Because the texts are the same, differences come from the machines or the software."
      : "The different texts may explain differences.";
  return html`${sequence(names)} measured this form independently, on ${same ? "the same" : "different"} texts. ${intervals} ${reason}`;
}

function difference({ difference: size, apart }: Compared, names: readonly Html[]): Html {
  const many = names.length > 2;
  const start = size === null ? "They found the same value" : `They differ by ${many ? "up to " : ""}${size}`;
  if (apart === null) return html`${start}, and ${many ? "all" : "the"} intervals overlap.`;
  const whose = many ? html` of ${sequence(apart.map((at) => names[at] as Html))}` : null;
  return html`${start}, ${size === null ? "but" : "and"} the intervals${whose} do not overlap.`;
}

/** `A, B and C`. */
function sequence(names: readonly Html[]): Html {
  return html`${names.map((name, at) => html`${at === 0 ? null : at === names.length - 1 ? " and " : ", "}${name}`)}`;
}
