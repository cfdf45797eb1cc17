import { readdir, realpath, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { UserError } from "../../contracts/user-error.js";
import { absent } from "../../files/absent.js";
import { FormatError } from "../../formats/format-error.js";
import { type GgufHeader, readGgufHeader } from "../gguf-header.js";
import { groupGgufFiles } from "../split.js";
import { CachedRepository } from "./cache.js";
import { hasTag } from "./choose.js";
import { isCommit, parseHubId } from "./id.js";
import { isHeld } from "./lock.js";
import { hubSettings } from "./settings.js";

/** A model in the cache. */
export interface CachedModel {
  /** Hub id that loads exactly this model: `owner/name/file.gguf`. */
  id: string;
  repository: string;
  /** Commits that contain it; that of `main` first. */
  commits: string[];
  /** Paths in the repository: one, or the parts of a split model. */
  files: string[];
  /** Path of the first file. */
  path: string;
  bytes: number;
  /** When its files were last read, in Unix seconds. */
  lastUsed: number;
  /** Null if the header cannot be read. */
  header: GgufHeader | null;
}

/** An unfinished download. */
export interface UnfinishedDownload {
  repository: string;
  bytes: number;
  path: string;
  /** Whether another process is downloading it. */
  underWay: boolean;
}

export interface CacheContents {
  folder: string;
  models: CachedModel[];
  unfinished: UnfinishedDownload[];
}

/**
 * Lists the GGUF models in the cache, from their headers. Skips files that are deleted while they are being listed.
 */
export async function listCached(): Promise<CacheContents> {
  const { cache } = await hubSettings();
  const contents: CacheContents = { folder: cache, models: [], unfinished: [] };
  for (const folder of (await readdir(cache).catch(() => [])).sort()) {
    if (!folder.startsWith("models--")) continue;
    const repository = new CachedRepository(cache, folder.slice("models--".length).replaceAll("--", "/"));
    contents.models.push(...(await modelsOf(repository)));
    contents.unfinished.push(...(await unfinishedOf(repository)));
  }
  return contents;
}

async function modelsOf(cached: CachedRepository): Promise<CachedModel[]> {
  const main = await cached.ref("main");
  const commits = (await readdir(join(cached.folder, "snapshots")).catch(() => [])).filter(isCommit);
  commits.sort((a, b) => Number(b === main) - Number(a === main));
  const found = new Map<string, CachedModel>();
  for (const commit of commits) {
    for (const { files } of groupGgufFiles(await cached.files(commit))) {
      const paths = files.map((file) => cached.snapshot(commit, file));
      const blobs = await Promise.all(paths.map((path) => realpath(path))).catch(absent);
      if (blobs === undefined) continue;
      // Files with different names may share a blob; each name is a model.
      const key = JSON.stringify([files, blobs]);
      const known = found.get(key);
      if (known !== undefined) {
        known.commits.push(commit);
        continue;
      }
      const model = await describe(cached.repository, commit, files, paths, blobs).catch(absent);
      if (model !== undefined) found.set(key, model);
    }
  }
  return [...found.values()];
}

async function describe(
  repository: string,
  commit: string,
  files: string[],
  paths: string[],
  blobs: string[],
): Promise<CachedModel> {
  const stats = await Promise.all(blobs.map((blob) => stat(blob)));
  return {
    id: `${repository}/${files[0]}`,
    repository,
    commits: [commit],
    files,
    path: paths[0] as string,
    bytes: stats.reduce((sum, { size }) => sum + size, 0),
    lastUsed: Math.max(...stats.map(({ atimeMs }) => atimeMs)) / 1000,
    header: await headerOf(blobs),
  };
}

/** The first part's header, with the parameters of all parts. */
async function headerOf(blobs: string[]): Promise<GgufHeader | null> {
  try {
    const headers = await Promise.all(blobs.map((blob) => readGgufHeader(blob)));
    const parameters = headers.reduce((sum, header) => sum + header.parameters, 0);
    return { ...(headers[0] as GgufHeader), parameters };
  } catch (error) {
    // Unreadable files of other users in a shared cache are also listed.
    if (error instanceof FormatError || (error as NodeJS.ErrnoException).code !== undefined) return null;
    throw error;
  }
}

async function unfinishedOf(cached: CachedRepository): Promise<UnfinishedDownload[]> {
  const blobs = join(cached.folder, "blobs");
  const end = basename(cached.incomplete(""));
  const names = (await readdir(blobs).catch(() => [])).filter((name) => name.endsWith(end));
  const found = await Promise.all(
    names.map(async (name) => {
      const path = join(blobs, name);
      const here = await stat(path).catch(absent);
      if (here === undefined) return [];
      const underWay = await isHeld(cached.lock(name.slice(0, -end.length)));
      return [{ repository: cached.repository, bytes: here.size, path, underWay }];
    }),
  );
  return found.flat();
}

/**
 * Deletes cached models at every commit: all of a repository, those of a quantization, or one file (with its other parts).
 * Other tools' files stay.
 * @returns names of deleted models, and the bytes freed
 * @throws UserError if nothing is cached under that name
 */
export async function removeCached(name: string): Promise<{ removed: string[]; freed: number }> {
  const id = parseHubId(name);
  if (id === undefined) throw new UserError(`${name} is neither a job id nor a hub model (owner/name).`);
  const { folder, models, unfinished } = await listCached();
  const chosen = models.filter(
    ({ repository, files }) =>
      repository === id.repository &&
      (id.file === undefined || files.includes(id.file)) &&
      (id.quant === undefined || hasTag(files[0] as string, id.quant)),
  );
  // Unfinished downloads have no name yet; they are deleted with the whole repository.
  const whole = id.file === undefined && id.quant === undefined;
  const leftovers = whole ? unfinished.filter(({ repository }) => repository === id.repository) : [];
  if (chosen.length + leftovers.length === 0) throw new UserError(`${name} is not in the cache ${folder}.`);
  if (leftovers.some(({ underWay }) => underWay)) {
    throw new UserError(`Another process is downloading ${id.repository}; stop it first.`);
  }
  const cached = new CachedRepository(folder, id.repository);
  const blobs = new Set<string>();
  for (const { commits, files } of chosen) {
    for (const path of commits.flatMap((commit) => files.map((file) => cached.snapshot(commit, file)))) {
      const blob = await realpath(path).catch(absent);
      if (blob !== undefined) blobs.add(blob);
      await rm(path, { force: true });
    }
  }
  const used = await linkedBlobs(cached);
  let freed = 0;
  for (const path of [...blobs]
    .filter((blob) => !used.has(blob))
    .concat(leftovers.map((each) => each.path))) {
    freed += await stat(path).then(
      ({ size }) => size,
      () => 0,
    );
    await rm(path, { force: true });
  }
  // Another process may be downloading a file of this repository.
  if (used.size === 0 && (whole || !(await hasBlobs(cached)))) await removeRepository(cached);
  return {
    removed: [...chosen.map((model) => model.id), ...leftovers.map(() => "an unfinished download")],
    freed,
  };
}

/** Blobs that files of any commit link to. */
async function linkedBlobs(cached: CachedRepository): Promise<Set<string>> {
  const snapshots = join(cached.folder, "snapshots");
  const used = new Set<string>();
  for (const entry of await readdir(snapshots, { recursive: true, withFileTypes: true }).catch(() => [])) {
    if (entry.isDirectory()) continue;
    const target = await realpath(join(entry.parentPath, entry.name)).catch(() => undefined);
    if (target !== undefined) used.add(target);
  }
  return used;
}

async function hasBlobs(cached: CachedRepository): Promise<boolean> {
  return (await readdir(dirname(cached.blob("-"))).catch(() => [])).length > 0;
}

/** Removes a repository without files. */
async function removeRepository(cached: CachedRepository): Promise<void> {
  await rm(cached.folder, { recursive: true, force: true });
  await rm(cached.lockFolder, { recursive: true, force: true });
}
