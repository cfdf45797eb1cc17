import { readdir, readFile } from "node:fs/promises";
import type { Config, Provenance } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import { FormatError } from "../../formats/format-error.js";
import { isPartFile, type PartHead, parsePart, partText } from "../../formats/parts.js";
import type { Computed } from "../../operations/run.js";

const format = "tapline part 1";

/** A part of an experiment, in a file. */
export interface Part extends PartHead, Computed<unknown, unknown> {
  config: Config;
  provenance: Provenance;
}

/** Whether a folder has parts in one file each: of an experiment other than an extraction, or of a card. */
export async function hasParts(folder: string): Promise<boolean> {
  return (await readdir(folder).catch(() => [])).some(isPartFile);
}

/** Fields of a configuration that name files, which may differ between machines; their fingerprints are hashed instead. */
const places = new Set(["model", "revision", "other", "other_revision"]);

/** A part's contents. Its hash covers configuration and head, without paths of models. */
export function experimentPart(
  part: readonly [number, number],
  { config, head, items }: Computed<unknown, unknown> & { config: Config },
  { made, provenance }: { made: Record<string, unknown>; provenance: Provenance },
): string {
  const settings = Object.fromEntries(Object.entries(config).filter(([name]) => !places.has(name)));
  return partText(format, part, { ...settings, ...made, head }, { config, provenance, head, items });
}

/** @throws UserError if it is not a part, or not whole */
export async function readPart(path: string): Promise<Part> {
  try {
    return parsePart<Part>(await readFile(path, "utf8"), format);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw new UserError(
      `${path} is not a part of an experiment: ${error instanceof FormatError ? message : code}.`,
    );
  }
}
