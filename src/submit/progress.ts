import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { partFile } from "../formats/parts.js";
import type { ExtractionIndex } from "../lab/extraction/folder.js";
import { indexName } from "../lab/extraction/plan.js";
import { partsFolder, partsOf, type Submission, startedFile } from "./submission.js";

/** How far one part is, by its files. */
export interface PartProgress {
  part: number;
  complete: boolean;
  /** Tokens in finished files. */
  done: number;
  /** Tokens of all its texts; unknown until it has counted them. */
  tokens?: number;
  /** When it was last started, and when it became complete, by the times of its files in milliseconds. */
  started?: number;
  ended?: number;
}

export interface SubmissionProgress {
  parts: PartProgress[];
  complete: number;
  done: number;
  /** Tokens of all parts; parts that have not counted theirs are taken for as large as the others. Unknown before any has. */
  tokens?: number;
}

/** How far a submission is. Reads only its folder, so it works on every machine that sees it. */
export async function progressOf(
  submission: Pick<Submission, "out" | "parts" | "operation">,
): Promise<SubmissionProgress> {
  const folder = partsFolder(submission);
  const parts = await Promise.all(
    partsOf(submission).map(async (part) => {
      const found = await progressIn(folder, submission, part);
      const started = await timeOf(startedFile(submission, part));
      if (started === undefined) return found;
      const ended = found.complete ? await timeOf(lastFile(submission, part)) : undefined;
      return { ...found, started, ...(ended !== undefined && { ended }) };
    }),
  );
  const known = parts.flatMap(({ tokens }) => tokens ?? []);
  const counted = known.reduce((sum, tokens) => sum + tokens, 0);
  return {
    parts,
    complete: parts.filter(({ complete }) => complete).length,
    done: parts.reduce((sum, { done }) => sum + done, 0),
    ...(known.length > 0 && { tokens: Math.round((counted / known.length) * parts.length) }),
  };
}

/** The file that completes a part. */
export function lastFile(submission: Pick<Submission, "out" | "parts" | "operation">, part: number): string {
  const name = (submission.operation ?? "extract") === "extract" ? indexName : partFile;
  return join(partsFolder(submission), name([part, submission.parts]));
}

/** When a file was last written, in milliseconds; undefined if there is none. */
function timeOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ mtimeMs }) => mtimeMs,
    () => undefined,
  );
}

/** How far a part is whose files are in a folder. */
export function progressIn(
  folder: string,
  { operation = "extract", parts }: Pick<Submission, "parts" | "operation">,
  part: number,
): Promise<PartProgress> {
  return (operation === "extract" ? extractProgress : fileProgress)(folder, part, parts);
}

/** Of experiments whose parts are one file each; every part counts as one token. */
async function fileProgress(folder: string, part: number, count: number): Promise<PartProgress> {
  const complete = await stat(join(folder, partFile([part, count]))).then(
    () => true,
    () => false,
  );
  return { part, complete, done: complete ? 1 : 0, tokens: 1 };
}

async function extractProgress(folder: string, part: number, count: number): Promise<PartProgress> {
  let index: ExtractionIndex;
  try {
    index = JSON.parse(await readFile(join(folder, indexName([part, count])), "utf8")) as ExtractionIndex;
  } catch {
    return { part, complete: false, done: 0 };
  }
  const finished = await Promise.all(
    index.shards.map(({ file, tokens, bytes }) =>
      stat(join(folder, file)).then(
        ({ size }) => (size === bytes ? tokens : 0),
        () => 0,
      ),
    ),
  );
  return {
    ...{ part, complete: index.complete, tokens: index.tokens },
    done: finished.reduce((sum, tokens) => sum + tokens, 0),
  };
}
