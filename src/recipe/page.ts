import type { Recipe } from "../contracts/recipe.js";
import type { Outcome } from "./outcome.js";
import { type Ranged, rangesSection, verdict } from "./ranges.js";
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
${verdict(
  failed.length === 0,
  failed.length === 0
    ? "All values are within their expected ranges."
    : `${failed.length} of ${outcomes.length} values are outside their expected ranges.`,
)}
<section class="lead" aria-label="Claim"><p>${recipe.claim}</p></section>
<aside class="notice" aria-label="Differences from the paper"><strong>Differences from the paper</strong><p>${recipe.differs}</p></aside>
${rangesSection("figures", "Figures", undefined, outcomes.filter((one) => !isControl(one)).map(ranged))}
${rangesSection("controls", "Controls", "What to expect without the effect, or of other explanations.", outcomes.filter(isControl).map(ranged))}
<section class="card" aria-labelledby="steps"><h2 id="steps">Steps</h2>
<ol>
${steps.map(({ what, file }) => html`<li><a href="${encodeURI(file)}">${what}</a></li>\n`)}</ol></section>
<section class="card" aria-labelledby="sources"><h2 id="sources">Sources</h2>
<dl class="facts"><dt>Paper</dt><dd>${recipe.paper.title}, ${recipe.paper.url}</dd><dt>Model</dt><dd>${model}</dd><dt>Data</dt><dd>${recipe.data.what} (${recipe.data.licence})</dd></dl></section>
`,
  );
}

function ranged({ expected, low, high, seen, held, source }: Outcome): Ranged {
  return {
    what: expected.what,
    how: "measured",
    low,
    high,
    seen,
    held,
    more: [`Source of the range: ${source}`],
  };
}
