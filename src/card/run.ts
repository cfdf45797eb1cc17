import { type ServingModel, TaplineError } from "../client/index.js";
import {
  type Card,
  type CardArm,
  type CardMeasureName,
  type CardTarget,
  cardMeasures,
} from "../contracts/card.js";
import type { StoredProfile } from "../contracts/profile.js";
import { UserError } from "../contracts/user-error.js";
import { version } from "../contracts/version.js";
import { canonicalHash } from "../formats/canonical-json.js";
import { type CardData, itemsOf, type Measuring, speeds } from "./arm-items.js";
import { armName } from "./arm-name.js";
import { type Arm, caveats, scaled, textEdits, withVectors } from "./arms.js";
import { type ArmItems, measured } from "./measure.js";
import { RandomVectors } from "./random-vectors.js";
import type { Target } from "./target.js";
import { choiceItems, textItems } from "./text-items.js";

export interface CardRequest {
  profile: string;
  /** Factors on the profile's strengths. */
  strengths: readonly number[];
  /** Number of random vectors per strength. */
  random: number;
  seed: number;
  answerTokens: number;
  target: CardTarget | null;
  data: CardData;
  /** The parts of `data` that are not bundled. */
  given: Card["settings"]["given"];
}

export interface CardOptions {
  /** Of the request's target; undefined without one. */
  measure: Target | undefined;
  signal?: AbortSignal;
  /** Called with the part that begins, and the share that is done. */
  onProgress?: (what: string, share: number) => void;
}

/**
 * Measures what a profile does and costs on the served model: at each strength, at strength zero, and with random vectors
 * of the same norms instead of the profile's, all on the same data.
 * @throws UserError if the profile has no interventions or is not served; TaplineError with the service's sentence
 */
export async function runCard(
  serving: ServingModel,
  request: CardRequest,
  options: CardOptions,
): Promise<Card> {
  const began = performance.now();
  const { signal, onProgress } = options;
  const profile = await serving.profile(request.profile, { signal });
  const { interventions = [] } = profile.tapline;
  if (interventions.length === 0) {
    throw new UserError(`The profile ${profile.name} has no interventions; a card measures what they do.`);
  }
  const [changed] = profile.changed;
  if (changed !== undefined) throw new UserError(changed);
  const model = await modelOf(serving, signal);
  if (profile.model !== null && profile.model.fingerprint !== model.fingerprint) {
    throw new UserError(
      `The profile ${profile.name} was saved for ${profile.model.id}, not for ${model.id}.`,
    );
  }
  const randoms = await RandomVectors.make(serving, profile, request, signal);
  try {
    const arms = armsOf(profile, request, randoms);
    const measuring: Measuring = {
      ...{ serving, data: request.data, target: options.measure, signal },
      ...{ answerTokens: request.answerTokens, seed: request.seed },
    };
    const finished: CardArm[] = [];
    const parts = arms.length + 3;
    onProgress?.("held-out texts", 0);
    const texts = await textItems(serving, arms, request.data.texts, signal);
    onProgress?.("multiple choice", 1 / parts);
    const choices = await choiceItems(serving, arms, request.data.questions, signal);
    let base: { items: ArmItems; answers: string[] } | undefined;
    for (const [index, arm] of arms.entries()) {
      onProgress?.(armName(arm), (index + 2) / parts);
      const { items, answers } = await itemsOf(measuring, arm, base);
      const all = { ...items, ...texts[index], choices: { values: choices[index] as number[] } };
      finished.push(toCardArm(arm, all, base?.items, request.seed));
      base ??= { items: all, answers };
    }
    onProgress?.("speed", (arms.length + 2) / parts);
    await addSpeeds(measuring, arms, finished, request.seed);
    return signed({
      ...{ kind: "tapline card", schema_version: 1, tapline: version, created: Date.now() / 1000, model },
      profile: {
        ...{ name: profile.name, description: profile.description },
        ...{ tapline: profile.tapline, uses: profile.uses },
      },
      settings: {
        ...{ strengths: [...request.strengths], random: randoms.count, seed: request.seed },
        ...{ answer_tokens: request.answerTokens, target: request.target, data: dataHashes(request.data) },
        given: request.given,
      },
      arms: finished,
      notes: caveats(profile.tapline),
      seconds: (performance.now() - began) / 1000,
    });
  } finally {
    await randoms.remove(serving);
  }
}

