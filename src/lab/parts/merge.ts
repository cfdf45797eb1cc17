import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Config, Result } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import { writeDurably } from "../../files/durable.js";
import { FormatError } from "../../formats/format-error.js";
import { checkAlike, interleaved, partFiles } from "../../formats/parts.js";
import { runOf } from "../../operations/runs.js";
import { Artifacts } from "../artifacts.js";
import { type Part, readPart } from "./part-file.js";

/** A merged experiment, as `job.json` records it. */
export interface MergedJob {
  operation: Config["operation"];
  status: "completed";
  config: Config;
  result: Result;
}

export interface MergedParts {
  folder: string;
  parts: number;
  files: string[];
  job: MergedJob;
}

/**
 * Computes the result of an experiment from the files of all its parts. It has the numbers, and its files the bytes, of one machine.
 * @param out folder for the artifacts and `job.json`, created if its parent exists
 * @throws UserError if a part is missing, or belongs to another experiment
 */
export async function mergeParts(folder: string, out: string): Promise<MergedParts> {
  const parts = await readParts(folder);
  const [{ config, head, provenance }] = parts as [Part];
  const { split, layers } = runOf(config.operation);
  if (split === undefined) throw new UserError(`${config.operation} has no parts.`);
  const items = asked(() => interleaved(parts.map(({ items }) => items)));
  try {
    await mkdir(out, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
    const artifacts = new Artifacts(out);
    const found = await split.finish(config as never, { head, items }, artifacts);
    const ownLayers = ("layers" in config ? config.layers : undefined) ?? layers?.(found as never) ?? [];
    const result = {
      ...(found as object),
      artifacts: artifacts.names,
      provenance: { ...provenance, layers: ownLayers },
    } as unknown as Result;
    const job: MergedJob = { operation: config.operation, status: "completed", config, result };
    await writeDurably(join(out, "job.json"), `${JSON.stringify(job, null, 2)}\n`);
    return { folder: out, parts: parts.length, files: [...artifacts.names, "job.json"], job };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw code === undefined || code.startsWith("ERR_")
      ? error
      : new UserError(`Cannot write to ${out} (${code}).`);
  }
}

/** All parts in order. @throws UserError */
async function readParts(folder: string): Promise<Part[]> {
  const names = await readdir(folder);
  const files = asked(() => partFiles(folder, names));
  const parts = await Promise.all(files.map((name) => readPart(join(folder, name))));
  asked(() => checkAlike(parts, "experiment"));
  return parts;
}

/** @throws UserError with the sentence of a FormatError */
function asked<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof FormatError ? new UserError(error.message) : error;
  }
}
