import { stat } from "node:fs/promises";
import { UserError } from "../../contracts/user-error.js";
import type { ByteSource } from "../../formats/gguf.js";
import { fromFile } from "../gguf-header.js";
import { CachedRepository } from "./cache.js";
import { chooseFiles } from "./choose.js";
import { downloadFile } from "./download.js";
import { HubFault } from "./fault.js";
import { checkRevision, type HubId, isCommit, parseHubPlace } from "./id.js";
import { type HubFile, Repository } from "./repository.js";
import { type HubSettings, hubSettings } from "./settings.js";
import { StreamSource } from "./stream-source.js";

/** Progress of a model's download, across all its files. */
export interface DownloadProgress {
  /** The current file's path in the repository. */
  file: string;
  /** Bytes on disk. */
  done: number;
  total: number;
  /** Bytes downloaded now; the others were already on disk. */
  received: number;
}

export interface HubOptions {
  /** Branch, tag or commit; default: `main`. */
  revision?: string;
  onDownload?: (progress: DownloadProgress) => void;
  signal?: AbortSignal;
}

/** A hub model on this machine. */
export interface HubModel {
  /** Its first file, in the commit's snapshot. */
  path: string;
  commit: string;
}

/** Wanted files of a repository. */
interface Wanted {
  repository: string;
  /** Selects from the repository's paths. @throws UserError */
  choose(paths: readonly string[]): string[];
  /** Its name in error messages. */
  what: string;
  /** Whether the selection is unambiguous for a given commit. */
  exact: boolean;
}

/** Hub files on this machine. */
interface HubFiles {
  /** Selected paths in the repository; `paths` are those in the commit's snapshot. */
  files: readonly string[];
  paths: string[];
  commit: string;
}

/**
 * Finds a hub model in the shared cache, and downloads missing files.
 * @throws UserError
 */
export async function resolveHubModel(id: HubId, options: HubOptions = {}): Promise<HubModel> {
  const { paths, commit } = await bring(wantedModel(id), options);
  return { path: paths[0] as string, commit };
}

/**
 * Finds files at a hub place, `owner/name[/path]`, in the shared cache, and downloads missing ones.
 * @param choose selects the repository's paths that belong to `at`, the main file last
 * @returns the main file's path, next to the others, and its source; undefined if `place` is not a hub place
 * @throws UserError
 */
export async function resolveHubPlace(
  place: string,
  choose: (paths: readonly string[], at: string) => string[],
  options: HubOptions = {},
): Promise<{ path: string; source: string } | undefined> {
  const id = parseHubPlace(place);
  if (id === undefined) return undefined;
  const { repository, path: at } = id;
  const wanted: Wanted = {
    repository,
    choose: (paths) => choose(paths, at),
    what: at === "" ? "it" : at,
    exact: /\.[a-z]+$/.test(at),
  };
  const { files, paths, commit } = await bring(wanted, options);
  return { path: paths.at(-1) as string, source: `${repository}/${files.at(-1)}@${commit}` };
}

function bring(wanted: Wanted, options: HubOptions): Promise<HubFiles> {
  return locate(wanted, options, (settings, cached, revision) =>
    fromHub(wanted, revision, settings, cached, options),
  );
}

function wantedModel(id: HubId): Wanted {
  const { repository, file, quant } = id;
  return {
    repository,
    choose: (paths) => chooseFiles(id, paths),
    what: file ?? quant ?? "a model",
    exact: file !== undefined || quant !== undefined,
  };
}

/**
 * Reads the header of a hub model: from the cache, or over the network as far as the reader needs. Nothing is stored.
 * @throws UserError, and the reader's errors
 */
