import { type ServingModel, TaplineError } from "../client/index.js";
import type { Card, CardTarget } from "../contracts/card.js";
import type { StoredProfile } from "../contracts/profile.js";
import { UserError } from "../contracts/user-error.js";
import { version } from "../contracts/version.js";
import { canonicalHash } from "../formats/canonical-json.js";
import { type CardData, itemsOf, type Measuring, speeds } from "./arm-items.js";
import { armName } from "./arm-name.js";
import { type Arm, caveats, scaled, textEdits, withVectors } from "./arms.js";
import { type CardFrame, type CardItems, dataOf } from "./parts.js";
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
  /** Called with the step that begins, and the share that is done. */
  onProgress?: (what: string, share: number) => void;
}

/**
 * Measures what a profile does and costs on the served model: at each strength, at strength zero, and with random vectors
 * of the same norms instead of the profile's, all on the same data.
 * @param part only every n-th text, question, prompt and format; speed is measured by part 0
 * @throws UserError if the profile has no interventions or is not served; TaplineError with the service's sentence
 */
export async function measureItems(
  serving: ServingModel,
  request: CardRequest,
  options: CardOptions,
  part: readonly [number, number] = [0, 1],
): Promise<CardItems> {
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
    const { data, target } = dataOf(request.data, options.measure, part);
    const measuring: Measuring = {
      ...{ serving, data, target, signal },
      ...{ answerTokens: request.answerTokens, seed: request.seed },
    };
    const steps = arms.length + 3;
    onProgress?.("held-out texts", 0);
    const texts = await textItems(serving, arms, data.texts, signal);
    onProgress?.("multiple choice", 1 / steps);
    const choices = await choiceItems(serving, arms, data.questions, signal);
    const finished: CardItems["arms"] = [];
    let base: { answers: string[] } | undefined;
    for (const [index, arm] of arms.entries()) {
      onProgress?.(armName(arm), (index + 2) / steps);
      const { items, answers } = await itemsOf(measuring, arm, base);
      const { kind, factor, seed } = arm;
      finished.push({
        ...{ kind, factor, ...(seed !== undefined && { seed }) },
        items: { ...items, ...texts[index], choices: { values: choices[index] as number[] } },
      });
      base ??= { answers };
    }
    onProgress?.("speed", (arms.length + 2) / steps);
    const frame: CardFrame = {
      ...{ kind: "tapline card", schema_version: 1, tapline: version, model },
      profile: {
        ...{ name: profile.name, description: profile.description },
        ...{ tapline: profile.tapline, uses: profile.uses },
      },
      settings: {
        ...{ strengths: [...request.strengths], random: randoms.count, seed: request.seed },
        ...{ answer_tokens: request.answerTokens, target: request.target, data: dataHashes(request.data) },
        given: request.given,
      },
      notes: caveats(profile.tapline),
    };
    const speeds = part[0] === 0 ? await speedsOf(measuring, arms) : undefined;
    return {
      ...{ frame, arms: finished, created: Date.now() / 1000 },
      ...(speeds && { speeds }),
      seconds: (performance.now() - began) / 1000,
    };
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

async function speedsOf(measuring: Measuring, arms: readonly Arm[]): Promise<CardItems["speeds"]> {
  const full = arms.findIndex(({ kind, factor }) => kind === "profile" && factor === 1);
  const arm = full >= 0 ? full : arms.findIndex(({ kind }) => kind === "profile");
  return { arm, ...(await speeds(measuring, arms[arm] as Arm)) };
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
