import type { Recipe } from "../contracts/recipe.js";
import { figureOf } from "../findings/numbers.js";
import { type Outcome, rangeText } from "./outcome.js";
import { html, sheet } from "./sheet.js";

/** A step's own report, beside the page. */
export interface StepLink {
  what: string;
  file: string;
}

/** What was expected and seen, as one page that links the steps' reports; it holds no script. */
export function reproductionPage(
  recipe: Recipe,
  model: string,
  outcomes: readonly Outcome[],
  steps: readonly StepLink[],
): string {
  const failed = outcomes.filter(({ held }) => !held).length;
  return sheet(
    recipe.title,
    html`<p>${failed === 0 ? "Every figure held." : `${failed} of ${outcomes.length} figures did not hold.`}</p>
<dl>
<dt>Paper</dt><dd>${recipe.paper.title}, ${recipe.paper.url}</dd>
<dt>Claim</dt><dd>${recipe.claim}</dd>
<dt>What differs here</dt><dd>${recipe.differs}</dd>
<dt>Model</dt><dd>${model}</dd>
<dt>Data</dt><dd>${recipe.data.what} (${recipe.data.licence})</dd>
</dl>
<table>
<thead><tr><th>Figure</th><th>Expected</th><th>Seen</th><th>Held</th><th>Where the range comes from</th></tr></thead>
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
