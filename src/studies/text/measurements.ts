import { type Compiled, compile } from "../../contracts/compile.js";
import {
  blockLabels,
  labelledBlocks,
  QuantsBlock,
  QuantsFigures,
  type StudyPackage,
} from "../../contracts/studies/index.js";
import type { Measured } from "../../findings/uncertainty.js";
import { parsed } from "./blocks.js";
import { displayable } from "./display.js";

/** A study's figures of one form of a model. */
export interface Measurement {
  name: string;
  file: string;
  /** Hash of the form's file. */
  form: string;
  bytes: number;
  bits: number;
  /** KL divergence from the model, in nats per token. */
  divergence: Measured;
  /** Share of predictions with the same most probable token. */
  agreement: Measured;
  /** Relative difference of block outputs at the last layer measured. */
  drift: (Measured & { layer: number }) | null;
  /** Surviving share of a dictionary's features. */
  survival: (Measured & { dictionary: string; sha256: string; layer: number; least: number }) | null;
}

/** A study's figures of the forms of one model. */
export interface Measurements {
  /** Hash of the model's file. */
  model: string;
  file: string;
  bytes: number;
  bits: number;
  /** Hash of the texts. */
  texts: string;
  /** Hash of the complete result. */
  result: string;
  forms: Measurement[];
}

/** The measurements in a package: its first valid block, or else the complete result in its notes. Null without any. */
export function measurementsIn(bytes: Buffer): Measurements | null {
  // Most packages have none: skip parsing them.
  if (!bytes.includes("tapline quants")) return null;
  const study = JSON.parse(bytes.toString("utf8")) as StudyPackage;
  for (const text of labelledBlocks(study, blockLabels.quants)) {
    const block = parsed(text);
    if (!validator("block").Check(block)) continue;
    const found = measurementsOf((block as QuantsBlock).result);
    if (found !== null) return found;
  }
  return measurementsInNotes(study);
}

const start = '{"kind":"tapline quants"';
/** Notes of 100,000 characters that fit into a package. */
const mostParts = 10;

/** Studies from before the block have the complete result as JSON in a note, or split over several notes. */
function measurementsInNotes({ entries }: StudyPackage): Measurements | null {
  const first = entries.findIndex(({ note }) => note?.startsWith(start));
  const { parent } = entries[first] ?? {};
  let text = "";
  const parts = first === -1 ? [] : entries.slice(first, first + mostParts);
  for (const { note = "", parent: above } of parts) {
    if (note === "" || above !== parent) return null;
    text += note;
    if (!note.endsWith("}")) continue;
    const value = parsed(text);
    if (value !== undefined)
      return validator("figures").Check(value) ? measurementsOf(value as QuantsFigures) : null;
  }
  return null;
}

const validators = new Map<string, Compiled>();

function validator(name: "block" | "figures"): Compiled {
  let compiled = validators.get(name);
  if (compiled === undefined) {
    compiled = compile(name === "block" ? QuantsBlock : QuantsFigures);
    validators.set(name, compiled);
  }
  return compiled;
}

/** Null if the ends of an interval are in the wrong order. */
function measurementsOf({ reference, forms, settings, sha256 }: QuantsFigures): Measurements | null {
  const found = forms.map((form): Measurement => {
    const last = form.drift.at(-1);
    const { survival } = form;
    return {
      name: form.name,
      file: form.file,
      form: form.fingerprint,
      bytes: form.bytes,
      bits: form.bits_per_weight,
      divergence: figureOf(form.divergence),
      agreement: figureOf(form.agreement),
      drift: last === undefined ? null : { ...figureOf(last.relative_difference), layer: last.layer },
      survival:
        survival === undefined || !("surviving" in survival)
          ? null
          : {
              ...figureOf(survival.surviving),
              dictionary: survival.dictionary,
              sha256: survival.sha256,
              layer: survival.layer,
              least: survival.least,
            },
    };
  });
  const ordered = found.every(({ divergence, agreement, drift, survival }) =>
    [divergence, agreement, drift, survival].every((figure) => figure === null || figure.low <= figure.high),
  );
  if (!ordered) return null;
  return {
    model: reference.fingerprint,
    file: displayable(reference.file),
    bytes: reference.bytes,
    bits: reference.bits_per_weight,
    texts: settings.texts_sha256,
    result: sha256,
    forms: found,
  };
}

/** Only the numbers, whatever else was given. */
function figureOf({ value, low, high }: Measured): Measured {
  return { value, low, high };
}
