import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Config, Result } from "../../contracts/index.js";
import { UserError } from "../../contracts/user-error.js";
import { writeDurably } from "../../files/durable.js";
import { itemsOf } from "../../operations/run-parts.js";
import { runOf } from "../../operations/runs.js";
import { Artifacts } from "../artifacts.js";
import { differenceOf } from "../difference.js";
import { isPartFile, type Part, partFile, readPart } from "./part-file.js";

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
  const counts = parts.map(({ items }) => items.length);
  const items: unknown[] = [];
  const total = counts.reduce((sum, count) => sum + count, 0);
  for (const [index, part] of parts.entries()) {
    const own = itemsOf(total, [index, parts.length]);
    if (own.length !== part.items.length) {
      throw new UserError(
        `${partFile(part.part)} has ${part.items.length} items; with ${total} in all, it should have ${own.length}.`,
      );
    }
    for (const [n, item] of own.entries()) items[item] = part.items[n];
  }
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
  const names = (await readdir(folder)).filter(isPartFile);
  const counts = [...new Set(names.map((name) => Number(/-of-(\d+)/.exec(name)?.[1])))].sort((a, b) => a - b);
  const [count] = counts as [number];
  if (counts.length > 1) {
    throw new UserError(`${folder} contains parts of several divisions: into ${counts.join(" and ")} parts.`);
  }
  const wanted = Array.from({ length: count }, (_, part) => partFile([part, count]));
  const missing = wanted.filter((name) => !names.includes(name));
  if (missing.length > 0) {
    throw new UserError(`${folder} lacks ${missing.length} of ${count} parts: ${missing.join(", ")}.`);
  }
  const parts = await Promise.all(wanted.map((name) => readPart(join(folder, name))));
  const [first] = parts as [Part];
  for (const [n, part] of parts.entries()) {
    if (part.configuration === first.configuration) continue;
    const difference = differenceOf(first.source, part.source) ?? "their configurations differ";
    throw new UserError(
      `${wanted[n]} (${part.configuration.slice(0, 8)}) belongs to another experiment than ${wanted[0]} (${first.configuration.slice(0, 8)}): ` +
        `${difference.replace(/ there\b/, ` in ${wanted[0]}`).replace(/ here$/, ` in ${wanted[n]}`)}.`,
    );
  }
  return parts;
}
