import { type Job, terminalStatuses } from "../contracts/index.js";
import { researchEnvironment } from "../contracts/research.js";
import { UserError } from "../contracts/user-error.js";
import type { Words } from "../study/index.js";
import type { StudiesService, StudyDraft } from "./wire.js";

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

/** The service in the workbench's environment, as for `tapline study`. */
export function studiesService(): StudiesService {
  return { url: process.env[researchEnvironment.url] ?? null };
}

/**
 * Saves a study as a private draft; a person reviews and publishes it on the website.
 * @param service instead of that of the environment
 * @throws UserError while something is missing, or with the studies service's message
 */
export async function saveDraft(
  jobs: readonly Job[],
  words: Words,
  service: { url: string; token: string } | undefined,
  signal: AbortSignal,
): Promise<{ id: string; review_url: string }> {
  const { faults, package: bytes } = await studyDraft(jobs, words);
  if (bytes === undefined) throw new UserError(`Not ready to save yet: ${faults.join(" ")}`);
  const { ResearchClient, ResearchError } = await import("../client/index.js");
  try {
    const client = new ResearchClient(service);
    const { id, review_url } = await client.savePrivateDraft(Buffer.from(bytes), { signal });
    return { id, review_url };
  } catch (error) {
    if (error instanceof ResearchError) throw new UserError(error.message);
    throw error;
  }
}
