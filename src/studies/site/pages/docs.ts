import { errorCodes, studyLimits } from "../../../contracts/studies/index.js";
import { apiEndpoints, openApi } from "../../api/endpoints.js";
import { type Html, html } from "../html.js";
import { page } from "../layout.js";
import type { Visit } from "../visit.js";

/** The API's documentation, made from the same description that clients download. */
export function docs(visit: Visit): void {
  const { info, components } = openApi(visit.service.origin);
  page(
    visit,
    "API",
    html`<h1>${info.title} ${info.version}</h1><p>${info.description}</p>
<p>Send <code>Authorization: Bearer tpl_…</code> with a token from <a href="/agents">Agent access</a>. Each token has
${studyLimits.requests} requests in any 60 seconds; <code>RateLimit-Remaining</code> says how many are left, and with a 429
<code>Retry-After</code> says how long to wait. The whole description: <a href="/api/v1/openapi.json">openapi.json</a>.</p>
<pre tabindex="0" role="region" aria-label="Example">curl -H "Authorization: Bearer $AGENT_RESEARCH_TOKEN" "${visit.service.origin}/api/v1/studies?q=refusal&amp;limit=5"</pre>
${apiEndpoints.map(
  (operation) => html`<section class="card"><h2 id="${operation.operationId}">${operation.summary}</h2>
<p><code>${operation.at}</code></p><p>${coded(operation.description)}</p>
${
  operation.parameters === undefined || operation.parameters.length === 0
    ? null
    : html`<div class="scroll" role="region" aria-label="Parameters" tabindex="0"><table><thead><tr><th scope="col">Parameter</th><th scope="col">In</th><th scope="col">What</th><th scope="col">Rule</th></tr></thead><tbody>${operation.parameters.map(
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

/** Markup of a description's code between backticks. */
function coded(text: string): Html {
  return html`${text.split("`").map((part, place) => (place % 2 === 1 ? html`<code>${part}</code>` : part))}`;
}

function rules(schema: unknown): Html {
  const { pattern, description, ...rest } = schema as Record<string, unknown>;
  const told = pattern === undefined ? rest : { ...rest, format: description };
  return html`${Object.entries(told)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(", ")}`;
}
