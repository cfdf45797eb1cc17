import {
  blockLabels,
  mostQuantsForms,
  type QuantsBlock,
  type QuantsFigures,
  studyLimits,
} from "../contracts/studies/index.js";
import { cut } from "../text/words.js";
import type { Quants, QuantsForm } from "./result.js";

/** The figures that the studies service lists by model, as a fenced block. JSON on one line cannot close the fence. */
export function quantsBlock({ kind, schema_version, reference, forms, settings, sha256 }: Quants): string {
  const { file, fingerprint, bytes, bits_per_weight } = reference;
  const result: QuantsFigures = {
    kind,
    schema_version,
    reference: { file, fingerprint, bytes, bits_per_weight },
    forms: forms.slice(0, mostQuantsForms).map(figuresOf),
    settings: { texts_sha256: settings.texts_sha256 },
    sha256,
  };
  const block: QuantsBlock = { schemaVersion: 1, result };
  return `\`\`\`${blockLabels.quants}\n${JSON.stringify(block)}\n\`\`\``;
}

function figuresOf(form: QuantsForm): QuantsFigures["forms"][number] {
  const { file, fingerprint, bytes, bits_per_weight, divergence, agreement, drift, survival } = form;
  return {
    name: cut(form.name, studyLimits.model_name),
    ...{ file, fingerprint, bytes, bits_per_weight, divergence, agreement },
    drift: drift.slice(-1).map(({ layer, relative_difference }) => ({ layer, relative_difference })),
    ...(survival === undefined ? {} : { survival: survivalOf(survival) }),
  };
}

/** Without features, their shares are not numbers. */
function survivalOf(survival: NonNullable<QuantsForm["survival"]>) {
  const { dictionary, sha256, layer, features, least, surviving } = survival;
  return features === 0
    ? { features: 0 as const }
    : { dictionary, sha256, layer, features, least, surviving };
}
