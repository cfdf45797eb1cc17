import type { Contrast } from "../contracts/recipe.js";
import { figureOf } from "../findings/numbers.js";
import type { Contrasted } from "./contrast.js";
import { html, sheet } from "./sheet.js";

/** A page about a feature's activations in two groups of texts. */
export function contrastPage(what: string, asked: Contrast, found: Contrasted): string {
  const picked = asked.feature === undefined;
  const rows = [
    ["Mean activation", found.mean],
    ["Share of texts with the feature active", found.active],
  ] as const;
  return sheet(
    what,
    html`<p>Feature ${found.feature}, ${
      picked
        ? "picked because its mean activation in the first group exceeds that in the second by the most"
        : "chosen by an earlier step or the recipe"
    }. AUROC ${figureOf(found.auroc)}.</p>
<div class="scroll"><table>
<thead><tr><th>value</th><th>texts ${asked.texts} of ${asked.step}</th><th>texts ${asked.against}</th></tr></thead>
<tbody>
${rows.map(
  ([name, { texts, against }]) => html`<tr><td>${name}</td><td class="number">${figureOf(texts)}</td>
<td class="number">${figureOf(against)}</td></tr>
`,
)}</tbody>
</table></div>
`,
  );
}
