import { createHash } from "node:crypto";
import { version } from "../contracts/version.js";
import { withAxes } from "../findings/axes.js";
import type { Figure } from "../findings/figure.js";
import { findingsOf, wordsOf } from "../operations/figures.js";
import { type ReportedJob, withoutFolders } from "./job.js";
import { chartLibraries, pageScript } from "./library.js";
import { glimpse, Html, html, scriptJson } from "./markup.js";
import type { Passage } from "./parts.js";
import { provenanceBox } from "./provenance.js";
import { style } from "./style.js";

/**
 * One self-contained HTML file: figures, data, script and style. Its policy forbids requests and other scripts. Texts from
 * a job are escaped, and their hidden characters made visible.
 */
export async function renderReport(given: ReportedJob): Promise<string> {
  const job = withoutFolders(given);
  const findings = findingsOf(job);
  const figures = findings.parts.filter(isFigure);
  const named = heading(job);
  const scripts = [...(await chartLibraries()), await pageScript()];
  const data = {
    name: `tapline-${job.operation}${job.id === undefined ? "" : `-${job.id.slice(0, 8)}`}`,
    figures: figures.map(withAxes).map(({ id, title, chart, axes, columns, rows, details }) => ({
      ...{ id, title, chart, axes, columns, rows, details },
    })),
    job,
  };
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy(scripts)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="tapline ${version}">
<meta name="referrer" content="no-referrer">
<title>${named.title}</title>
<style>${new Html(style)}</style>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header class="top"><div><span class="brand">tap<span>line</span></span> <span class="badge">${job.operation}</span>
<div class="tools" role="group" aria-label="This page"><button type="button" id="theme" class="quiet">Theme: system</button> <button type="button" id="print" class="quiet">Print</button> <button type="button" id="save-job" class="quiet">Job as JSON</button></div></div></header>
<main id="content" tabindex="-1">
<h1>${named.kind} <bdi>${named.subject}</bdi></h1>
<ul class="meta">${named.facts.map((fact) => html`<li>${fact}</li>`)}</ul>
<section class="lead" aria-label="Result">${findings.summary.map((sentence) => html`<p>${sentence}</p>`)}</section>
<aside class="notice" aria-label="What this does not show"><strong>What this does not show</strong>${findings.cautions.map((sentence) => html`<p>${sentence}</p>`)}${"note" in job.result && html`<p>${job.result.note}</p>`}</aside>
<p class="notice unscripted">Figures need JavaScript. The tables below have their data.</p>
${findings.parts.map((part) => (isFigure(part) ? figureSection(part) : passageSection(part)))}
${provenanceBox(job.result.provenance)}
${configuration(job)}
</main>
<footer><p>Made by tapline ${version}. This file is self-contained and makes no network requests. Charts: Observable Plot and d3 (ISC).</p></footer>
<script type="application/json" id="data">${scriptJson(data)}</script>
${scripts.map((script) => html`<script>${new Html(script)}</script>\n`)}</body>
</html>
`.markup;
}

function isFigure(part: Figure | Passage): part is Figure {
  return "chart" in part;
}

function policy(scripts: readonly string[]): string {
  const hashes = scripts.map((script) => `'sha256-${createHash("sha256").update(script).digest("base64")}'`);
  return (
    `default-src 'none'; script-src ${hashes.join(" ")}; style-src 'unsafe-inline'; img-src data: blob:; ` +
    "base-uri 'none'; form-action 'none'"
  );
}

function heading({ operation, result, config, id, created, started, ended }: ReportedJob) {
  const { provenance } = result;
  const [kind, subject] = wordsOf(operation).heading(result as never, (config ?? {}) as never);
  const shown = glimpse(subject, 120);
  return {
    kind,
    subject: shown,
    title: `${operation}: ${shown} · tapline`,
    facts: [
      `${provenance.requested_model} (${provenance.architecture}, ${provenance.quantization})`,
      `layers ${provenance.layers.join(", ")}`,
      ...(created === undefined ? [] : [`submitted ${new Date(created * 1000).toISOString().slice(0, 19)}Z`]),
      ...(typeof started === "number" && typeof ended === "number"
        ? [`${(ended - started).toFixed(1)} s`]
        : []),
      ...(id === undefined ? [] : [html`job <code>${id}</code>`]),
    ],
  };
}

function figureSection({ id, title, description, notes = [], table }: Figure): Html {
  const buttons = (["SVG", "PNG", "CSV"] as const).map(
    (kind) =>
      html`<button type="button" class="quiet" data-save="${kind.toLowerCase()}" aria-label="Save “${title}” as ${kind}">${kind}</button> `,
  );
  return html`<figure id="${id}" aria-labelledby="${id}-title">
<figcaption><h2 id="${id}-title">${title}</h2><p id="${id}-description">${description}</p></figcaption>
<div class="tools save" role="group" aria-label="Save “${title}”">${buttons}</div>
<div class="chart" tabindex="0" role="group" aria-labelledby="${id}-title" aria-describedby="${id}-description ${id}-keys"></div>
<p class="visually-hidden" id="${id}-keys">Left and right arrow keys step through the values. The table below has all values.</p>
<p class="detail" role="status"></p>
${notes.map((note) => html`<p class="soft">${note}</p>`)}
<details><summary>Data of “${title}” as a table</summary><div class="scroll" tabindex="0" role="region" aria-label="Data of “${title}”"><table>
<thead><tr>${table.head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>${table.rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table></div></details>
</figure>
`;
}

function passageSection({ id, title, description, body }: Passage): Html {
  return html`<section id="${id}" aria-labelledby="${id}-title" class="passage"><h2 id="${id}-title">${title}</h2><p>${description}</p>${body}</section>
`;
}

function configuration({ config, result }: ReportedJob): Html {
  const body = config === undefined ? undefined : JSON.stringify(config, null, 2);
  const artifacts = result.artifacts.length > 0 ? result.artifacts.join(", ") : "none";
  return html`<section class="card" aria-labelledby="configuration"><h2 id="configuration">Configuration</h2>
<p class="soft">Artifacts: ${artifacts}. ${body === undefined ? "The result came without its configuration." : "Resubmit this configuration (with the full model path) to reproduce the job."}</p>
${body !== undefined && html`<details><summary>As submitted, with defaults</summary><pre tabindex="0">${body}</pre></details>`}</section>`;
}
