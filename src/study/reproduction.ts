import {
  type Config,
  checkSubmission,
  InvalidInput,
  modelFields,
  type Operation,
  placeFields,
  type Result,
} from "../contracts/index.js";
import {
  blockLabels,
  labelledBlocks,
  type Outcome,
  type ReproductionBlock,
  type StudyPackage,
  studyLimits,
} from "../contracts/studies/index.js";
import type { Figure } from "../findings/figure.js";
import { figureOf } from "../findings/numbers.js";
import { findingsOf } from "../report/index.js";
import { cut } from "../text/words.js";

/** A request in a study, and its original result if the study contains it. */
export interface StudyRequest {
  job: string | undefined;
  request: Config;
  original: { operation: Operation; result: Result } | null;
}

/**
 * Reads the Lab requests of a study from its blocks, as data: nothing is run here.
 * @returns the requests in order, and the reasons why blocks were rejected
 */
export function requestsIn(study: StudyPackage): { asked: StudyRequest[]; refused: string[] } {
  const results = new Map<string, StudyRequest["original"]>();
  for (const text of labelledBlocks(study, blockLabels.result)) {
    const block = parsed(text) as { job?: unknown; operation?: Operation; result?: Result } | null;
    if (typeof block?.job === "string" && block.operation !== undefined && block.result !== undefined)
      results.set(block.job, { operation: block.operation, result: block.result });
  }
  const asked: StudyRequest[] = [];
  const refused: string[] = [];
  for (const text of labelledBlocks(study, blockLabels.request)) {
    const block = parsed(text) as { schemaVersion?: unknown; job?: unknown; request?: unknown } | null;
    const job = typeof block?.job === "string" ? block.job : undefined;
    try {
      if (block?.schemaVersion !== 1) throw new InvalidInput("", "The block's schemaVersion must be 1.");
      const request = checkSubmission(block.request);
      checkPlaces(request);
      const original = results.get(job ?? "") ?? null;
      asked.push({ job, request, original: original?.operation === request.operation ? original : null });
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      refused.push(error.message);
    }
  }
  return { asked, refused };
}

/**
 * Ensures that an untrusted request uses only hub models and its own content: no local files and no hosts.
 * @throws InvalidInput if it names a place
 */
