import { figureOf } from "../findings/numbers.js";
import type { LiveStep } from "./live.js";
import { type AnswerToken, type Exchange, exchangesOf } from "./live-answer.js";
import { html, sheet } from "./sheet.js";

/** A page with a live step's questions and answers. Each token is shaded by its score on the first probe. */
export function livePage(what: string, model: string, live: LiveStep, result: unknown): string {
  const answers =
    "post" in live ? exchangesOf(live, (result as { responses: unknown[] }).responses).map(shown) : [];
  return sheet(
    what,
    html`<p>${"post" in live ? `${live.post} of ${model}` : `Made on ${model}`}</p>
${
  answers.length > 0 &&
  html`<div class="scroll"><table>
<thead><tr><th>Question</th><th>Answer</th><th>Finish reason</th><th>Effect of the edits</th></tr></thead>
<tbody>
${answers}</tbody>
</table></div>
`
}<details><summary>The request</summary><pre>${JSON.stringify(live, null, 1)}</pre></details>
<details><summary>The answer</summary><pre>${JSON.stringify(result, null, 1)}</pre></details>
`,
  );
}

function shown({ asked, answer, finish, tokens, interventions }: Exchange) {
  const scored = tokens.filter(({ probes }) => probes !== undefined);
  return html`<tr>
<td>${asked}</td>
<td>${scored.length === 0 ? answer : scored.map(tokenSpan)}</td>
<td>${finish}</td>
<td>${interventions.map((edit) => html`${editText(edit)}<br>`)}</td>
</tr>
`;
}

/** The score is also written after the token, for readers who cannot see the colors. */
function tokenSpan({ token = "", probes = {} }: AnswerToken) {
  const score = Object.values(probes)[0];
  if (score === undefined || score === null) return html`${token}`;
  return html`<span class="token" style="--score: ${(0.7 * score).toFixed(2)}">${token}<sub>${score.toFixed(2)}</sub></span>`;
}

function editText({
  kind,
  layer,
  rows,
  mean_change_length: change,
  mean_row_length: row,
}: Exchange["interventions"][number]) {
  const lengths =
    typeof change === "number" && typeof row === "number"
      ? `, mean change ${figureOf(change)} of norm ${figureOf(row)}`
      : "";
  return `${String(kind)} at block ${String(layer)}: ${String(rows)} positions${lengths}`;
}
