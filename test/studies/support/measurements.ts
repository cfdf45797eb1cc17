/** Studies of `tapline quants`, written by hand: what their machine-readable block says. */
import { createHash } from "node:crypto";

export const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");

type Three = readonly [value: number, low: number, high: number];
const figure = ([value, low, high]: Three) => ({ value, low, high });

interface Form {
  bytes?: number;
  kl?: Three;
  same?: Three;
  drift?: Three | null;
  layer?: number;
  survival?: Three | null;
  dictionary?: string;
}

/** One form; its file's hash is that of its name. */
export function formOf(name: string, form: Form = {}) {
  const { bytes = 4_000_000, layer = 29, dictionary = "res-12" } = form;
  const {
    kl = [0.02, 0.01, 0.03],
    same = [0.9, 0.88, 0.92],
    drift = [0.08, 0.07, 0.09],
    survival = null,
  } = form;
  return {
    ...{ name, file: `${name}.gguf`, fingerprint: hashOf(name), bytes, bits_per_weight: 4.5 },
    ...{ divergence: figure(kl), agreement: figure(same) },
    drift:
      drift === null
        ? []
        : [
            { layer: layer - 1, relative_difference: figure([0.5, 0.5, 0.5]) },
            { layer, relative_difference: figure(drift) },
          ],
    ...(survival === null
      ? {}
      : {
          survival: {
            ...{ dictionary, sha256: hashOf(dictionary), layer: 12, features: 100, least: 3 },
            surviving: figure(survival),
          },
        }),
  };
}

/** A result for a model's forms; `of` distinguishes it from other results. */
export function quantsResult(
  model: string,
  of: string,
  forms: readonly object[],
  { texts = "texts" }: { texts?: string } = {},
) {
  return {
    ...{ kind: "tapline quants", schema_version: 1 },
    reference: {
      ...{ file: `${model}-F16.gguf`, fingerprint: hashOf(model), bytes: 16_000_000, bits_per_weight: 16.03 },
    },
    forms,
    settings: { texts_sha256: hashOf(texts) },
    sha256: hashOf(of),
  };
}

export const quantsBlock = (result: object) =>
  `\`\`\`tapline-quants\n${JSON.stringify({ schemaVersion: 1, result })}\n\`\`\``;
