import type {
  CompareResult,
  FeaturesResult,
  InspectResult,
  Job,
  PatchSweepResult,
  ProbeResult,
  Result,
  SaeResult,
} from "../contracts/index.js";
import { blockLabels, studyLimits } from "../contracts/studies/index.js";
import { characters, cut } from "./evidence.js";

/** JSON on one line, so that nothing in it can close the fence. */
function fenced(label: string, value: unknown, replacer?: (key: string, value: unknown) => unknown): string {
  return `\`\`\`${label}\n${JSON.stringify(value, replacer)}\n\`\`\``;
}

/** What was asked of the Lab, for whoever reproduces it. */
export function requestBlock(job: string, request: Record<string, unknown>): string {
  return fenced(blockLabels.request, { schemaVersion: 1, job, request });
}

type Bare<R> = Omit<R, "provenance" | "artifacts">;

export interface ResultText {
  text: string;
  /** What of the result is not in it; null where it is whole. */
  leftOut: string | null;
}

/**
 * A result for machines as a fenced block that fits into one field: whole, or with ever less of what its figures need
 * least. Null where even the least does not fit.
 */
export function resultBlock(job: Job): ResultText | null {
  const { provenance: _, artifacts: __, ...whole } = job.result as Result;
  const block = { schemaVersion: 1, operation: job.operation, job: job.id };
  const text = fenced(blockLabels.result, { ...block, result: whole });
  if (characters(text) <= studyLimits.long_text) return { text, leftOut: null };
  for (const [left_out, result] of shorter(job.operation, whole)) {
    const shorterText = fenced(blockLabels.result, { ...block, left_out, result }, rounded);
    if (characters(shorterText) <= studyLimits.long_text) return { text: shorterText, leftOut: left_out };
  }
  return null;
}

/** Figures show no more digits. */
function rounded(_key: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value;
}

/** Ever shorter forms of a result, each with what it leaves out. */
function* shorter(
  operation: Job["operation"],
  result: unknown,
): Generator<[leftOut: string, result: unknown]> {
  const digits = "Numbers have 5 digits here; the whole result stands in other entries";
  yield [`${digits}.`, result];
  switch (operation) {
    case "inspect": {
      const whole = result as Bare<InspectResult>;
      const top = whole.layers.map(({ predictions, ...layer }) => ({
        ...layer,
        ...(predictions === undefined ? {} : { predictions: predictions.map((list) => list.slice(0, 1)) }),
      }));
      yield [
        `${digits}, as do all but the most probable token of each prediction.`,
        { ...whole, layers: top },
      ];
      for (let every = 2; every <= Math.max(2, top.length); every *= 2) {
        const layers = top.filter((_, at) => at % every === 0 || at === top.length - 1);
        yield [
          `${digits}, as do all but the most probable token of each prediction and all but ${layers.length} of ${top.length} layers.`,
          { ...whole, layers },
        ];
      }
      return;
    }
    case "compare": {
      const whole = result as Bare<CompareResult>;
      for (const most of [400, 80]) {
        const trials = whole.trials.map((trial) => ({
          ...trial,
          baseline: cut(trial.baseline, most),
          output: cut(trial.output, most),
          ...(trial.control && { control: { ...trial.control, output: cut(trial.control.output, most) } }),
        }));
        yield [`${digits}, as do continuations beyond ${most} characters.`, { ...whole, trials }];
      }
      return;
    }
    case "probe": {
      const whole = result as Bare<ProbeResult>;
      for (const most of [200, 40, 8]) {
        const reports = whole.reports.map((report) => ({
          ...report,
          scores: report.scores.map((score) => ({ ...score, text: cut(score.text, most) })),
        }));
        yield [`${digits}, as do texts beyond ${most} characters.`, { ...whole, reports }];
      }
      return;
    }
    case "sae": {
      const whole = result as Bare<SaeResult>;
      for (const [examples, most] of [
        [3, 200],
        [1, 60],
      ] as const) {
        const reports = whole.reports.map((report) => ({
          ...report,
          losses: report.losses.filter(
            (_, at, all) => at % Math.ceil(all.length / 100) === 0 || at === all.length - 1,
          ),
          features: report.features.map((feature) => ({
            ...feature,
            examples: feature.examples
              .slice(0, examples)
              .map((example) => ({ ...example, text: cut(example.text, most) })),
          })),
        }));
        yield [
          `${digits}, as do most steps of the loss and all but ${examples} examples of a feature, ${most} characters of each.`,
          { ...whole, reports },
        ];
      }
      return;
    }
    case "features": {
      const whole = result as Bare<FeaturesResult>;
      const texts = whole.texts.map((text) => ({ ...text, top: text.top.map((list) => list.slice(0, 1)) }));
      yield [`${digits}, as do all but the strongest feature of each token.`, { ...whole, texts }];
      for (let most = 16; most >= 1; most = Math.floor(most / 2)) {
        yield [
          `${digits}, as do all but the strongest feature of each token and all but the first ${most} of ${texts.length} texts.`,
          {
            ...whole,
            texts: texts.slice(0, most),
            features: whole.features.filter(({ text }) => text < most),
          },
        ];
      }
      return;
    }
    case "patch_sweep": {
      const whole = result as Bare<PatchSweepResult>;
      const sites = whole.sites.map(
        ({ control: _control, change_interval: _change, recovery_interval: _recovery, ...site }) => site,
      );
      yield [`${digits}, as do the controls and intervals of each site.`, { ...whole, sites }];
      for (let step = 2; step <= whole.layers.length; step *= 2) {
        const layers = whole.layers.filter((_, index) => index % step === 0);
        yield [
          `${digits}, as do the controls and intervals of each site and all but ${layers.length} of ${whole.layers.length} layers.`,
          { ...whole, layers, sites: sites.filter(({ layer }) => layers.includes(layer)) },
        ];
      }
    }
  }
}
