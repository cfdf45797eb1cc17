import { figureOf } from "../findings/numbers.js";
import { type Compared, enough, outcomeSentences, type Repeated } from "../study/index.js";
import type { StepLink } from "./page.js";
import { type Ranged, rangesSection, verdict } from "./ranges.js";
import { html, sheet } from "./sheet.js";

/** A page that compares a published study's figures with those of its repeated requests, and links to their reports. */
export function repetitionPage(
  { content, address, outcome, compared, tolerances, left }: Repeated,
  models: readonly string[],
  runs: readonly StepLink[],
): string {
  const title = content.title.replace(/\s+/g, " ");
  return sheet(
    title,
    html`<ul class="meta"><li>${models.join(", ")}</li><li>${compared.length} figures</li></ul>
${verdict(outcome === "held", outcomeSentences[outcome])}
<aside class="notice" aria-label="What this does not show"><strong>What this does not show</strong><p>Repeating the requests shows that the values are reproducible, not that the original's interpretation is right.</p></aside>
${rangesSection(
  "figures",
  "Figures",
  `The share of each figure's values within the tolerance: ${tolerances.share} for probabilities and shares, ${tolerances.relative * 100} % for everything else.`,
  compared.map(ranged),
)}
${
  left.length > 0 &&
  html`<section class="card" aria-labelledby="skipped"><h2 id="skipped">Skipped</h2><ul>${left.map((line) => html`<li>${line}</li>`)}</ul></section>`
}
<section class="card" aria-labelledby="requests"><h2 id="requests">Repeated requests</h2>
<ol>
${runs.map(({ what, file }) => html`<li><a href="${encodeURI(file)}">${what}</a></li>\n`)}</ol></section>
<section class="card" aria-labelledby="sources"><h2 id="sources">Sources</h2>
<dl class="facts"><dt>Study</dt><dd>${address}</dd><dt>Model</dt><dd>${models.join(", ")}</dd></dl></section>
`,
  );
}

function ranged({ title, values, within, missing, held, worst }: Compared): Ranged {
  const share = values === 0 ? 0 : within / values;
  return {
    ...{
      what: title,
      how: "of the values within tolerance",
      low: enough,
      high: undefined,
      seen: share,
      held,
    },
    words: ["matches", "differs"],
    more: [
      `${within} of ${values} values`,
      ...(missing > 0 ? [`${missing} values in only one of the results`] : []),
      ...(worst === null
        ? []
        : [
            `Largest difference: ${worst.what}, published ${figureOf(worst.before)}, measured ${figureOf(worst.after)}`,
          ]),
    ],
  };
}
