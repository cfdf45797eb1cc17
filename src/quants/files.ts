import { basename, dirname, join } from "node:path";
import { modelFingerprint } from "../library/index.js";
import { readGgufHeader, readWeightPlaces } from "../models/gguf-header.js";
import { resolveModel } from "../models/resolve.js";
import { publicName } from "../text/words.js";
import type { QuantsFile } from "./result.js";
import { mixText } from "./words.js";

/** ggml's types by number; those without a name here are shown by number. */
// biome-ignore format: a table
const typeNames: Record<number, string> = {
  0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
  12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
  20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0",
  39: "MXFP4", 40: "NVFP4",
};

/** A form before anything is measured. */
export interface OpenedFile extends Omit<QuantsFile, "memory" | "speed"> {
  path: string;
  architecture: string;
  blocks: number;
}

/** Reads what the headers of a model's files say. @throws UserError */
export async function openFile(model: string): Promise<OpenedFile> {
  const { path, weights } = await resolveModel(model);
  const paths = weights.map(({ name }) => join(dirname(path), basename(name)));
  const [{ quantization, architecture, blocks }, fingerprint, places] = await Promise.all([
    readGgufHeader(path),
    modelFingerprint(path),
    readWeightPlaces(paths),
  ]);
  const types = new Map<string, { tensors: number; weights: number }>();
  const starts = new Map<string, number>();
  let all = 0;
  for (const { path: part, offset, type, shape } of places.weights.values()) {
    const name = typeNames[type] ?? `type ${type}`;
    const count = shape.reduce((product, length) => product * length, 1);
    const known = types.get(name) ?? { tensors: 0, weights: 0 };
    types.set(name, { tensors: known.tensors + 1, weights: known.weights + count });
    starts.set(part, Math.min(starts.get(part) ?? Number.POSITIVE_INFINITY, offset));
    all += count;
  }
  const bytes = weights.reduce((sum, file) => sum + file.bytes, 0);
  const headers = [...starts.values()].reduce((sum, start) => sum + start, 0);
  const text = (key: string) => String(places.metadata.get(`quantize.imatrix.${key}`) ?? "");
  const imatrix = { file: publicName(text("file")), dataset: publicName(text("dataset")) };
  return {
    name: quantization ?? basename(path, ".gguf"),
    file: publicName(path),
    ...{ path, architecture, blocks: blocks ?? 0, fingerprint, quantization, bytes },
    bits_per_weight: (8 * (bytes - headers)) / all,
    types: [...types]
      .map(([type, counts]) => ({ type, ...counts }))
      .sort((a, b) => b.weights - a.weights || (a.type < b.type ? -1 : 1)),
    imatrix: imatrix.file === "" && imatrix.dataset === "" ? null : imatrix,
  };
}

type Named = Pick<QuantsFile, "name" | "file" | "types" | "imatrix" | "fingerprint">;

/** Gives forms with the same file type different names: by their importance matrix, their mix of types, or their file. */
export function distinguish<F extends Named>(forms: readonly F[]): F[] {
  return forms.map((form) => {
    const alike = forms.filter(({ name }) => name === form.name);
    const parts = [matrixText, mixText].flatMap((text) =>
      new Set(alike.map(text)).size > 1 ? [text(form)] : [],
    );
    const told = (one: F) => [matrixText(one), mixText(one)].join();
    if (alike.filter((one) => told(one) === told(form)).length > 1) {
      const same = alike.filter((one) => one.file === form.file).length > 1;
      parts.push(same ? form.fingerprint.slice(0, 8) : form.file);
    }
    return parts.length === 0 ? form : { ...form, name: `${form.name} (${parts.join("; ")})` };
  });
}

const matrixText = ({ imatrix }: Named) =>
  imatrix === null ? "no imatrix" : `imatrix ${imatrix.dataset || imatrix.file}`;
