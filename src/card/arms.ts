import type { CardArm } from "../contracts/card.js";
import type { ForwardEdit } from "../contracts/forward.js";
import { interventionOf } from "../contracts/interventions.js";
import type { LiveIntervention, LiveRequest } from "../contracts/live.js";
import type { ProfileSettings } from "../contracts/profile.js";

/** One setting of the model on which everything is measured. */
export type Arm = Pick<CardArm, "kind" | "factor" | "seed"> & {
  /** Of requests; undefined for the unedited model. */
  tapline: Pick<LiveRequest, "interventions" | "stop_when"> | undefined;
  /** Of forward passes over texts. */
  edits: readonly ForwardEdit[];
};

/**
 * The interventions at a multiple of their distance from the neutral strength: 0 changes nothing, 1 is as given. Clamps keep
 * their bounds; their strength is the share of the correction, at most 1.
 */
export function scaled(interventions: readonly LiveIntervention[], factor: number): LiveIntervention[] {
  return interventions.map((one) => {
    const { neutral, bounded } = interventionOf(one.kind);
    const strength = neutral + factor * ((one.strength ?? 1) - neutral);
    return { ...one, strength: bounded ? Math.min(1, strength) : strength };
  });
}

/** The interventions with other vectors. @param names of the replacements, by the name of the vector */
export function withVectors(
  interventions: readonly LiveIntervention[],
  names: ReadonlyMap<string, string>,
): LiveIntervention[] {
  return interventions.map((one) => {
    const replacement = typeof one.vector === "string" ? names.get(one.vector) : undefined;
    return replacement === undefined ? one : { ...one, vector: replacement };
  });
}

/**
 * The interventions as edits of a forward pass over whole texts, all of whose tokens are prompt. Edits of generated tokens
 * and conditional ones, which wait for generated tokens, have no effect there.
 */
export function textEdits(interventions: readonly LiveIntervention[]): ForwardEdit[] {
  return interventions.filter(actsOnTexts).map(({ when: _, positions, ...one }) => {
    const named = positions === "prompt" ? "all" : positions;
    return {
      ...one,
      ...(named !== undefined && { positions: named as Exclude<ForwardEdit["positions"], undefined> }),
    };
  });
}

function actsOnTexts({ when, positions }: LiveIntervention): boolean {
  return (
    when === undefined && positions !== "generated" && positions !== "thinking" && positions !== "answer"
  );
}

/** What a card cannot measure of these settings, in sentences. */
export function caveats({ interventions = [], watch, stop_when }: ProfileSettings): string[] {
  const idle = interventions.filter((one) => !actsOnTexts(one)).length;
  const features = interventions.filter(({ vector }) => typeof vector === "object").length;
  const vectors = interventions.filter(({ vector }) => typeof vector === "string").length;
  return [
    ...(idle === 0
      ? []
      : [
          `${idle === 1 ? "One intervention acts" : `${idle} interventions act`} on generated tokens only or under a condition: ` +
            "cross-entropy, divergence and multiple choice are measured without it.",
        ]),
    ...(vectors === 0
      ? ["No intervention has a saved vector, so there is no norm-matched random control."]
      : features === 0
        ? []
        : ["Interventions with dictionary features are the same in the random control."]),
    ...(watch === undefined ? [] : ["The profile's readings are not part of the card."]),
    ...(stop_when === undefined ? [] : ["Answers end where the profile's stop_when ends them."]),
  ];
}
