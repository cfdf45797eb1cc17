import { stat } from "node:fs/promises";
import { UserError } from "../../contracts/user-error.js";
import { type ByteSource, fromFile } from "../gguf-header.js";
import { CachedRepository } from "./cache.js";
import { chooseFiles } from "./choose.js";
import { downloadFile } from "./download.js";
import { HubFault } from "./fault.js";
import { checkRevision, type HubId, isCommit } from "./id.js";
import { type HubFile, Repository } from "./repository.js";
import { type HubSettings, hubSettings } from "./settings.js";
import { StreamSource } from "./stream-source.js";

/** How far the download of a model is; all its files together. */
export interface DownloadProgress {
  /** The file under way, as the repository names it. */
  file: string;
  /** Bytes that are here. */
  done: number;
  total: number;
  /** Bytes that came over the network in this download; the others were here before. */
  received: number;
}

export interface HubOptions {
  /** Branch, tag or commit; `main` unless told otherwise. */
  revision?: string;
  onDownload?: (progress: DownloadProgress) => void;
  signal?: AbortSignal;
}

/** A model of the hub, on this machine. */
export interface HubModel {
  /** Its first file, in the snapshot of the commit. */
  path: string;
  commit: string;
}

/**
 * Finds a model of the hub in the shared cache, and downloads what is missing of it.
 * @throws UserError with one sentence
 */
export function resolveHubModel(id: HubId, options: HubOptions = {}): Promise<HubModel> {
  return locate(id, options, (settings, cached, revision) =>
    fromHub(id, revision, settings, cached, options),
  );
}

/**
 * Reads the head of a model of the hub: from the cache where it is here, and otherwise over the network, as much of
 * it as the reader wants. Nothing is kept.
 * @throws UserError with one sentence, and what the reader throws
 */
export async function readHubHead<T>(
  id: HubId,
  options: Pick<HubOptions, "revision" | "signal">,
  reader: (source: ByteSource) => Promise<T>,
): Promise<T> {
  const found = await locate<HubModel | RemoteFile>(id, options, async (settings, cached, revision) => {
    const repository = await Repository.open(settings, id.repository, revision, options.signal);
    const [file] = filesOf(id, repository) as [HubFile];
    const blob = cached.blob(file.hash);
    const here = await stat(blob).catch(() => undefined);
    if (here?.size === file.size) return { path: blob, commit: repository.commit };
    return { repository, file };
  });
  if ("path" in found) return fromFile(found.path, reader);
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

/** Where a model is: in the cache where that suffices, otherwise as `ask` finds out from the hub. */
async function locate<T>(
  id: HubId,
  options: Pick<HubOptions, "revision">,
  ask: (settings: HubSettings, cached: CachedRepository, revision: string) => Promise<T>,
): Promise<T | HubModel> {
  const { revision = "main" } = options;
  checkRevision(revision);
  const settings = await hubSettings();
  const cached = new CachedRepository(settings.cache, id.repository);
  if (settings.offline) return offline(id, revision, cached);
  // A commit never changes, so a file of it that is here needs no question.
  if (isCommit(revision) && (id.file !== undefined || id.quant !== undefined)) {
    const here = await fromCache(id, revision, cached);
    if (here !== undefined) return here;
  }
  try {
    return await ask(settings, cached, revision);
  } catch (error) {
    // Without a network, what the revision last meant is better than nothing; it says which commit it is.
    const here = error instanceof HubFault && error.passing && (await fromCache(id, revision, cached));
    if (here) return here;
    throw error;
  }
}

async function offline(id: HubId, revision: string, cached: CachedRepository): Promise<HubModel> {
  const here = await fromCache(id, revision, cached);
  if (here !== undefined) return here;
  const what = id.file ?? (id.quant === undefined ? "a model" : id.quant);
  throw new UserError(
    `HF_HUB_OFFLINE is set, and ${what} of ${id.repository} at ${revision} is not in the cache.`,
  );
}

/** The model as far as the cache knows it; nothing when a file of it is missing. */
async function fromCache(
  id: HubId,
  revision: string,
  cached: CachedRepository,
): Promise<HubModel | undefined> {
  const commit = await cached.ref(revision);
  if (commit === undefined) return undefined;
  try {
    const [first] = chooseFiles(id, await cached.files(commit));
    return { path: cached.snapshot(commit, first), commit };
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

async function fromHub(
  id: HubId,
  revision: string,
  settings: HubSettings,
  cached: CachedRepository,
  options: HubOptions,
): Promise<HubModel> {
  const repository = await Repository.open(settings, id.repository, revision, options.signal);
  const { commit } = repository;
  const files = filesOf(id, repository);
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
  return { path: cached.snapshot(commit, files[0]?.path), commit };
}

/** The files of a repository that an id means, the first part first. */
function filesOf(id: HubId, { files }: Repository): HubFile[] {
  const paths = chooseFiles(
    id,
    files.map(({ path }) => path),
  );
  return paths.map((path) => files.find((file) => file.path === path)!);
}
