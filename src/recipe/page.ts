import type { Recipe } from "../contracts/recipe.js";
import { figureOf } from "../findings/numbers.js";
import { type Outcome, rangeText } from "./outcome.js";
import { rangeBar } from "./range-bar.js";
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
  const failed = outcomes.filter(({ held }) => !held);
  const isControl = ({ expected }: Outcome) => expected.control === true;
  return sheet(
    recipe.title,
    html`<ul class="meta"><li>${model}</li><li>${outcomes.length} values, ${outcomes.filter(isControl).length} of them controls</li></ul>
${
  failed.length === 0
    ? html`<p class="verdict">All values are within their expected ranges.</p>`
    : html`<p class="verdict failed">${failed.length} of ${outcomes.length} values are outside their expected ranges.</p>`
}
<section class="lead" aria-label="Claim"><p>${recipe.claim}</p></section>
<aside class="notice" aria-label="Differences from the paper"><strong>Differences from the paper</strong><p>${recipe.differs}</p></aside>
${section(
  "figures",
  "Figures",
  undefined,
  outcomes.filter((one) => !isControl(one)),
)}
${section("controls", "Controls", "What to expect without the effect, or of other explanations.", outcomes.filter(isControl))}
<section class="card" aria-labelledby="steps"><h2 id="steps">Steps</h2>
<ol>
${steps.map(({ what, file }) => html`<li><a href="${encodeURI(file)}">${what}</a></li>\n`)}</ol></section>
<section class="card" aria-labelledby="sources"><h2 id="sources">Sources</h2>
<dl class="facts"><dt>Paper</dt><dd>${recipe.paper.title}, ${recipe.paper.url}</dd><dt>Model</dt><dd>${model}</dd><dt>Data</dt><dd>${recipe.data.what} (${recipe.data.licence})</dd></dl></section>
`,
  );
}

function section(id: string, title: string, about: string | undefined, outcomes: readonly Outcome[]) {
  if (outcomes.length === 0) return "";
  return html`<section class="card" aria-labelledby="${id}"><h2 id="${id}">${title}</h2>
${about !== undefined && html`<p class="soft">${about}</p>`}
<ul class="ranges">
${outcomes.map(item)}</ul></section>`;
}

function item(outcome: Outcome) {
  const { expected, seen, held, source } = outcome;
  return html`<li${!held && html` class="failed"`}><div><p>${expected.what}</p>
<p class="figure"><strong>${figureOf(seen)}</strong> measured, ${rangeText(outcome)} expected: ${held ? "in range" : html`<strong>out of range</strong>`}</p>
<p class="soft">Source of the range: ${source}</p></div>
${rangeBar(outcome)}</li>
`;
}
