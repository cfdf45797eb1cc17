import type { Recipe } from "../contracts/recipe.js";
import { figureOf } from "../findings/numbers.js";
import { type Outcome, rangeText } from "./outcome.js";
import { html, sheet } from "./sheet.js";

/** A step's report, next to the page. */
export interface StepLink {
  what: string;
  file: string;
}

/** A page without scripts that compares expected and measured values and links to the steps' reports. */
export function reproductionPage(
  recipe: Recipe,
  model: string,
  outcomes: readonly Outcome[],
  steps: readonly StepLink[],
): string {
  const failed = outcomes.filter(({ held }) => !held).length;
  return sheet(
    recipe.title,
    html`<p>${failed === 0 ? "All values are within their expected ranges." : `${failed} of ${outcomes.length} values are outside their expected ranges.`}</p>
<dl>
<dt>Paper</dt><dd>${recipe.paper.title}, ${recipe.paper.url}</dd>
<dt>Claim</dt><dd>${recipe.claim}</dd>
<dt>Differences from the paper</dt><dd>${recipe.differs}</dd>
<dt>Model</dt><dd>${model}</dd>
<dt>Data</dt><dd>${recipe.data.what} (${recipe.data.licence})</dd>
</dl>
<table>
<thead><tr><th>Value</th><th>Expected</th><th>Measured</th><th>In range</th><th>Source of the range</th></tr></thead>
<tbody>
${outcomes.map(
  (outcome) => html`<tr>
<td>${outcome.expected.control === true ? "Control: " : ""}${outcome.expected.what}</td>
<td class="number">${rangeText(outcome)}</td>
<td class="number">${figureOf(outcome.seen)}</td>
<td>${outcome.held ? "yes" : html`<span class="failed">no</span>`}</td>
<td>${outcome.source}</td>
</tr>
`,
)}</tbody>
</table>
<h2>Steps</h2>
<ol>
${steps.map(({ what, file }) => html`<li><a href="${encodeURI(file)}">${what}</a></li>\n`)}</ol>
`,
  );
}
