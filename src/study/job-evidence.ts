import {
  type CompareResult,
  type Config,
  type Job,
  type ProbeConfig,
  type PromptPair,
  promptPairs,
  type Result,
  type SaeConfig,
} from "../contracts/index.js";
import type { RowsRead } from "../contracts/names.js";
import { publicConfig, publicName, publicResult } from "../contracts/place-fields.js";
import { positionText } from "../contracts/position-text.js";
import { promptsOf } from "../contracts/prompts-of.js";
import { studyLimits } from "../contracts/studies/index.js";
import { byPrompt } from "../findings/dose.js";
import { findingsOf, glimpse } from "../report/index.js";
import { characters, cut, type Evidence, Gatherer } from "./evidence.js";
import { requestBlock, resultBlock } from "./result-block.js";

/** Tables that tell a result; the others repeat it in finer steps. */
const told = new Set([
  "logit-lens",
  "norms",
  "next-tokens",
  "dose-response",
  "accuracy-by-layer",
  "rows-by-layer",
  "quality",
  "features",
  "drift-by-layer",
  "drift-artefacts",
  ...["block-in", "head-out", "attn-out", "mid", "ffn-out"].map((point) => `patch-map-${point}`),
  "patch-map",
]);

/**
 * A finished job as entries: what was asked with which settings, what came out in words and tables, the trials of
 * a comparison prompt by prompt, the result and its provenance as JSON.
 */
export function jobEvidence(given: Job): Evidence {
  const job = given.result === undefined ? given : { ...given, result: publicResult(given.result) };
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
  return { model: modelOf(job), method: methodOf(job), entries, spare, omissions };
}

