import type { FeaturesResult, SaeResult } from "../contracts/index.js";
import type { Finding } from "./finding.js";
import { share } from "./finding.js";
import { figureOf, percent } from "./numbers.js";

/** Shares of the loss recovered from which a dictionary fits, and fits in part. */
const fits = 0.9;
const fitsInPart = 0.5;
/** Features that are active on this share of the tokens say little of any one of them. */
const everywhere = 0.9;
const mostlyDead = 0.5;

/** Whether the model can work with what a dictionary says of the texts, compared with saying nothing. */
export function featuresFinding({
  dictionary,
  fidelity,
  layer,
  point,
}: Pick<FeaturesResult, "dictionary" | "fidelity" | "layer" | "point">): Finding {
  const { loss_recovered: recovered, cross_entropy: loss, explained_variance: explained } = fidelity;
  const where = point === undefined ? `block ${layer}'s output` : `${point} of block ${layer}`;
  const variance =
    explained === null ? "" : ` The explained variance (${percent(explained)}) alone does not settle it.`;
  if (recovered === null || loss === null) {
    return {
      says:
        loss === null
          ? `Whether the dictionary ${dictionary.name} fits these texts is open: they have no next token to predict.`
          : `Whether the dictionary ${dictionary.name} fits these texts is open: the loss hardly depends on ${where}.`,
      controls: `Try longer or other texts.${variance}`,
    };
  }
  const fit =
    recovered >= fits
      ? "fits these texts"
      : recovered >= fitsInPart
        ? "fits these texts in part"
        : "does not fit these texts";
  const costs = (with_: number) => figureOf(with_ - loss.clean);
  return {
    says: `The dictionary ${dictionary.name} ${fit}: with ${where} replaced by its reconstruction, ${share(recovered)} of the loss is recovered.`,
    controls:
      `The reconstruction costs ${costs(loss.reconstructed)} nats per token, zeros in its place ${costs(loss.ablated)}, ` +
      (recovered >= fits
        ? "so the features hold most of what the model reads there; whether it uses one of them, steering shows."
        : "so the features miss part of what the model reads there: do not conclude from a feature's silence."),
  };
}

/** Warns of dictionaries whose features say little: active nearly everywhere, or mostly dead. */
export function dictionaryWarnings(
  features: readonly { frequency: number }[],
  { dead, unit }: { dead?: number; unit: string },
): string[] {
  const constant = features.filter(({ frequency }) => frequency >= everywhere).length;
  return [
    ...(dead !== undefined && dead >= mostlyDead
      ? [`${share(dead)} of the features are dead: they are active on no held-out ${unit}.`]
      : []),
    ...(features.length > 0 && 2 * constant >= features.length
      ? [
          `${constant} of the ${features.length} strongest features are active on ${percent(everywhere).replace(".0", "")} of the ${unit}s or more: they say little about any one ${unit}.`,
        ]
      : []),
  ];
}

/** The same of a dictionary that was just trained. */
export function trainedWarnings(report: SaeResult["reports"][number]): string[] {
  return dictionaryWarnings(report.features, { dead: report.dead_fraction, unit: trainedUnit(report) }).map(
    (warning) => `Layer ${report.layer}: ${warning}`,
  );
}

/** The unit on which a trained dictionary's features fire. */
export function trainedUnit({ training }: SaeResult["reports"][number]): string {
  return training === undefined ? "text" : "activation";
}

/** The maximum activation among examples, above 0 so that it can divide. */
export function greatestActivation(
  groups: readonly { examples: readonly { activation: number }[] }[],
): number {
  return greatest(groups.flatMap(({ examples }) => examples.map(({ activation }) => activation)));
}

/** The maximum of activations, above 0 so that it can divide. */
export function greatest(activations: readonly number[]): number {
  return Math.max(Number.MIN_VALUE, ...activations);
}

/** The shade of a token: its activation as a share of the maximum, from 0 to 1. */
export function shadeOf(activation: number, most: number): number {
  return Math.max(0, Math.min(1, activation / most));
}

/** A token with up to `before` preceding tokens. */
export function upTo(texts: FeaturesResult["texts"], text: number, token: number, before: number): string[] {
  return texts[text]?.tokens.slice(Math.max(0, token - before), token + 1) ?? [];
}
