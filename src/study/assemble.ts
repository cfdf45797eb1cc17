import { InvalidInput, UserError, validate } from "../contracts/index.js";
import { licenses, StudyPackage, studyLimits } from "../contracts/studies/index.js";
import { characters, cut } from "../text/words.js";
import type { Evidence } from "./evidence.js";
import type { Words } from "./words.js";

export interface Assembled {
  study: StudyPackage;
  /** The serialized package; every later step uses exactly these bytes. */
  bytes: Buffer;
}

/**
 * Combines words and evidence. If the package is too large, drops parts, largest first, and lists them in the omissions.
 * @throws UserError if it still does not fit
 */
export function assemble(words: Words, evidence: readonly Evidence[]): Assembled {
  const [first] = evidence;
  if (first === undefined) throw new UserError("A study requires at least one job or execution.");
  let entries = evidence.flatMap((piece) =>
    piece.entries.map((entry) =>
      piece.model.name === first.model.name ? entry : { ...entry, model: piece.model.name },
    ),
  );
  const spare = evidence.flatMap((piece) => piece.spare);
  const stated = [...words.omissions, ...evidence.flatMap(({ omissions }) => omissions)];
  for (;;) {
    const study = {
      schemaVersion: 1,
      ...texts(words),
      model: first.model,
      omissions: bounded(stated),
      entries,
    } as StudyPackage;
    const bytes = Buffer.from(JSON.stringify(study));
    const tooLarge = bytes.length > studyLimits.package_bytes;
    if (!tooLarge && entries.length <= studyLimits.entries) return { study, bytes };
    const sizeOf = (ids: string[]) =>
      tooLarge
        ? entries
            .filter(({ id }) => ids.includes(id))
            .reduce((sum, entry) => sum + Buffer.byteLength(JSON.stringify(entry)), 0)
        : ids.length;
    const largest = spare.reduce((best, next) => (sizeOf(next.ids) > sizeOf(best.ids) ? next : best), {
      what: "",
      ids: [],
    });
    if (largest.ids.length === 0) throw new UserError(tooMuch(bytes.length, entries.length));
    stated.push(
      tooLarge
        ? `${largest.what} (${sizeOf(largest.ids)} bytes): the limit of a package is ${studyLimits.package_bytes} bytes.`
        : `${largest.what} (${largest.ids.length} entries): the limit of a package is ${studyLimits.entries} entries.`,
    );
    entries = entries.filter(({ id }) => !largest.ids.includes(id));
    spare.splice(spare.indexOf(largest), 1);
  }
}

function tooMuch(bytes: number, entries: number): string {
  return (
    `The study does not fit into a package: ${bytes} bytes of at most ${studyLimits.package_bytes}, ` +
    `${entries} entries of at most ${studyLimits.entries}. Package fewer jobs.`
  );
}

function texts({ omissions: _, ...words }: Words): Omit<Words, "omissions"> {
  return words;
}

function bounded(omissions: readonly string[]): string[] {
  const lines = omissions.map((line) => cut(line, studyLimits.omission));
  if (lines.length <= studyLimits.omissions) return lines;
  const kept = lines.slice(0, studyLimits.omissions - 1);
  return [...kept, `${lines.length - kept.length} more omissions not listed here.`];
}

/** What is missing or wrong in a package, in sentences; empty if it is complete. */
export function faultsOf({ study }: Assembled): string[] {
  const blank = (["title", "question", "method", "limitations"] as const)
    .filter((name) => study[name].trim() === "")
    .map((name) => `${name} must not be blank.`);
  if (!licenses.some((license) => license === study.license)) {
    blank.push(`license must be ${licenses.join(" or ")}.`);
  }
  if (blank.length > 0) return blank;
  const { title, question, long_text, method, limitations } = studyLimits;
  const longest = { title, question, hypothesis: long_text, method, finding: long_text, limitations };
  const tooLong = Object.entries(longest).flatMap(([name, most]) => {
    const length = characters(study[name as keyof typeof longest]);
    return length > most ? [`${name}: at most ${most} characters, got ${length}.`] : [];
  });
  if (tooLong.length > 0) return tooLong;
  try {
    validate(StudyPackage, study);
    return [];
  } catch (error) {
    if (error instanceof InvalidInput) return [error.message];
    throw error;
  }
}

/** A generated description of the method, for the author to extend. */
export function methodText(evidence: readonly Evidence[]): string {
  const [first] = evidence;
  const lines = new Map<string, number>();
  for (const { method } of evidence) lines.set(method, (lines.get(method) ?? 0) + 1);
  return [
    ...(first === undefined ? [] : [`Model: ${first.model.name}. Runtime: ${first.model.runtime}.`]),
    ...[...lines].map(([line, times]) => `- ${times > 1 ? `${times} times ` : ""}${line}`),
  ].join("\n");
}