function checkPlaces(request: Config): void {
  const named = request as Record<string, unknown>;
  const hidden = [...modelFields, ...placeFields].find((field) => {
    const value = named[field];
    const open = field === "model" || (modelFields.includes(field) && isPublicModel(value as string));
    return typeof value === "string" && !open;
  });
  if (hidden === undefined) return;
  throw new InvalidInput("", `${request.operation} with ${hidden}, which refers to the author's machine.`);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Whether a model id means the same everywhere: the embedded model or a hub id, not a path. */
export function isPublicModel(model: string): boolean {
  return model === "demo" || /^[A-Za-z0-9][\w.-]*\/[\w.-]*[A-Za-z0-9](?::[\w.-]+)?$/.test(model);
}

/** Maximum differences from the original's values. */
export interface Tolerances {
  /** For probabilities and shares. */
  share: number;
  /** For everything else, relative to the original's value. */
  relative: number;
}

export const usualTolerances: Tolerances = { share: 0.02, relative: 0.05 };

/** A figure matches if at least this share of its values does. */
export const enough = 0.95;

/** One figure of both results, value by value. */
export interface Compared {
  title: string;
  /** Values in both results. */
  values: number;
  within: number;
  /** Values in only one of the results. */
  missing: number;
  held: boolean;
  /** The value with the largest difference. */
  worst: { what: string; before: number; after: number } | null;
}

/** Step functions of scores, whose points change with tiny differences; their content is compared in other figures. */
const inSteps = new Set(["roc", "calibration", "scores"]);

/**
 * Compares two results of one request figure by figure: every drawn value with the one at the same place.
 * @throws TypeError, RangeError for inconsistent results
 */
export function compareFigures(
  operation: Operation,
  before: Result,
  after: Result,
  tolerances: Tolerances = usualTolerances,
): Compared[] {
  const figures = (result: Result) =>
    findingsOf({ operation, result }).parts.filter(
      (part): part is Figure => "chart" in part && !inSteps.has(part.id),
    );
  const now = new Map(figures(after).map((figure) => [figure.id, figure]));
  return figures(before).map((figure) => compareFigure(figure, now.get(figure.id), tolerances));
}

function compareFigure(before: Figure, after: Figure | undefined, tolerances: Tolerances): Compared {
  const [old, now] = [valuesOf(before), after === undefined ? new Map<string, number>() : valuesOf(after)];
  const share = isShare(before);
  let [within, values] = [0, 0];
  let worst: Compared["worst"] = null;
  let farthest = 1;
  for (const [what, value] of old) {
    const found = now.get(what);
    if (found === undefined) continue;
    values += 1;
    const room = share ? tolerances.share : tolerances.relative * Math.max(Math.abs(value), 1e-6);
    const away = Math.abs(found - value) / room;
    if (away <= 1) within += 1;
    else if (away > farthest) {
      farthest = away;
      worst = { what, before: value, after: found };
    }
  }
  const missing = old.size + now.size - 2 * values;
  const held = values > 0 && within / values >= enough && missing <= (1 - enough) * old.size;
  return { title: before.title, values, within, missing, held, worst };
}

function isShare({ chart }: Figure): boolean {
  switch (chart.kind) {
    case "tokens":
      return chart.scale === "probability";
    case "bars":
      return chart.domain?.[1] === 1;
    case "lines":
      return chart.yDomain?.[1] === 1;
    case "differences":
    case "sites":
      return true;
    default:
      return false;
  }
}

/** The values of a figure by their place in it. */
function valuesOf({ chart, columns, rows }: Figure): Map<string, number> {
  const at = (name: string) => columns.findIndex((column) => column.name === name);
  const [value, ...keys] = (
    chart.kind === "tokens"
      ? [chart.value, "layer", "position"]
      : chart.kind === "bars"
        ? [chart.value, chart.label]
        : chart.kind === "lines"
          ? [chart.y, chart.series, chart.x]
          : chart.kind === "differences"
            ? [chart.value, chart.y, chart.x]
            : chart.kind === "scatter"
              ? [chart.y, chart.series, chart.label]
              : chart.kind === "sites"
                ? [chart.value, "layer", "position"]
                : [chart.up, chart.from, ...chart.panels]
  ).map(at) as [number, ...number[]];
  const names = keys.map((key) => columns[key]?.label ?? "");
  const found = new Map<string, number>();
  for (const row of rows) {
    const where = keys.map((key, place) => `${names[place]} ${row[key] ?? ""}`).join(", ");
    if (typeof row[value] === "number") found.set(where, row[value] as number);
  }
  return found;
}

export function outcomeOf(compared: readonly Compared[]): Outcome {
  const held = compared.filter((one) => one.held).length;
  return held === compared.length && held > 0 ? "held" : held > 0 ? "partly" : "failed";
}

/** The differences in words, short enough for the block. */
export function differedText(compared: readonly Compared[]): string {
  const lines = compared.flatMap(({ title, values, within, missing, held, worst }) => {
    if (held) return [];
    const far =
      worst === null
        ? ""
        : `; largest difference at ${worst.what}: published ${figureOf(worst.before)}, measured ${figureOf(worst.after)}`;
    const gone = missing === 0 ? "" : `, ${missing} in only one result`;
    return [`${title}: ${within} of ${values} values within tolerance${gone}${far}.`];
  });
  return cut(lines.join(" "), studyLimits.reason);
}

/** The block with the repeated study and the outcome. */
export function reproductionBlock(block: Omit<ReproductionBlock, "schemaVersion">): string {
  return `\`\`\`${blockLabels.reproduction}\n${JSON.stringify({ schemaVersion: 1, ...block })}\n\`\`\``;
}
