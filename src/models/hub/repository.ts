import { setTimeout as sleep } from "node:timers/promises";
import { sha256Pattern } from "../../contracts/sha256.js";
import { UserError } from "../../contracts/user-error.js";
import { connectionFault, HubFault, RangeIgnored, type Subject } from "./fault.js";
import { hubFetch } from "./hub-fetch.js";
import { isCommit, isSafePath } from "./id.js";
import type { HubSettings } from "./settings.js";

/** A file in a hub repository. */
export interface HubFile {
  path: string;
  size: number;
  /** Its blob's name in the cache: SHA-256 for files in LFS, git's SHA-1 for others. */
  hash: string;
  algorithm: "sha256" | "git-sha1";
}

const attempts = 3;

/**
 * A hub repository at one commit, through `@huggingface/hub`. The library is used for API calls and byte ranges; downloads
 * are in download.ts, because the library's do not resume, verify or lock.
 */
export class Repository {
  readonly #settings: HubSettings;
  readonly repository: string;
  readonly commit: string;
  readonly files: readonly HubFile[];

  private constructor(settings: HubSettings, repository: string, commit: string, files: HubFile[]) {
    this.#settings = settings;
    this.repository = repository;
    this.commit = commit;
    this.files = files;
  }

  get host(): string {
    return new URL(this.#settings.endpoint).host;
  }

  /** Resolves a revision to a commit and lists its files. @throws HubFault */
  static async open(
    settings: HubSettings,
    repository: string,
    revision: string,
    signal?: AbortSignal,
  ): Promise<Repository> {
    const { modelInfo, listFiles } = await import("@huggingface/hub");
    const subject = { repository, revision };
    const common = { hubUrl: settings.endpoint, fetch: hubFetch(settings, subject, signal) };
    return withRetries(settings, subject, signal, async () => {
      const info = await modelInfo({ ...common, name: repository, revision, additionalFields: ["sha"] });
      if (typeof info.sha !== "string" || !isCommit(info.sha)) throw odd(settings, subject);
      const files: HubFile[] = [];
      const entries = listFiles({ ...common, repo: repository, revision: info.sha, recursive: true });
      for await (const entry of entries) {
        if (entry.type === "file") files.push(hubFile(settings, subject, entry));
      }
      return new Repository(settings, repository, info.sha, files);
    });
  }

  /** The bytes of a file from `offset`. Iterating throws HubFault or RangeIgnored. */
  async *read(file: HubFile, offset: number, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
    const { downloadFile } = await import("@huggingface/hub");
    const settings = this.#settings;
    const subject: Subject = { repository: this.repository, revision: this.commit, file: file.path };
    const path = file.path.split("/").map(encodeURIComponent).join("/");
    const url = `${settings.endpoint}/${this.repository}/resolve/${this.commit}/${path}`;
    const silence = new AbortController();
    const stop = AbortSignal.any([silence.signal, ...(signal === undefined ? [] : [signal])]);
    // The library loses the error's details, so remember it here.
    let refusal: unknown;
    const watched = hubFetch(settings, subject, stop);
    const blob = await downloadFile({
      repo: this.repository,
      path: file.path,
      hubUrl: settings.endpoint,
      // By URL every file can be read in ranges, even those stored in Xet.
      downloadInfo: { size: file.size, etag: file.hash, url },
      fetch: async (input, init) => {
        try {
          const response = await watched(input, init);
          checkLength(response, file, offset, this.host);
          return response;
        } catch (error) {
          refusal = error;
          throw error;
        }
      },
    });
    if (blob === null) throw odd(settings, subject);
    if (file.size === 0) return;
    let timer = setTimeout(() => silence.abort(), settings.idleMs * 2);
    try {
      for await (const chunk of blob.slice(offset, file.size).stream()) {
        clearTimeout(timer);
        yield chunk as Uint8Array;
        timer = setTimeout(() => silence.abort(), settings.idleMs);
      }
    } catch (error) {
      signal?.throwIfAborted();
      const known = refusal ?? error;
      if (known instanceof HubFault || known instanceof RangeIgnored) throw known;
      throw connectionFault(settings, subject, known);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Detects a pointer or error page instead of the file by its length. */
function checkLength(response: Response, file: HubFile, offset: number, host: string): void {
  const length = response.headers.get("content-length");
  if (length === null || Number(length) === file.size - offset) return;
  void response.body?.cancel().catch(() => {});
  throw new HubFault(
    `${host} sent ${length} bytes instead of the ${file.size - offset} bytes of ${file.path} from byte ${offset}.`,
  );
}

/** Retries with growing pauses if that may help. */
async function withRetries<T>(
  settings: HubSettings,
  subject: Subject,
  signal: AbortSignal | undefined,
  ask: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask();
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof SyntaxError) throw odd(settings, subject); // not JSON
      if (!(error instanceof UserError) && (error as Error).name !== "TypeError") throw error;
      const fault = error instanceof UserError ? error : connectionFault(settings, subject, error);
      if (!(fault instanceof HubFault) || !fault.passing || attempt >= attempts) throw fault;
      await sleep(fault.retryAfterMs ?? 250 * 2 ** attempt, undefined, { signal });
    }
  }
}

interface Entry {
  path: string;
  size: number;
  oid?: string;
  lfs?: { oid: string; size: number };
}

function hubFile(settings: HubSettings, subject: Subject, { path, size, oid, lfs }: Entry): HubFile {
  const hash = lfs?.oid ?? oid ?? "";
  const bytes = lfs?.size ?? size;
  const wellFormed = lfs === undefined ? /^[0-9a-f]{40}$/ : new RegExp(sha256Pattern);
  if (!isSafePath(path) || !wellFormed.test(hash) || !Number.isSafeInteger(bytes) || bytes < 0) {
    throw odd(settings, subject);
  }
  return { path, size: bytes, hash, algorithm: lfs === undefined ? "git-sha1" : "sha256" };
}

function odd(settings: HubSettings, { repository }: Subject): HubFault {
  return new HubFault(
    `${new URL(settings.endpoint).host} returned an unexpected description of ${repository}.`,
  );
}
