import { cautiously } from "./finding.js";
import { percent } from "./numbers.js";

/** The key of a feature's label: the hash of its dictionary, and its number. */
export function labelKey(sha256: string, feature: number): string {
  return `${sha256} ${feature}`;
}

/** How well a label separates held-out excerpts with a feature from those without it. */
export interface Detection {
  /** Excerpts with the feature, and those of them that the label fits. */
  active: number;
  detected: number;
  /** Excerpts without it, and those of them that the label fits nevertheless. */
  silent: number;
  falsely: number;
  /** Answers that were neither yes nor no; they count as wrong. */
  unclear: number;
  /** Share of right answers, with its 95 % interval. */
  accuracy: number;
  low: number;
  high: number;
}

/** How well a label was tested, as a sentence. */
export function detectionSentence({
  active,
  detected,
  silent,
  falsely,
  unclear,
  accuracy,
  low,
  high,
}: Detection): string {
  const says =
    `It fits ${detected} of ${active} held-out excerpts with the feature and ${falsely} of ${silent} without it ` +
    `(accuracy ${percent(accuracy)}, 95 % interval ${percent(low)} to ${percent(high)}).`;
  const unsure =
    unclear === 0
      ? ""
      : unclear === 1
        ? " 1 answer was neither yes nor no and counts as wrong."
        : ` ${unclear} answers were neither yes nor no and count as wrong.`;
  return cautiously(says, active + silent) + unsure;
}
