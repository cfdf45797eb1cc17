import type { Job, Result } from "../contracts/index.js";
import { studyLimits } from "../contracts/studies/index.js";
import { publicConfig, publicResult } from "../findings/public-job.js";
import { type Answer, findingsOf, wordsOf } from "../report/index.js";
import { characters, cut, publicName } from "../text/words.js";
import { type Evidence, Gatherer } from "./evidence.js";
import { requestBlock, resultBlock } from "./result-block.js";

/**
 * A finished job as entries: the request and its settings, the result in words and tables, the answers prompt by prompt,
 * and the result and its provenance as JSON.
 */
export function jobEvidence(given: Job): Evidence {
  const job = given.result === undefined ? given : ({ ...given, result: publicResult(given.result) } as Job);
  const gatherer = new Gatherer();
  const name = `${job.operation} ${job.id.slice(0, 8)}`;
  const asked = addQuestion(gatherer, job, name);
  if (job.result === undefined) {
    gatherer.add({
      parent: asked,
      kind: "error",
      title: `${name}: ${job.status}`,
      note: (job.error ?? `The job was ${job.status}.`).replaceAll(job.model, publicName(job.model)),
    });
  } else addResult(gatherer, job, job.result, asked, name);
  const { entries, spare, omissions } = gatherer;
  return {
    model: modelOf(job),
    method: wordsOf(job.operation).method(job.config as never),
    entries,
    spare,
    omissions,
  };
}

function addQuestion(gatherer: Gatherer, job: Job, name: string): string {
  const { config } = job;
  const words = wordsOf(job.operation);
  const texts = words.texts?.(config as never);
  const settings = words.settings?.(config as never);
  const hidden = publicName(config.model) !== config.model;
  if (hidden) {
    gatherer.omissions.push(
      `The folder of the model file of ${name} on the author's machine. The configuration's hash is that of the full configuration.`,
    );
  }
  const request = publicConfig(config);
  const { examples, ...others } = { examples: undefined, ...request } as Record<string, unknown>;
  const submitted = `Job ${job.id}, submitted ${new Date(job.created * 1000).toISOString()}. ${"tokens" in config && config.tokens !== undefined ? "Token ids, exactly as given" : "Raw text, no chat template"}.`;
  const block = requestBlock(job.id, request);
  const whole = `${submitted}\n\n${block}`;
  // Reproductions send the block's request; one that is too long is split into parts.
  const fits = characters(whole) <= studyLimits.long_text;
  const asked = gatherer.add({
    kind: "prompt",
    title: `${job.operation}: ${words.subject(config as never)}`,
    ...(texts === undefined ? {} : { prompt: promptText(texts) }),
    ...(settings === undefined ? {} : { settings }),
    note: fits
      ? whole
      : `${submitted} Configuration:\n\`\`\`json\n${JSON.stringify(others, null, 2)}\n\`\`\``,
  });
  if (!fits) {
    gatherer.omissions.push(
      `The request of ${name} in one block, which tapline reproduce needs: ${characters(block)} characters exceed the limit of ${studyLimits.long_text}.`,
    );
  }
  if (examples !== undefined) {
    const all = examples as readonly object[];
    const lines = all.map((example) => JSON.stringify(example)).join("\n");
    gatherer.addText(
      asked,
      `Examples of ${name} (JSON Lines)`,
      lines,
      `The ${all.length} examples of ${name}`,
    );
  }
  return asked;
}

function promptText(prompts: readonly string[]): string {
  return prompts.some((prompt) => prompt.includes("\n")) && prompts.length > 1
    ? JSON.stringify(prompts, null, 2)
    : prompts.join("\n");
}

function addResult(gatherer: Gatherer, job: Job, result: Result, asked: string, name: string): void {
  const { summary, parts } = findingsOf({ operation: job.operation, result });
  const { tables } = wordsOf(job.operation);
  let answer = summary.join("\n");
  for (const part of parts) {
    if (!("table" in part) || !tables.includes(part.id)) continue;
    const rows = [part.table.head, ...part.table.rows].map((row) => row.join(" | "));
    const text = `\n\n${part.title}\n\`\`\`\n${rows.join("\n")}\n\`\`\``;
    if (characters(answer) + characters(text) <= studyLimits.long_text) answer += text;
    else
      gatherer.omissions.push(
        `The table “${part.title}” of ${name}, because it has ${characters(text)} characters.`,
      );
  }
  const made = gatherer.add({
    parent: asked,
    kind: "result",
    title: `Result of ${name}`,
    answer,
    ...("note" in result ? { note: result.note } : {}),
  });
  addAnswers(gatherer, wordsOf(job.operation).answers?.(result as never) ?? [], made, name);
  const { provenance } = result;
  gatherer.add({
    parent: made,
    kind: "note",
    title: `Provenance of ${name}`,
    note: JSON.stringify(provenance, null, 2),
  });
  addResultBlock(gatherer, job, made, name);
  if (result.artifacts.length > 0) {
    gatherer.omissions.push(`Binary artifacts of ${name}: ${result.artifacts.join(", ")}.`);
  }
}

/**
 * The machine-readable result, which the studies service draws. If it does not fit into one field, a shorter form is drawn
 * and the whole result is split into parts.
 */
function addResultBlock(gatherer: Gatherer, job: Job, parent: string, name: string): void {
  const title = `Result of ${name} as JSON`;
  const what = `The whole result of ${name} as JSON`;
  const found = resultBlock(job);
  if (found !== null) {
    const whole = found.leftOut === null;
    const id = gatherer.add({
      parent,
      kind: "note",
      title: whole ? title : `Figures of ${name}`,
      note: found.text,
    });
    gatherer.spare.push({ what: whole ? what : `The figures of ${name}`, ids: [id] });
    if (whole) return;
  }
  const { provenance: _, ...figures } = job.result as Result;
  gatherer.addText(parent, title, JSON.stringify(figures), what);
}

/** The model's answers, prompt by prompt. */
function addAnswers(gatherer: Gatherer, answers: readonly Answer[], parent: string, name: string): void {
  if (answers.length === 0) return;
  const ids = answers.map((answer) => gatherer.add({ parent, kind: "result", ...answer }));
  gatherer.spare.push({ what: `The continuations of ${name}, prompt by prompt,`, ids });
}

function modelOf({ result, model }: Job): Evidence["model"] {
  if (result === undefined) return { name: publicName(model), revision: null, runtime: "tapline" };
  const { provenance } = result;
  const { versions, resolved_model: resolved } = provenance;
  const name = resolved.repository ?? provenance.requested_model;
  return {
    name: cut(`${name} (${provenance.architecture}, ${provenance.quantization})`, studyLimits.model_name),
    revision: resolved.commit ?? provenance.requested_revision,
    runtime: cut(
      `tapline ${versions.tapline}, llama.cpp ${versions["llama.cpp"]}, ${versions.backend}`,
      studyLimits.model_runtime,
    ),
  };
}
