import { type Job, terminalStatuses } from "../contracts/index.js";
import { UserError } from "../contracts/user-error.js";
import type { Words } from "../study/index.js";
import type { StudyDraft } from "./wire.js";

/**
 * A study of jobs, as `tapline study package` makes it. The author writes the text; the package only exists once nothing
 * is missing.
 * @throws UserError if a job has not ended, or the jobs do not fit into a package
 */
export async function studyDraft(jobs: readonly Job[], words: Words): Promise<StudyDraft> {
  const active = jobs.find(({ status }) => !terminalStatuses.includes(status));
  if (active !== undefined) {
    throw new UserError(`Job ${active.id} is still ${active.status}; draft a study once it has ended.`);
  }
  const { assemble, faultsOf, jobEvidence, methodText, writeWords } = await import("../study/index.js");
  const evidence = jobs.map(jobEvidence);
  const assembled = assemble(words, evidence);
  const faults = faultsOf(assembled);
  const { entries, omissions } = assembled.study;
  return {
    method: methodText(evidence),
    faults,
    ...(faults.length === 0 && { package: assembled.bytes.toString("utf8") }),
    words: writeWords(words),
    entries: entries.map(({ kind, title }) => ({ kind, title })),
    omissions: omissions.slice(words.omissions.length),
  };
}
