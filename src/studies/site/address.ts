import type { Service } from "../service.js";

/** Path of a study, or of one version of it, which stays what it is. */
export function studyPath(id: string, version?: number): string {
  return version === undefined ? `/studies/${id}` : `/studies/${id}/v/${version}`;
}

/** Path of a comment, wherever among a study's pages of comments it stands. */
export function commentPath(id: string): string {
  return `/comments/${id}`;
}

export function absolute(service: Pick<Service, "origin">, path: string): string {
  return `${service.origin}${path}`;
}
