import type { CompareResult } from "../../contracts/index.js";
import { interventionOf } from "../../contracts/interventions.js";
import { shareEnd } from "../../findings/axes.js";
import { difference } from "../../findings/difference.js";
import {
  byPrompt,
  changeShare,
  controlCurve,
  doseFinding,
  meanAt,
  type PromptTrials,
  promptCurve,
  strengthsOf,
} from "../../findings/dose.js";
import type { Figure } from "../../findings/figure.js";
import { dataOf, tabled } from "../../findings/figure.js";
import { count, figureOf, percent, signed } from "../../findings/numbers.js";
import { glimpse, type Html, html } from "../../report/markup.js";
import type { Findings, Passage } from "../../report/parts.js";
import { visible } from "../../text/visible.js";

interface Prompt extends PromptTrials {
  /** The prompt in a legend: short and unique. */
  name: string;
}

const mean = "mean of the prompts";
const randomDirection = "norm-matched random vector";

/** Dose-response curves, differences, and continuations side by side. */
export function compareFindings(result: CompareResult): Findings {
  const prompts = named(byPrompt(result.trials));
  return {
    summary: summary(result),
    cautions: [
      "An intervention shows that changing this block's output changes what the model says. It does not show that the model normally computes the answer there, or that changes elsewhere could not have the same effect.",
      "At large strengths the activation is out of distribution; a broken answer there says nothing about the block's role. Probabilities are compared after the same prompt; continuations diverge after their first difference.",
    ],
    parts: [
      doseResponse(result, prompts),
      ...(prompts.length > 1 ? [differences(result, prompts)] : []),
      ...changes(prompts),
      deltaTable(result, prompts),
      continuations(prompts),
    ],
  };
}

function named(prompts: readonly PromptTrials[]): Prompt[] {
  return prompts.map((one, index) => {
    const short = glimpse(one.prompt, 44);
    return { ...one, name: prompts.length > 1 ? `${index + 1}. ${short}` : short };
  });
}

function summary(result: CompareResult): string[] {
  const { intervention, trials } = result;
  const { neutral } = interventionOf(intervention);
  const moved = trials.filter(({ strength }) => strength !== neutral);
  const changed = moved.filter(({ baseline, output }) => baseline !== output);
  const { says, controls } = doseFinding(result);
  if (trials.length === 0) return [says];
  return [
    says,
    controls,
    `${changed.length} of ${count(moved.length, "continuation")} at non-neutral strengths ${changed.length === 1 ? "differs" : "differ"} from the baseline.`,
  ];
}

function doseResponse({ intervention }: CompareResult, prompts: Prompt[]): Figure {
  const neutral = interventionOf(intervention).neutral;
  const points = prompts.flatMap(({ name, ...prompt }) =>
    promptCurve(prompt).map(({ strength, probability, baseline_probability, target_token }) => ({
      name,
      strength,
      probability,
      baseline: baseline_probability as number | null,
      target: visible(target_token),
    })),
  );
  const means = strengthsOf(prompts).map((strength) => ({
    name: mean,
    strength,
    probability: meanAt(prompts, strength),
    baseline: null,
    target: "",
  }));
  const controls = controlCurve(prompts).map((dose) => ({
    ...{ name: randomDirection, ...dose },
    ...{ baseline: null, target: "" },
  }));
  const all = [...points, ...(prompts.length > 1 ? means : []), ...controls];
  return {
    id: "dose-response",
    title: "Dose-response",
    description:
      `The probability of the target token against the strength s of the intervention (${interventionOf(intervention).becomes}), ` +
      `${prompts.length > 1 ? "one line per prompt and their mean" : "for one prompt"}. ` +
      `At the neutral strength ${neutral} nothing is changed.`,
    chart: {
      kind: "lines",
      x: "strength",
      y: "probability",
      series: "prompt",
      xAxis: "strength",
      yAxis: "probability of the target token",
      yDomain: [0, shareEnd(all.map(({ probability }) => probability))],
      emphasis: prompts.length > 1 ? mean : undefined,
      mark: { x: neutral, label: "neutral" },
      dots: true,
    },
    ...dataOf(all, {
      prompt: ["prompt", (one) => one.name],
      strength: ["strength", (one) => one.strength],
      probability: ["probability", (one) => one.probability],
      baseline: ["baseline probability", (one) => one.baseline],
      target: ["target token", (one) => one.target],
    }),
    details: all.map(({ name, strength, probability, target, baseline }) =>
      [
        name,
        `strength ${strength}${strength === neutral ? " (neutral)" : ""}`,
        `${target === "" ? "mean" : target}  ${percent(probability)}`,
        ...(baseline === null ? [] : [`baseline  ${percent(baseline)}`]),
      ].join("\n"),
    ),
    table: {
      head: ["prompt", "target", ...strengthsOf(prompts).map((strength) => `s = ${strength}`)],
      rows: [
        ...prompts.map(({ name, trials }) => [
          name,
          visible(trials[0]?.target_token ?? ""),
          ...strengthsOf(prompts).map((strength) =>
            percent(trials.find((trial) => trial.strength === strength)?.probability ?? Number.NaN),
          ),
        ]),
        ...(prompts.length > 1
          ? [[mean, "", ...strengthsOf(prompts).map((strength) => percent(meanAt(prompts, strength)))]]
          : []),
        ...(controls.length > 0
          ? [[randomDirection, "", ...controls.map(({ probability }) => percent(probability))]]
          : []),
      ],
    },
  };
}

