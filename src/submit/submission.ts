import { createHash } from "node:crypto";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Operation } from "../contracts/index.js";
import type { EngineName } from "../contracts/names.js";
import { UserError } from "../contracts/user-error.js";
import { makeFolderDurably, writeDurably } from "../files/durable.js";

/** An extraction, or another experiment, that runs in parts outside of this process, with everything needed to follow, repeat and merge it. */
export interface Submission {
  /** `s-` and eight hexadecimal digits of the hash of `settings` and `out`. */
  id: string;
  submitted: string;
  engine: EngineName;
  /** Default: extract. */
  operation?: Operation;
  /** The submission to the Lab, without `shard` and `out`. */
  settings: Record<string, unknown>;
  /** Where the merged files go. */
  out: string;
  parts: number;
  /** Most parts at once; of `local`, the processes that take them. */
  workers: number;
  /** Options for sbatch, or the devices of local workers. */
  engineOptions: string[];
  /** Started parts, oldest first. */
  batches: Batch[];
  stopped: boolean;
  /** Whether its files are merged, and those of its parts removed. */
  merged?: boolean;
}

/** Parts that were started together. */
export interface Batch {
  /** The engine's name for them: a Slurm job id, or the process ids of workers. */
  handle: string;
  parts: number[];
  /** Whether its part runs a second time, because the first run is far slower than the other parts. */
  copy?: true;
}

/** The numbers of a submission's parts. */
export const partsOf = ({ parts }: Pick<Submission, "parts">) =>
  Array.from({ length: parts }, (_, part) => part);

/** The folder of the parts' files, logs and settings; removed once they are merged. */
export const partsFolder = ({ out }: Pick<Submission, "out">) => join(out, "parts");
/** The folder of a part that runs a second time. */
export const copyFolder = (submission: Pick<Submission, "out">, part: number | string) =>
  join(partsFolder(submission), `copy-${part}`);
export const logOf = (submission: Pick<Submission, "out">, part: number | string, copy = false) =>
  join(partsFolder(submission), `part-${part}${copy ? "-copy" : ""}.log`);
/** An empty file whose time is that of the part's last start. */
export const startedFile = (submission: Pick<Submission, "out">, part: number | string, copy = false) =>
  join(partsFolder(submission), `part-${part}${copy ? "-copy" : ""}.started`);
export const settingsFile = (submission: Pick<Submission, "out" | "operation">) =>
  join(partsFolder(submission), `${submission.operation ?? "extract"}.json`);

export function idOf(settings: Submission["settings"], out: string, operation?: Operation): string {
  return `s-${createHash("sha256")
    .update(JSON.stringify([settings, out, ...(operation === undefined ? [] : [operation])]))
    .digest("hex")
    .slice(0, 8)}`;
}

const folderOf = (home: string) => join(home, "submitted");

/** Writes a submission's record. */
export async function save(home: string, submission: Submission): Promise<void> {
  await makeFolderDurably(folderOf(home));
  await writeDurably(
    join(folderOf(home), `${submission.id}.json`),
    `${JSON.stringify(submission, null, 1)}\n`,
  );
}

/** All submissions of this user, newest first. */
export async function submissions(home: string): Promise<Submission[]> {
  const names = await readdir(folderOf(home)).catch(() => []);
  const all = await Promise.all(
    names
      .filter((name) => /^s-[0-9a-f]{8}\.json$/.test(name))
      .map(async (name) => JSON.parse(await readFile(join(folderOf(home), name), "utf8")) as Submission),
  );
  return all.sort((a, b) => b.submitted.localeCompare(a.submitted));
}

/** A submission by its id or a prefix of it. @throws UserError */
export async function findSubmission(home: string, name: string): Promise<Submission> {
  const found = (await submissions(home)).filter(({ id }) => id.startsWith(name));
  const [one] = found;
  if (one === undefined)
    throw new UserError(`There is no submission ${name}; tapline jobs --submitted lists them.`);
  if (found.length > 1) throw new UserError(`${name} is the start of ${found.length} submissions' ids.`);
  return one;
}

/** Creates the folder of the parts and writes what each part reads. @throws UserError */
export async function prepareFolder(submission: Submission): Promise<void> {
  try {
    for (const folder of [submission.out, partsFolder(submission)]) {
      await mkdir(folder, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error;
      });
    }
    await writeDurably(settingsFile(submission), `${JSON.stringify(submission.settings, null, 1)}\n`);
  } catch (error) {
    throw new UserError(`Cannot write to ${submission.out} (${(error as NodeJS.ErrnoException).code}).`);
  }
}
