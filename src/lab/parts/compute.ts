import { join } from "node:path";
import type { Config, Provenance } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import { version } from "../../contracts/version.js";
import { writeDurably } from "../../files/durable.js";
import { itemsOf, partFile } from "../../formats/parts.js";
import { modelFingerprint } from "../../library/index.js";
import type { OperationInput, Split } from "../../operations/run.js";
import { experimentPart } from "./part-file.js";

/** A part to compute: i of n, and the folder of all parts' files. */
export interface PartTask {
  part: [number, number];
  folder: string;
}

/**
 * Computes a part of an experiment and writes its file. A part that is computed twice, also at the same time, is the same file.
 * @returns the file's name @throws UserError if the operation, or this experiment, has fewer items than parts
 */
export async function computePart(
  split: Split<never, never> | undefined,
  input: OperationInput<Config>,
  { part, folder }: PartTask,
  facts: { provenance: Provenance; versions: Record<string, string> },
): Promise<string> {
  const [index, count] = part;
  if (split === undefined) {
    throw new UserError(`${input.config.operation} cannot be divided into parts.`);
  }
  const all = split.count(input.config as never);
  if (count > all) {
    throw new UserError(`The experiment has ${all} items, which cannot be divided into ${count} parts.`);
  }
  const own = itemsOf(all, [index, count]);
  const fingerprints = [await modelFingerprint(input.model.info.path)];
  const openOther: typeof input.openOther = async (id, revision) => {
    const model = await input.openOther(id, revision);
    fingerprints.push(await modelFingerprint(model.info.path));
    return model;
  };
  const computed = await split.compute({ ...input, openOther } as never, own);
  const text = experimentPart(
    part,
    { config: input.config, ...computed },
    { made: { tapline: version, ...facts.versions, fingerprints }, provenance: facts.provenance },
  );
  await input.clock.measure("artifact", () => writeDurably(join(folder, partFile(part)), text));
  return partFile(part);
}
