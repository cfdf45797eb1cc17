import type { Service } from "../service.js";

/** Path of a study, or of one version of it (a permalink). */
export function studyPath(id: string, version?: number): string {
  return version === undefined ? `/studies/${id}` : `/studies/${id}/v/${version}`;
}

/** Path of a model's page, by the hash of its file. */
export function modelPath(hash: string): string {
  return `/models/${hash}`;
}

/** Permalink of a comment, which redirects to the right page of the discussion. */
export function commentPath(id: string): string {
  return `/comments/${id}`;
}

export function absolute(service: Pick<Service, "origin">, path: string): string {
  return `${service.origin}${path}`;
}
