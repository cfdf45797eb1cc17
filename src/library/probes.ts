import type { StoredProbe } from "../contracts/library.js";
import { UserError } from "../contracts/user-error.js";
import type { Tensor } from "../formats/safetensors.js";
import {
  checkBlockOutput,
  checkFinite,
  checkModel,
  type ModelIdentity,
  modelOf,
  pointOf,
} from "./identity.js";
import { type Shelved, SmallShelf } from "./shelf.js";

/** A linear probe as the Lab stores it: sigmoid(((h - mean) / std) . weight + bias). */
export interface ProbeNumbers {
  /** All three [hidden]. */
  weight: Float32Array;
  mean: Float32Array;
  std: Float32Array;
  bias: number;
}

/** A probe whose standardisation is part of its weight and bias. */
export interface FoldedProbe {
  layer: number;
  point: StoredProbe["point"];
  weight: Float64Array;
  bias: number;
  sha256: string;
}

/** Evaluation of a probe; see StoredProbe. */
export type ProbeReport = Pick<StoredProbe, "separation" | "shuffled_separation" | "excluded">;

/** Whether a value from a file is an evaluation. */
export function isProbeReport(value: unknown): value is ProbeReport {
  if (typeof value !== "object" || value === null) return false;
  const {
    separation = 0,
    shuffled_separation: shuffled = 0,
    excluded = {},
    ...others
  } = value as Record<string, unknown>;
  const isShare = (one: unknown) => typeof one === "number" && one >= 0 && one <= 1;
  const isCount = (one: unknown) => Number.isSafeInteger(one) && (one as number) >= 0;
  if (typeof excluded !== "object" || excluded === null) return false;
  return (
    isShare(separation) &&
    isShare(shuffled) &&
    Object.values(excluded).every(isCount) &&
    Object.keys(others).length === 0
  );
}

export interface ProbeSaid {
  note: string;
  report?: ProbeReport;
  /** Point of its block. Default: the output. */
  point?: StoredProbe["point"];
}

const fields = ["weight", "mean", "std"] as const;

/** Saved linear probes by name, each for one layer: .safetensors files with weight, bias, mean and std. */
export class Probes extends SmallShelf<StoredProbe> {
  constructor(home: string) {
    super(home, "probe");
  }

  /** @throws UserError if the layer or a width does not fit the model, or a number is invalid */
  async put(
    name: string,
    layer: number,
    probe: ProbeNumbers,
    model: ModelIdentity,
    { note, report, point = "block_out" }: ProbeSaid,
  ): Promise<StoredProbe> {
    if (layer >= model.nLayer) {
      throw new UserError(`The probe is for layer ${layer}; the model has layers 0 to ${model.nLayer - 1}.`);
    }
    const tensors = new Map<string, Tensor>();
    for (const field of fields) {
      const data = probe[field];
      if (data.length !== model.nEmbd) {
        throw new UserError(
          `The probe's ${field} has ${data.length} values; the model's hidden size is ${model.nEmbd}.`,
        );
      }
      tensors.set(field, { shape: [data.length], data });
    }
    tensors.set("bias", { shape: [], data: Float32Array.of(probe.bias) });
    checkFinite(`The probe ${name}`, tensors);
    if (probe.std.some((value) => value <= 0)) throw new UserError(`The probe ${name}: std must be above 0.`);
    await this.keep(name, tensors, {
      tapline: "probe",
      model: model.id,
      model_fingerprint: model.fingerprint,
      point,
      operation: "probe",
      layer: String(layer),
      note,
      ...(report && { report: JSON.stringify(report) }),
    });
    return this.get(name);
  }

  async get(name: string): Promise<StoredProbe> {
    return describe(await this.file(name));
  }

  /**
   * A probe of block outputs; see {@link folded}.
   * @throws UserError if it was made for another model or reads another point
   */
  async ofBlockOutput(name: string, model: ModelIdentity): Promise<FoldedProbe> {
    const found = await this.folded(name, model);
    checkBlockOutput(`The probe ${name}`, found.point, found.layer);
    return found;
  }

  /**
   * A probe as a single product, sigmoid(h . weight + bias), with its standardisation folded in.
   * @throws UserError if it was made for another model
   */
  async folded(name: string, model: ModelIdentity): Promise<FoldedProbe> {
    const file = await this.file(name);
    checkModel(`The probe ${name}`, file.metadata, model);
    const { layer, point } = describe(file);
    const [weight, mean, std] = fields.map((field) => numbers(file, field)) as [
      Float32Array,
      Float32Array,
      Float32Array,
    ];
    let bias = numbers(file, "bias")[0] as number;
    const folded = Float64Array.from(weight, (value, index) => value / (std[index] as number));
    for (const [index, value] of folded.entries()) bias -= value * (mean[index] as number);
    return { layer, point, weight: folded, bias, sha256: file.sha256 };
  }
}

function numbers(file: Shelved, field: string): Float32Array {
  const tensor = file.tensors.get(field);
  if (tensor === undefined) throw new UserError(`The probe ${file.name} has no ${field}.`);
  return tensor.data;
}

function describe(file: Shelved): StoredProbe {
  return {
    name: file.name,
    sha256: file.sha256,
    model: modelOf(file.metadata),
    n_embd: numbers(file, "weight").length,
    point: pointOf(`The probe ${file.name}`, file.metadata.point),
    operation: "probe",
    layer: Number(file.metadata.layer),
    ...(JSON.parse(file.metadata.report ?? "{}") as ProbeReport),
    note: file.metadata.note ?? "",
    created: file.created,
  };
}
