import { bytesText } from "../../../text/words.js";
import { independentForms } from "../../store/independent-forms.js";
import { findModel, listForms, listModels, type ModelRow } from "../../store/measurements.js";
import { modelPath } from "../address.js";
import { type Html, html } from "../html.js";
import { counted, page, when } from "../layout.js";
import { bitsText, comparisonView, measurementsTable, nameOf, shortHash } from "../measurements-view.js";
import { Pace } from "../pace.js";
import { SiteError, type Visit } from "../visit.js";
import { pageLinks, pageOf } from "./feed.js";

const labels = { previous: "← Previous", next: "Next →" };

/** Models whose forms were measured. */
export async function models(visit: Visit): Promise<void> {
  const { number, offset, size } = pageOf(visit);
  const { rows, total } = await listModels(visit.service.store, size, offset);
  page(
    visit,
    "Models",
    html`<h1>Models</h1>
<p class="lead">What quantization changes in a model, as measured by published studies of <code>tapline quants</code>.</p>
${rows.length === 0 ? html`<p>${total === 0 ? "No models have been measured yet." : "No more models."}</p>` : null}
<ol class="feed">${rows.map(
      (row) => html`<li><h2 dir="auto"><a href="${modelPath(row.model)}">${nameOf(row.file)}</a></h2>
<ul class="meta"><li>${shortHash(row.model)}</li>${countsOf(row)}</ul></li>`,
    )}</ol>
${pageLinks({ path: "/models", query: {}, number, total, labels })}`,
  );
}

/** One model: measurements of its forms, and whether independent ones agree. */
export async function model(visit: Visit, hash: string): Promise<void> {
  const { store } = visit.service;
  const pace = new Pace();
  const found = await findModel(store, hash);
  if (found === undefined) throw new SiteError(404, "No published study measures forms of this model.");
  const { number, offset, size } = pageOf(visit);
  await pace.turn();
  const { rows, total } = await listForms(store, hash, size, offset);
  await pace.turn();
  const independent = await independentForms(store, hash, [...new Set(rows.map(({ form }) => form))]);
  page(
    visit,
    `Forms of ${found.file}`,
    html`<h1>Forms of ${nameOf(found.file)}</h1>
<ul class="meta"><li>${bytesText(found.bytes)}</li><li>${bitsText(found.bits)} bits per weight</li>${countsOf(found)}</ul>
<p class="hint">Hash of the model's file: <code>${hash}</code></p>
${rows.length === 0 ? html`<p>No more measurements.</p>` : measurementsTable(rows)}
${pageLinks({ path: modelPath(hash), query: {}, number, total, labels })}${
  independent.length === 0
    ? null
    : html`<h2 id="independent">Independent measurements</h2>
<p class="hint">The newest measurement of each author. Overlapping intervals do not show that figures agree, only that these texts do not tell them
apart.</p>
${independent.map(comparisonView)}`
}`,
  );
}

function countsOf({ forms, studies, authors, newest }: ModelRow): Html {
  return html`<li>${counted(forms, "form")}</li><li>${counted(studies, "study", "studies")}</li><li>${counted(authors, "author")}</li><li>latest ${when(newest)}</li>`;
}