export async function readHubHead<T>(
  id: HubId,
  options: Pick<HubOptions, "revision" | "signal">,
  reader: (source: ByteSource) => Promise<T>,
): Promise<T> {
  const wanted = wantedModel(id);
  const found = await locate<HubFiles | RemoteFile>(wanted, options, async (settings, cached, revision) => {
    const repository = await Repository.open(settings, id.repository, revision, options.signal);
    const [file] = filesOf(wanted, repository) as [HubFile];
    const blob = cached.blob(file.hash);
    const here = await stat(blob).catch(() => undefined);
    if (here?.size === file.size) return { files: [file.path], paths: [blob], commit: repository.commit };
    return { repository, file };
  });
  if ("paths" in found) return fromFile(found.paths[0] as string, reader);
  const source = new StreamSource(found.repository.read(found.file, 0, options.signal), found.file.size);
  try {
    return await reader(source);
  } finally {
    await source.close();
  }
}

interface RemoteFile {
  repository: Repository;
  file: HubFile;
}

/** Locates files in the cache if possible, otherwise with `ask` from the hub. */
async function locate<T>(
  wanted: Wanted,
  options: Pick<HubOptions, "revision">,
  ask: (settings: HubSettings, cached: CachedRepository, revision: string) => Promise<T>,
): Promise<T | HubFiles> {
  const { revision = "main" } = options;
  checkRevision(revision);
  const settings = await hubSettings();
  const cached = new CachedRepository(settings.cache, wanted.repository);
  if (settings.offline) return offline(wanted, revision, cached);
  // Commits never change, so cached files need no request.
  if (isCommit(revision) && wanted.exact) {
    const here = await fromCache(wanted, revision, cached);
    if (here !== undefined) return here;
  }
  try {
    return await ask(settings, cached, revision);
  } catch (error) {
    // Without a network, use the revision's last known commit.
    const here = error instanceof HubFault && error.passing && (await fromCache(wanted, revision, cached));
    if (here) return here;
    throw error;
  }
}

async function offline(wanted: Wanted, revision: string, cached: CachedRepository): Promise<HubFiles> {
  const here = await fromCache(wanted, revision, cached);
  if (here !== undefined) return here;
  const { what, repository } = wanted;
  throw new UserError(
    `HF_HUB_OFFLINE is set, but ${what} of ${repository} at ${revision} is not in the cache.`,
  );
}

/** The files from the cache; undefined if one is missing. */
async function fromCache(
  { choose }: Wanted,
  revision: string,
  cached: CachedRepository,
): Promise<HubFiles | undefined> {
  const commit = await cached.ref(revision);
  if (commit === undefined) return undefined;
  try {
    const files = choose(await cached.files(commit));
    return { files, paths: files.map((file) => cached.snapshot(commit, file)), commit };
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

async function fromHub(
  wanted: Wanted,
  revision: string,
  settings: HubSettings,
  cached: CachedRepository,
  options: HubOptions,
): Promise<HubFiles> {
  const repository = await Repository.open(settings, wanted.repository, revision, options.signal);
  const { commit } = repository;
  const files = filesOf(wanted, repository);
  const total = files.reduce((sum, { size }) => sum + size, 0);
  let before = 0;
  let receivedBefore = 0;
  for (const file of files) {
    let receivedNow = 0;
    await downloadFile(repository, cached, file, {
      onBytes: (bytes, received) => {
        receivedNow = received;
        options.onDownload?.({
          file: file.path,
          done: before + bytes,
          total,
          received: receivedBefore + received,
        });
      },
      ...(options.signal && { signal: options.signal }),
    });
    before += file.size;
    receivedBefore += receivedNow;
    await cached.link(commit, file.path, file.hash);
  }
  await cached.writeRef(revision, commit);
  const chosen = files.map(({ path }) => path);
  return { files: chosen, paths: chosen.map((path) => cached.snapshot(commit, path)), commit };
}

function filesOf({ choose }: Wanted, { files }: Repository): HubFile[] {
  const paths = choose(files.map(({ path }) => path));
  return paths.map((path) => files.find((file) => file.path === path)!);
}
