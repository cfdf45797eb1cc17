import type { Provenance } from "../contracts/index.js";
import { figureOf } from "../findings/numbers.js";
import { type Html, html, type Value } from "./markup.js";

/** All fields of the provenance of a result. */
export function provenanceBox(provenance: Provenance): Html {
  const { resolved_model: resolved, versions, seconds, weights, ...rest } = provenance;
  const facts: [string, Value][] = [
    ["requested model", rest.requested_model],
    ["requested revision", rest.requested_revision ?? "none"],
    ["loaded file", html`<code>${resolved.path}</code>`],
    ["repository", resolved.repository ?? "none: a local file"],
    ["commit", resolved.commit ?? "none"],
    ["architecture", `${rest.architecture}, ${rest.n_layer} layers, width ${rest.n_embd}`],
    ["quantization", rest.quantization],
    [
      "weights",
      weights.map(
        ({ name, bytes, modified_ns }) =>
          html`<div><code>${name}</code>, ${bytes.toLocaleString("en")} bytes, modified ${timeOf(modified_ns)} (${modified_ns} ns)</div>`,
      ),
    ],
    ["hook", rest.hook],
    ["layers", rest.layers.join(", ")],
    ["input", rest.input_mode],
    ["seed", rest.seed],
    ["versions", Object.entries(versions).map(([name, value]) => html`<div>${name} ${value}</div>`)],
    ["device", rest.device],
    [
      "seconds",
      Object.entries(seconds)
        .map(([stage, value]) => `${stage} ${figureOf(value)}`)
        .join(", "),
    ],
    ["configuration", html`SHA-256 <code>${rest.config_sha256}</code>`],
  ];
  return html`<section class="card" aria-labelledby="provenance"><h2 id="provenance">Provenance</h2>
<p class="soft">The size and time of a weight file are not a checksum. On the same machine, the same configuration and seed give the same numbers.</p>
<dl class="facts">${facts.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl></section>`;
}

function timeOf(nanoseconds: string): string {
  const date = new Date(Number(nanoseconds) / 1e6);
  return Number.isNaN(date.getTime()) ? "at an unknown time" : date.toISOString();
}
