import { UserError } from "../../contracts/user-error.js";

/** A parsed hub id. */
export interface HubId {
  /** `owner/name` */
  repository: string;
  /** Quantisation after a colon. */
  quant?: string;
  /** Path of a file in the repository. */
  file?: string;
}

const part = "[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?";
const pattern = new RegExp(`^(${part}/${part})(?::([A-Za-z0-9._-]+)|/(\\S+\\.gguf))?$`, "i");

/** Parses `owner/name`, `owner/name:quant` and `owner/name/file.gguf`; undefined for anything else. */
export function parseHubId(text: string): HubId | undefined {
  const [, repository, quant, file] = pattern.exec(text) ?? [];
  if (repository === undefined || /--|\.\.|\.gguf$/i.test(repository)) return undefined;
  if (file !== undefined && !isSafePath(file)) return undefined;
  return { repository, ...(quant && { quant }), ...(file && { file }) };
}

/** A file or a folder of a repository. */
export interface HubPlace {
  /** `owner/name` */
  repository: string;
  /** Path in the repository; empty for all of it. */
  path: string;
}

const placePattern = new RegExp(`^(${part}/${part})(?:/(\\S+?))?/?$`);

/** Parses `owner/name`, `owner/name/folder` and `owner/name/folder/file`; undefined for anything else. */
export function parseHubPlace(text: string): HubPlace | undefined {
  const [, repository, path = ""] = placePattern.exec(text) ?? [];
  if (repository === undefined || /--|\.\./.test(repository)) return undefined;
  return path === "" || isSafePath(path) ? { repository, path } : undefined;
}

/** Whether a repository's path stays inside the folder that it is joined to. */
export function isSafePath(path: string): boolean {
  return (
    !/[\\\0:]/.test(path) &&
    !path.startsWith("/") &&
    path.split("/").every((name) => name !== "" && name !== "." && name !== "..")
  );
}

const commitPattern = /^[0-9a-f]{40}$/;
export const isCommit = (revision: string): boolean => commitPattern.test(revision);

/** @throws UserError if it cannot be a branch, tag or commit; the revision becomes part of a path */
export function checkRevision(revision: string): void {
  if (/[\s~^?*[]/.test(revision) || !isSafePath(revision)) {
    throw new UserError(`"${revision}" is not a valid revision (a branch, tag or commit).`);
  }
}
