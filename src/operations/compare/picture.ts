import type { CompareResult } from "../../contracts/index.js";
import { interventionOf } from "../../contracts/interventions.js";
import {
  byPrompt,
  changeShare,
  controlCurve,
  type Dose,
  doseFinding,
  meanAt,
  type PromptTrials,
  promptCurve,
  strengthsOf,
  type Trial,
} from "../../findings/dose.js";
import { signed } from "../../findings/numbers.js";
import { cut, oneLine } from "../../findings/text.js";
import { type Canvas, narrowest } from "../../terminal/canvas.js";
import { fit, wrap } from "../../terminal/fit.js";
import { legend } from "../../terminal/legend.js";
import { finding, heading } from "../../terminal/page.js";
import { bold, dim, onScale, probabilityScale } from "../../terminal/paint.js";
import { plot, type Series, seriesPlace, ticksUpTo } from "../../terminal/plot.js";
import { table } from "../../terminal/table.js";
import { visible } from "../../text/visible.js";
import { layersText, type Picture } from "../picture.js";
import { positionText } from "./contract-position-text.js";
import { promptsOf } from "./contract-prompts.js";

interface Group extends PromptTrials {
  marker: string;
  place: number;
}

const markers = "123456789abcdefghijklmnopqrstuvwxyz";
/** Beyond this many prompts, continuations would fill pages. */
const promptsInFull = 6;

/** A compare job: dose-response curves, then the continuations at each strength. */
export function comparePicture(
  result: Pick<CompareResult, "trials" | "intervention" | "layers">,
  canvas: Canvas,
): string[] {
  const groups = grouped(byPrompt(result.trials));
  const neutral = interventionOf(result.intervention).neutral;
  const lines = [
    heading("Dose-response", `target token probability vs. strength (${result.intervention})`, "", canvas),
    ...curves(groups, neutral, canvas),
    "",
    ...finding(doseFinding(result), canvas),
    "",
  ];
  if (groups.length > 1) lines.push(...grid(groups, neutral, canvas), "");
  for (const group of groups.slice(0, promptsInFull)) {
    lines.push(...continuations(group, groups.length > 1, neutral, canvas), "");
  }
  const rest = groups.length - promptsInFull;
  if (rest > 0) {
    const more = `${rest} more prompt${rest === 1 ? "" : "s"}`;
    lines.push(...faint(`The continuations of ${more} are in the result.`, canvas), "");
  }
  return lines.slice(0, -1);
}

function grouped(prompts: readonly PromptTrials[]): Group[] {
  return prompts.map((group, index) => ({
    ...group,
    marker: markers[index] ?? "*",
    place: seriesPlace(index, prompts.length),
  }));
}

function curves(groups: Group[], neutral: number, canvas: Canvas): string[] {
  const points = (doses: readonly Dose[]) =>
    doses.map(({ strength, probability }) => [strength, probability] as const);
  const series: Series[] = groups.map((group) => ({
    points: points(promptCurve(group)),
    marker: groups.length === 1 ? "●" : group.marker,
    place: group.place,
  }));
  const strengths = strengthsOf(groups);
  const mean = strengths.map((strength) => [strength, meanAt(groups, strength)] as const);
  if (groups.length > 1) series.push({ points: mean, marker: "●" });
  const controls = points(controlCurve(groups));
  if (controls.length > 0) series.push({ points: controls, marker: "○", place: 0.2 });
  const [low, high] = [Math.min(...strengths, neutral), Math.max(...strengths, neutral)];
  const most = Math.max(1e-6, ...series.flatMap((line) => line.points.map(([, value]) => value)));
  const ticks = [...new Set([...strengths, neutral])].map(
    (value) => [value, value === neutral ? `${value} neutral` : String(value)] as const,
  );
  const drawn = plot(
    {
      series,
      x: { low, high, ticks },
      y: most > 0.8 ? ticksUpTo(1) : ticksUpTo(most),
      rows: 10,
      guides: { x: neutral },
    },
    { ...canvas, width: Math.min(canvas.width, 100) },
  );
  const keys = [
    ...(groups.length > 1
      ? [`● mean of ${groups.length} prompts; the dotted line is the neutral strength`]
      : []),
    ...(controls.length > 0 ? ["○ control: a norm-matched random vector"] : []),
  ];
  return [...drawn, ...keys.flatMap((key) => faint(key, canvas))];
}

function faint(text: string, canvas: Canvas): string[] {
  return wrap(text, Math.max(narrowest, canvas.width)).map((line) => dim(line, canvas.colors));
}

/** One row per prompt, one column per strength, as far as there is room. */
function grid(groups: Group[], neutral: number, canvas: Canvas): string[] {
  const strengths = (groups[0] as Group).trials.map(({ strength }) => strength);
  const columns = [
    { title: "" },
    { title: "prompt", least: 10 },
    { title: "target", least: 6, dispensable: 1 },
    ...strengths.map((strength) => ({
      title: strength === neutral ? `${strength}=` : String(strength),
      align: "right" as const,
    })),
  ];
  const rows = groups.map(({ marker, prompt, trials }) => [
    marker,
    oneLine(prompt),
    visible((trials[0] as Trial).target_token),
    ...trials.map(
      ({ probability }) =>
        [
          ` ${probability.toFixed(3)}`,
          (text: string) => onScale(text, probability, probabilityScale, canvas.colors),
        ] as const,
    ),
  ]);
  return [
    heading(
      "Probabilities",
      "of each prompt's target token by strength; = is neutral",
      legend(probabilityScale, "0", "1", canvas),
      canvas,
    ),
    ...table(columns, rows, canvas),
  ];
}