function differences({ intervention }: CompareResult, prompts: Prompt[]): Figure {
  const cells = prompts.flatMap(({ name, ...prompt }) =>
    promptCurve(prompt).map(({ strength, delta, target_token }) => ({
      name,
      strength,
      delta,
      target: visible(target_token),
    })),
  );
  return {
    id: "differences",
    title: "Change by prompt",
    description:
      "How much the intervention changes each prompt's target probability from its baseline. " +
      `The neutral strength is ${interventionOf(intervention).neutral}.`,
    chart: {
      kind: "differences",
      x: "strength",
      y: "prompt",
      value: "delta",
      xAxis: "strength",
      legend: "change of the target's probability",
    },
    ...tabled(cells, {
      prompt: ["prompt", (one) => one.name, String],
      strength: ["strength", (one) => one.strength, String],
      delta: ["change of probability", (one) => one.delta, signed],
      target: ["target token", (one) => one.target, String],
    }),
    details: cells.map(
      ({ name, strength, delta, target }) => `${name}\nstrength ${strength}\n${target}  ${signed(delta)}`,
    ),
  };
}

/** The norm of the change relative to the activation's, if the job measured it. */
function changes(prompts: Prompt[]): Figure[] {
  const points = prompts.flatMap(({ name, ...prompt }) =>
    promptCurve(prompt).flatMap(({ strength, change }) =>
      change === undefined
        ? []
        : [
            {
              name,
              strength,
              ...change,
              share: changeShare(change),
            },
          ],
    ),
  );
  if (points.length === 0) return [];
  return [
    {
      id: "changes",
      title: "Size of the change",
      description:
        "The norm of the change relative to that of the activation that was changed, mean over all edited positions: " +
        "changes far below 1 % can hardly have an effect, and far above 100 % little of the original activation is left.",
      chart: {
        kind: "lines",
        x: "strength",
        y: "share",
        series: "prompt",
        xAxis: "strength",
        yAxis: "norm of the change / norm of the activation",
        dots: true,
      },
      ...tabled(points, {
        prompt: ["prompt", (one) => one.name, String],
        strength: ["strength", (one) => one.strength, String],
        share: ["change relative to the activation's norm", (one) => one.share, percent],
        length: ["norm of the change", (one) => one.length, figureOf],
        row_length: ["norm of the activation", (one) => one.row_length, figureOf],
        rows: ["edited positions", (one) => one.rows, String],
      }),
      details: points.map(
        ({ name, strength, share, length, row_length, rows }) =>
          `${name}\nstrength ${strength}\n${percent(share)} of the activation's norm\n${figureOf(length)} of ${figureOf(row_length)}\n${count(rows, "position")}`,
      ),
    },
  ];
}

function deltaTable({ intervention }: CompareResult, prompts: Prompt[]): Passage {
  const strengths = strengthsOf(prompts);
  const neutral = interventionOf(intervention).neutral;
  return {
    id: "deltas",
    title: "Changes in numbers",
    description: "The target token's baseline probability and its change at each strength.",
    get body() {
      return html`<div class="scroll" tabindex="0" role="region" aria-label="Changes in numbers"><table class="figures">
<thead><tr><th scope="col">prompt</th><th scope="col">target</th><th scope="col" class="number">baseline</th>${strengths.map(
        (strength) =>
          html`<th scope="col" class="number">s = ${strength}${strength === neutral && " (neutral)"}</th>`,
      )}</tr></thead>
<tbody>${prompts.map(
        ({ prompt, trials }) => html`<tr><th scope="row"><bdi class="text">${prompt}</bdi></th>
<td><code>${visible(trials[0]?.target_token ?? "")}</code></td>
<td class="number">${figureOf(trials[0]?.baseline_probability ?? Number.NaN)}</td>${strengths.map(
          (strength) => {
            const trial = trials.find((candidate) => candidate.strength === strength);
            return html`<td class="number">${trial === undefined ? "" : signed(trial.delta)}</td>`;
          },
        )}</tr>`,
      )}</tbody></table></div>`;
    },
  };
}

function continuations(prompts: Prompt[]): Passage {
  return {
    id: "continuations",
    title: "Continuations",
    description:
      "Greedy continuations with and without the intervention. Words that appear only in the baseline are struck " +
      "through; words that appear only with the intervention are underlined.",
    get body() {
      return html`${prompts.map(
        ({ prompt, trials }, index) => html`<details class="prompt"${index < 4 && html` open`}>
<summary><bdi class="text">${prompt}</bdi></summary>
<p class="label">baseline</p><p><bdi class="text sample">${trials[0]?.baseline || "(nothing)"}</bdi></p>
<div class="scroll" tabindex="0" role="region" aria-label="Continuations of prompt ${index + 1}"><table><thead><tr><th scope="col" class="number">strength</th><th scope="col">with the intervention, compared with the baseline</th></tr></thead>
<tbody>${trials.map(
          ({ strength, baseline, output }) =>
            html`<tr><td class="number">${strength}</td><td>${
              baseline === output
                ? html`<span class="soft">identical</span>`
                : html`<bdi class="text sample">${marked(baseline, output)}</bdi>`
            }</td></tr>`,
        )}</tbody></table></div></details>`,
      )}`;
    },
  };
}

function marked(baseline: string, output: string): Html[] {
  return difference(baseline, output).map(({ kind, text }) => {
    if (kind === "same") return html`${text}`;
    return kind === "added" ? html`<ins>${text}</ins>` : html`<del>${text}</del>`;
  });
}
