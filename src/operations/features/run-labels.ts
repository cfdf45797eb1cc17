import { readFile, stat } from "node:fs/promises";
import { UserError } from "../../contracts/user-error.js";
import { FormatError } from "../../formats/format-error.js";
import { readLabels } from "../../formats/neuronpedia.js";

const fileBytes = 512 * 1024 ** 2;
const answerBytes = 16 * 1024 ** 2;
const answerMs = 30_000;

/**
 * Feature labels, from a Neuronpedia export file or from a host, which receives one request per feature.
 * @param from a path, or a web address to which a feature's index is appended
 * @throws UserError
 */
export async function labelsOf(from: string, features: readonly number[]): Promise<Map<number, string>> {
  if (!/^https?:\/\//.test(from)) return fromFile(from);
  const labels = new Map<number, string>();
  for (const feature of features) {
    const label = (await fromHost(`${from.replace(/\/$/, "")}/${feature}`)).get(feature);
    if (label !== undefined) labels.set(feature, label);
  }
  return labels;
}

async function fromFile(path: string): Promise<Map<number, string>> {
  try {
    const { size } = await stat(path);
    if (size > fileBytes) throw new UserError(`${path} has ${size} bytes; the limit is ${fileBytes}.`);
    return readLabels(await readFile(path));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (error instanceof FormatError) throw new UserError(`${path}: ${message}`);
    throw code === undefined ? error : new UserError(`Cannot read ${path} (${code}).`);
  }
}

async function fromHost(address: string): Promise<Map<number, string>> {
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(answerMs), redirect: "error" });
    const bytes = new Uint8Array(await answer.arrayBuffer());
    if (answer.status === 404) return new Map();
    if (!answer.ok) throw new UserError(`${address} returned HTTP ${answer.status}.`);
    if (bytes.length > answerBytes)
      throw new UserError(`${address} returned ${bytes.length} bytes; the limit is ${answerBytes}.`);
    return readLabels(bytes);
  } catch (error) {
    if (error instanceof UserError) throw error;
    const reason = error instanceof FormatError ? error.message : String((error as Error).cause ?? error);
    throw new UserError(`Cannot read labels from ${address}: ${reason.replace(/\.$/, "")}.`);
  }
}
