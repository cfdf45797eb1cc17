import { readFile, stat } from "node:fs/promises";
import { UserError } from "../../contracts/user-error.js";
import { FormatError } from "../../formats/format-error.js";
import { readLabels } from "../../formats/neuronpedia.js";

const fileBytes = 512 * 1024 ** 2;
const answerBytes = 16 * 1024 ** 2;
const answerMs = 30_000;

/**
 * What others call features: from a file of Neuronpedia's export, or from a host that was named, which is asked for these
 * features alone.
 * @param from a path, or an address that a feature's index is put behind
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
    if (size > fileBytes) throw new UserError(`${path} has ${size} bytes; at most ${fileBytes} are read.`);
    return readLabels(await readFile(path));
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (error instanceof FormatError) throw new UserError(`${path}: ${message}`);
    throw code === undefined ? error : new UserError(`${path} cannot be read (${code}).`);
  }
}

async function fromHost(address: string): Promise<Map<number, string>> {
  try {
    const answer = await fetch(address, { signal: AbortSignal.timeout(answerMs), redirect: "error" });
    const bytes = new Uint8Array(await answer.arrayBuffer());
    if (answer.status === 404) return new Map();
    if (!answer.ok) throw new UserError(`${address} answered ${answer.status}.`);
    if (bytes.length > answerBytes) throw new UserError(`${address} answered ${bytes.length} bytes.`);
    return readLabels(bytes);
  } catch (error) {
    if (error instanceof UserError) throw error;
    const reason = error instanceof FormatError ? error.message : String((error as Error).cause ?? error);
    throw new UserError(`${address} gave no labels: ${reason.replace(/\.$/, "")}.`);
  }
}
