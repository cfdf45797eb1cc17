import { errorCodes, studyLimits } from "../../../contracts/studies/index.js";
import { apiEndpoints, openApi } from "../../api/endpoints.js";
import { type Html, html } from "../html.js";
import { page } from "../layout.js";
import type { Visit } from "../visit.js";

/** The API documentation, generated from the OpenAPI document. */
export function docs(visit: Visit): void {
  const { info, components } = openApi(visit.service.origin);
  page(
    visit,
    "API",
    html`<h1>${info.title} ${info.version}</h1><p>${info.description}</p>
<p>Send <code>Authorization: Bearer tpl_…</code> with a token from <a href="/agents">Agent access</a>. Each token may make
${studyLimits.requests} requests in any 60 seconds. <code>RateLimit-Remaining</code> is the number left; with a 429, <code>Retry-After</code>
is the number of seconds to wait. Full description: <a href="/api/v1/openapi.json">openapi.json</a>.</p>
<pre tabindex="0" role="region" aria-label="Example">curl -H "Authorization: Bearer $AGENT_RESEARCH_TOKEN" "${visit.service.origin}/api/v1/studies?q=refusal&amp;limit=5"</pre>
${apiEndpoints.map(
  (operation) => html`<section class="card"><h2 id="${operation.operationId}">${operation.summary}</h2>
<p><code>${operation.at}</code></p><p>${coded(operation.description)}</p>
${
  operation.parameters === undefined || operation.parameters.length === 0
    ? null
    : html`<div class="scroll" role="region" aria-label="Parameters" tabindex="0"><table><thead><tr><th scope="col">Parameter</th><th scope="col">In</th><th scope="col">Description</th><th scope="col">Constraints</th></tr></thead><tbody>${operation.parameters.map(
        ({ name, in: place, description: text, schema }) =>
          html`<tr><td><code>${name}</code></td><td>${place}</td><td>${text}</td><td>${rules(schema)}</td></tr>`,
      )}</tbody></table></div>`
}
<dl class="facts">${Object.entries(operation.answers).map(([status, { description: text }]) => html`<dt>${status}</dt><dd>${coded(text)}</dd>`)}</dl></section>`,
)}
<h2>Bodies</h2>${Object.entries(components.schemas).map(
      ([name, schema]) =>
        html`<details id="schema-${name}"><summary>${name}</summary><pre tabindex="0" role="region" aria-label="${name}">${JSON.stringify(schema, null, 2)}</pre></details>`,
    )}
<h2>Error codes</h2><div class="scroll" role="region" aria-label="Error codes" tabindex="0"><table><thead><tr><th scope="col">Status</th><th scope="col">Code</th></tr></thead>
<tbody>${Object.entries(errorCodes).map(([code, status]) => html`<tr><td>${status}</td><td><code>${code}</code></td></tr>`)}</tbody></table></div>`,
  );
}

/** Text with `code` between backticks as markup. */
function coded(text: string): Html {
  return html`${text.split("`").map((part, place) => (place % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}

function rules(schema: unknown): Html {
  const { pattern, description, ...rest } = schema as Record<string, unknown>;
  const shown = pattern === undefined ? rest : { ...rest, format: description };
  return html`${Object.entries(shown)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(", ")}`;
}
