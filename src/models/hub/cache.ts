import { randomBytes } from "node:crypto";
import {
  copyFile,
  link,
  lstat,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { isCommit } from "./id.js";

/**
 * One repository in the hub's cache, with huggingface_hub's layout: `blobs/<hash>` holds each file once,
 * `snapshots/<commit>/<path>` links to it, `refs/<revision>` holds the commit of a revision.
 */
export class CachedRepository {
  readonly repository: string;
  readonly folder: string;
  readonly #locks: string;

  constructor(cache: string, repository: string) {
    const name = `models--${repository.replaceAll("/", "--")}`;
    this.repository = repository;
    this.folder = join(cache, name);
    this.#locks = join(cache, ".locks", name);
  }

  blob(hash: string): string {
    return join(this.folder, "blobs", hash);
  }

  /**
   * The partial download of a blob. The name is specific to tapline, so that other tools can download the same file
   * concurrently.
   */
  incomplete(hash: string): string {
    return join(this.folder, "blobs", `${hash}.tapline.incomplete`);
  }

  lock(hash: string): string {
    return join(this.#locks, `${hash}.tapline.lock`);
  }

  get lockFolder(): string {
    return this.#locks;
  }

  snapshot(commit: string, path = ""): string {
    return join(this.folder, "snapshots", commit, path);
  }

  /** The commit of a revision when it was last resolved. */
  async ref(revision: string): Promise<string | undefined> {
    if (isCommit(revision)) return revision;
    const text = await readFile(join(this.folder, "refs", revision), "utf8").catch(() => "");
    return isCommit(text.trim()) ? text.trim() : undefined;
  }

  async writeRef(revision: string, commit: string): Promise<void> {
    if (isCommit(revision) || (await this.ref(revision)) === commit) return;
    const path = join(this.folder, "refs", revision);
    await mkdir(dirname(path), { recursive: true });
    const temporary = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
    await writeFile(temporary, commit, { flush: true });
    await rename(temporary, path);
  }

  /** Paths of the complete files of a commit, sorted. */
  async files(commit: string): Promise<string[]> {
    const folder = this.snapshot(commit);
    // With file types, links to folders are not followed, which could form a cycle.
    const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
    const complete: string[] = [];
    for (const { name, parentPath } of entries) {
      const path = join(parentPath, name);
      // Skip dangling links.
      const target = await stat(path).catch(() => undefined);
      if (target?.isFile()) complete.push(relative(folder, path).replaceAll("\\", "/"));
    }
    return complete.sort();
  }

  /** Links a file of a commit to its blob, unless it already is. */
  async link(commit: string, path: string, hash: string): Promise<void> {
    const from = this.snapshot(commit, path);
    const blob = this.blob(hash);
    if (await leadsTo(from, blob)) return;
    await mkdir(dirname(from), { recursive: true });
    const temporary = `${from}.${process.pid}.${randomBytes(4).toString("hex")}`;
    try {
      await symlink(relative(dirname(from), blob), temporary);
    } catch (error) {
      // Windows restricts symbolic links and exFAT has none: use a hard link or a copy.
      if (!["EPERM", "ENOSYS", "ENOTSUP"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
      await link(blob, temporary).catch(() => copyFile(blob, temporary));
    }
    await rename(temporary, from).catch(async (error: unknown) => {
      await rm(temporary, { force: true });
      throw error;
    });
  }
}

async function leadsTo(from: string, blob: string): Promise<boolean> {
  const found = await lstat(from).catch(() => undefined);
  if (found === undefined) return false;
  // A copy, on file systems without links.
  if (found.isFile()) return found.size === (await stat(blob)).size;
  return (await realpath(from).catch(() => "")) === (await realpath(blob));
}