const [nameWidth, figureWidth, changeWidth] = [10, 6, 7];

function continuations(
  { marker, prompt, trials }: Group,
  numbered: boolean,
  neutral: number,
  canvas: Canvas,
): string[] {
  const total = Math.max(narrowest, canvas.width);
  const [first] = trials as [Trial];
  const title = `${numbered ? `${marker}  ` : ""}${oneLine(prompt)}`;
  const target = `target “${visible(first.target_token)}”, baseline ${first.baseline_probability.toFixed(3)}`;
  const lines = [
    bold(cut(title, total), canvas.colors),
    ...wrap(target, total).map((line) => dim(line, canvas.colors)),
  ];
  const base = wordsOf(first.baseline);
  const head = `${fit("strength", nameWidth)} ${fit("prob.", figureWidth, "right")} ${fit("change", changeWidth, "right")}`;
  lines.push(dim(head, canvas.colors));
  lines.push(...trialLines("baseline", first.baseline_probability, undefined, base, 0, canvas));
  const changed = sizes(trials, neutral);
  for (const { strength, probability, delta, output } of trials) {
    const words = wordsOf(output);
    const common = words.findIndex((word, index) => word !== base[index]);
    const same = common === -1 && words.length === base.length;
    lines.push(
      ...trialLines(
        strength === neutral ? `${strength} neutral` : String(strength),
        probability,
        delta,
        same ? ["=", "the", "baseline's"] : words,
        same ? 3 : common === -1 ? words.length : common,
        canvas,
      ),
    );
  }
  return changed === "" ? lines : [...lines, ...faint(changed, canvas)];
}

/** The norm of the change relative to the activation's, for each non-neutral strength. */
function sizes(trials: readonly Trial[], neutral: number): string {
  const shares = trials.flatMap(({ strength, change }) => {
    if (change === undefined || strength === neutral) return [];
    return [`${strength}: ${Number((100 * changeShare(change)).toPrecision(2))} %`];
  });
  return shares.length === 0 ? "" : `change relative to the activation's norm: ${shares.join(", ")}`;
}

/** Numbers on the left; the continuation next to them, or below if the line is too short. The part shared with the
 * baseline is dimmed and ends with a bar, which also shows without colors. */
function trialLines(
  name: string,
  probability: number,
  delta: number | undefined,
  words: readonly string[],
  common: number,
  canvas: Canvas,
): string[] {
  const total = Math.max(narrowest, canvas.width);
  const change = delta === undefined ? "" : delta === 0 ? "0" : signed(delta);
  const figures = `${fit(name, nameWidth)} ${fit(probability.toFixed(3), figureWidth, "right")} ${fit(change, changeWidth, "right")}`;
  const parts = common > 0 && common < words.length;
  const marked = parts ? [...words.slice(0, common), "│", ...words.slice(common)] : words;
  const margin = total >= 64 ? 28 : 2;
  const lines = wrap(marked.join(" "), total - margin);
  let left = marked.slice(0, common).join("").length;
  const painted = lines.map((line) => {
    const [same, different] = splitAt(line, left);
    left -= same.replaceAll(" ", "").length;
    return dim(same, same === "" ? "none" : canvas.colors) + different;
  });
  const indent = " ".repeat(margin);
  if (margin === 2) return [figures.trimEnd(), ...painted.map((line) => indent + line)];
  return painted.length === 0
    ? [figures.trimEnd()]
    : painted.map((line, index) => (index === 0 ? fit(figures, margin) : indent) + line);
}

/** Splits a line after `count` characters other than spaces. */
function splitAt(line: string, count: number): [string, string] {
  let seen = 0;
  let at = 0;
  while (at < line.length && seen < count) if (line[at++] !== " ") seen++;
  return [line.slice(0, at), line.slice(at)];
}

function wordsOf(text: string): string[] {
  return oneLine(text)
    .split(" ")
    .filter((word) => word !== "");
}

export default {
  asked(config) {
    const prompts = promptsOf(config);
    const shown = prompts.length === 1 ? oneLine(prompts[0] as string) : `${prompts.length} prompts`;
    const side = (one?: string, many?: string[]) =>
      many === undefined ? `“${oneLine(one ?? "")}”` : `the mean of ${many.length}`;
    const what = {
      nothing: () => "",
      donor: () => `“${oneLine(config.donor_prompt ?? "")}”`,
      direction: () =>
        config.feature === undefined
          ? `from ${side(config.negative, config.negatives)} to ${side(config.positive, config.positives)}`
          : `along feature ${config.feature[1]} of ${oneLine(String(config.feature[0]))}`,
      tokens: () => (config.swap ?? []).map((token) => `“${oneLine(token)}”`).join(" and "),
    };
    const { needs = "nothing", done } = interventionOf(config.intervention);
    const edit = done(what[needs]());
    const where = config.positions === undefined ? "the last token's" : `${positionText(config.positions)}:`;
    const at = needs === "tokens" ? layersText(config) : `layer ${config.layers[0]}`;
    return [["Compared", `${shown}, ${where} ${at} ${edit}`]];
  },
  draw: comparePicture,
} satisfies Picture<"compare">;