async function modelOf(serving: ServingModel, signal: AbortSignal | undefined): Promise<Card["model"]> {
  const [{ model, fingerprint = "", architecture }, { quantization }] = await Promise.all([
    serving.capabilities({ signal }),
    serving.meta({ signal }),
  ]);
  if (model === null) throw new TaplineError("The server has no model loaded at the moment.");
  return { id: model, fingerprint, architecture: architecture ?? "", quantization };
}

/** The unedited model first, then zero, then each strength with its random controls. */
export function armsOf(
  { tapline }: Pick<StoredProfile, "tapline">,
  { strengths, seed }: Pick<CardRequest, "strengths" | "seed">,
  randoms: { names: readonly ReadonlyMap<string, string>[] },
): Arm[] {
  const { interventions = [], stop_when } = tapline;
  const arm = (rest: Pick<Arm, "kind" | "factor" | "seed">, made: typeof interventions): Arm => ({
    ...rest,
    tapline: { interventions: made, ...(stop_when && { stop_when }) },
    edits: textEdits(made),
  });
  return [
    { kind: "base", factor: 0, tapline: undefined, edits: [] },
    arm({ kind: "zero", factor: 0 }, scaled(interventions, 0)),
    ...strengths.flatMap((factor) => [
      arm({ kind: "profile", factor }, scaled(interventions, factor)),
      ...randoms.names.map((names, round) =>
        arm(
          { kind: "random", factor, seed: seed + round },
          withVectors(scaled(interventions, factor), names),
        ),
      ),
    ]),
  ];
}

function toCardArm(
  { kind, factor, seed: own }: Arm,
  items: ArmItems,
  base: ArmItems | undefined,
  seed: number,
): CardArm {
  const measures: CardArm["measures"] = {};
  for (const name of cardMeasures) {
    const found = items[name];
    if (found !== undefined) measures[name] = measured(found, compared(name, base), seed);
  }
  return { kind, factor, ...(own !== undefined && { seed: own }), measures };
}

/** Divergence and changed answers are already comparisons. */
function compared(name: CardMeasureName, base: ArmItems | undefined) {
  return name === "divergence" || name === "changed_answers" ? undefined : base?.[name];
}

async function addSpeeds(measuring: Measuring, arms: readonly Arm[], finished: CardArm[], seed: number) {
  const full = arms.findIndex(({ kind, factor }) => kind === "profile" && factor === 1);
  const index = full >= 0 ? full : arms.findIndex(({ kind }) => kind === "profile");
  const { base, own } = await speeds(measuring, arms[index] as Arm);
  const unedited = { values: base };
  (finished[0] as CardArm).measures.tokens_per_second = measured(unedited, undefined, seed);
  (finished[index] as CardArm).measures.tokens_per_second = measured({ values: own }, unedited, seed);
}

/** Of each data set, so that cards on other data are not compared by mistake. */
function dataHashes({ texts, questions, prompts, formats }: CardData): Record<string, string> {
  return {
    texts: canonicalHash(texts),
    questions: canonicalHash(questions),
    prompts: canonicalHash(prompts),
    formats: canonicalHash(formats.map(({ prompt, holds }) => [prompt, holds.toString()])),
  };
}

/** Adds the hash that covers everything else. */
export function signed(card: Omit<Card, "sha256">): Card {
  return { ...card, sha256: canonicalHash(card) };
}

/** Whether a card is as it was written. */
export function isIntact({ sha256, ...card }: Card): boolean {
  return signed(card).sha256 === sha256;
}