function addQuestion(gatherer: Gatherer, job: Job, name: string): string {
  const { config } = job;
  const hidden = publicName(config.model) !== config.model;
  if (hidden) {
    gatherer.omissions.push(
      `The folder of the model file of ${name} on the author's machine. The hash of the configuration is that of the whole one.`,
    );
  }
  const request = publicConfig(config);
  const { examples, ...settings } = { examples: undefined, ...request } as Record<string, unknown>;
  const submitted = `Job ${job.id}, submitted ${new Date(job.created * 1000).toISOString()}. Raw text, no chat template.`;
  const block = requestBlock(job.id, request);
  const whole = `${submitted}\n\n${block}`;
  // Whoever reproduces the study sends what the block says; one that is too long for it is told in parts.
  const fits = characters(whole) <= studyLimits.long_text;
  const asked = gatherer.add({
    kind: "prompt",
    title: `${job.operation}: ${subjectOf(job)}`,
    ...promptOf(config),
    ...(config.operation === "compare"
      ? {
          settings: {
            temperature: 0,
            seed: config.seed,
            maxTokens: config.max_tokens,
            thinking: "default" as const,
          },
        }
      : {}),
    note: fits
      ? whole
      : `${submitted} Configuration:\n\`\`\`json\n${JSON.stringify(settings, null, 2)}\n\`\`\``,
  });
  if (!fits) {
    gatherer.omissions.push(
      `The request of ${name} in one piece, which tapline reproduce would need: ${characters(block)} characters of at most ${studyLimits.long_text}.`,
    );
  }
  if (examples !== undefined) {
    const all = examples as ReadonlyArray<
      ProbeConfig["examples"][number] | NonNullable<SaeConfig["examples"]>[number]
    >;
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

function subjectOf({ config }: Job): string {
  if (config.operation === "features") {
    const [first = config.prompt as string, ...more] = config.texts ?? [];
    return `${glimpse(first, 180)}${more.length > 0 ? ` and ${more.length} more` : ""}`;
  }
  if (config.operation === "extract") {
    const what = config.data === undefined ? `${config.examples?.length} texts` : publicName(config.data);
    return `${what}, layer ${config.layers.join(", ")}`;
  }
  if (config.operation === "patch_sweep") {
    const [{ clean, corrupted }, ...more] = promptPairs(config) as [PromptPair, ...PromptPair[]];
    return `${glimpse(clean, 80)} / ${glimpse(corrupted, 80)}${more.length > 0 ? ` and ${more.length} more` : ""}`;
  }
  if (config.operation === "sae" && config.from !== undefined) {
    return `${publicName(config.from)}, layer ${config.layers.join(", ")}`;
  }
  if (config.operation !== "compare" && !("prompt" in config))
    return `${config.examples?.length} examples, layer ${config.layers.join(", ")}`;
  const [first, ...more] = promptsOf(config);
  return `${glimpse(first as string, 180)}${more.length > 0 ? ` and ${more.length} more` : ""}`;
}

function promptOf(config: Config): { prompt?: string } {
  if (config.operation === "features") {
    return {
      prompt: promptText(config.texts ?? [config.prompt ?? ""]),
    };
  }
  if (config.operation === "patch_sweep") {
    return {
      prompt: promptPairs(config)
        .map(({ clean, corrupted }) => `${clean}\n${corrupted}`)
        .join("\n\n"),
    };
  }
  return config.operation === "compare" || "prompt" in config
    ? { prompt: promptText(promptsOf(config)) }
    : {};
}

function promptText(prompts: readonly string[]): string {
  return prompts.some((prompt) => prompt.includes("\n")) && prompts.length > 1
    ? JSON.stringify(prompts, null, 2)
    : prompts.join("\n");
}

function addResult(gatherer: Gatherer, job: Job, result: Result, asked: string, name: string): void {
  const { summary, parts } = findingsOf({ operation: job.operation, result });
  let answer = summary.join("\n");
  for (const part of parts) {
    if (!("table" in part) || !told.has(part.id)) continue;
    const rows = [part.table.head, ...part.table.rows].map((row) => row.join(" | "));
    const text = `\n\n${part.title}\n\`\`\`\n${rows.join("\n")}\n\`\`\``;
    if (characters(answer) + characters(text) <= studyLimits.long_text) answer += text;
    else
      gatherer.omissions.push(
        `The table “${part.title}” of ${name}, for its ${characters(text)} characters.`,
      );
  }
  const made = gatherer.add({
    parent: asked,
    kind: "result",
    title: `Result of ${name}`,
    answer,
    ...("note" in result ? { note: result.note } : {}),
  });
  if (job.operation === "compare") addTrials(gatherer, result as CompareResult, made, name);
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
 * The result for machines, which the studies service draws. Where it does not fit into a field as it is, a shorter form
 * is drawn, and the whole is there in parts.
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

/** A comparison prompt by prompt: the baseline as the answer, what each strength made of it in the note. */
function addTrials(gatherer: Gatherer, result: CompareResult, parent: string, name: string): void {
  const ids = byPrompt(result.trials).map(({ prompt, trials }) => {
    const [first] = trials;
    return gatherer.add({
      parent,
      kind: "result",
      title: `${result.intervention} at layer ${first?.layer}: ${glimpse(prompt, 200)}`,
      prompt,
      answer: first?.baseline ?? "",
      note: [
        `Target token ${JSON.stringify(first?.target_token)}, baseline probability ${first?.baseline_probability}. The answer above is the baseline's.`,
        ...trials.map(
          ({ strength, probability, delta, output }) =>
            `Strength ${strength}: probability ${probability} (change ${delta}), continuation ${JSON.stringify(output)}`,
        ),
      ].join("\n"),
    });
  });
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

function methodOf({ config }: Job): string {
  if (config.operation === "features") {
    return `features: the block output of each token encoded with the sparse dictionary ${config.dictionary}; explained variance, L0 and loss recovered on these texts.`;
  }
  if (config.operation === "patch_sweep") {
    const layers = config.layers === undefined ? "every layer" : `layers ${config.layers.join(", ")}`;
    // Jobs of earlier versions name no points.
    const { positions, points = ["block_out"] } = config;
    const tokens =
      positions === undefined
        ? "every token"
        : Array.isArray(positions)
          ? `tokens ${positions.join(", ")}`
          : "the last tokens of marked spans";
    const states = points.join() === "block_out" ? "block outputs" : `states (${points.join(", ")})`;
    return `patch_sweep (${config.direction}): single ${states} of ${layers} at ${tokens} put from one prompt's run into the other's; logit difference of two tokens${config.controls ? `, beside random changes as long (seed ${config.seed})` : ""}.`;
  }
  if (config.operation === "explain") {
    const verbaliser = config.verbaliser === undefined ? "the same model" : publicName(config.verbaliser);
    const drawn =
      config.temperature === 0 ? "greedy" : `temperature ${config.temperature}, seed ${config.seed}`;
    return `explain: block outputs of layer ${config.layer} at tokens ${config.positions.join(", ")}, ${config.length === undefined ? "as long as they are" : `scaled to a length of ${config.length}`}, each in a token embedding's place in a prompt of ${verbaliser} (${drawn})${config.controls ? "; beside rows with their numbers in another order, and no row" : ""}.`;
  }
  const where = `block output of layer ${config.layers.join(", ")}, seed ${config.seed}`;
  switch (config.operation) {
    case "inspect":
      return `inspect: norms, logit lens and next tokens of a raw prompt (${where}).`;
    case "compare":
      return `compare: ${config.intervention} at strengths ${config.strengths.join(", ")} ${config.strength_unit === undefined ? "" : `(${config.strength_unit}) `}on the ${config.positions === undefined ? "last token" : positionText(config.positions)}'s ${config.point === undefined ? where : `${config.point}${config.heads === undefined ? "" : ` (heads ${config.heads.join(", ")})`} in place of the ${where}`}; greedy continuations of at most ${config.max_tokens} tokens.`;
    case "probe":
      return `probe: L2-regularised logistic regression on ${rowsText(config.rows)} ${where}, with majority and shuffled-label controls.`;
    case "drift":
      return `drift: block outputs of ${publicName(config.model)} and of ${publicName(config.other)} on the same texts (${where}), with bootstrap intervals over texts.`;
    case "extract":
      return `extract: ${rowsText(config.rows)} ${where}, written to files as ${config.dtype}.`;
    case "sae":
      return `sae: ${saeText(config)} with ${config.features} features, ${config.steps} steps, on ${rowsText(config.rows)} ${where}.`;
  }
}

/** Whose block outputs were read of each text. */
function rowsText(rows: RowsRead = "last"): string {
  const words = {
    last: "the last token's",
    mean: "the mean",
    response: "the response's mean",
    all: "every token's",
  };
  return words[rows];
}

function saeText({ architecture = "relu", k }: SaeConfig): string {
  if (architecture === "relu") return "ReLU autoencoder with an L1 penalty";
  return architecture === "jumprelu"
    ? "JumpReLU autoencoder"
    : `autoencoder (${architecture}${k === undefined ? "" : `, k ${k}`})`;
}
