/**
 * The files after a loss of power: everything that the program does to files passes through here and is remembered,
 * so that a test can ask whether an acknowledged file is on disk under its name with its content.
 */
import fs from "node:fs";
import promises, { type FileHandle } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { dirname, resolve } from "node:path";

interface Entry {
  /** Whether its bytes were synced after the last write. */
  content: boolean;
  /** Whether the folder was synced after it got this name. */
  name: boolean;
}

export interface Disk {
  /** Why a file that is there could be gone, or other than it is, after a loss of power; null where it could not. */
  lossOf(path: string): string | null;
  /** Whether a removal, or a rename away, is on disk. */
  isGone(path: string): boolean;
  /** Names that were given to bytes that were not on disk: a loss of power can leave such a file empty. */
  readonly hasty: string[];
  stop(): void;
}

/** Watches from now on. Files that were there before are on disk. One at a time. */
export function watchDisk(): Disk {
  const entries = new Map<string, Entry>();
  const removed = new Map<string, boolean>();
  const hasty: string[] = [];
  const made = (path: string, content: boolean) => {
    removed.delete(path);
    entries.set(path, { content, name: false });
  };
  const written = (path: string) => {
    const entry = entries.get(path);
    if (entry === undefined) made(path, false);
    else entry.content = false;
  };
  const synced = (path: string) => {
    const entry = entries.get(path);
    if (entry !== undefined) entry.content = true;
    for (const [each, { name }] of entries) {
      if (!name && dirname(each) === path) (entries.get(each) as Entry).name = true;
    }
    for (const each of removed.keys()) if (dirname(each) === path) removed.set(each, true);
  };
  const gone = (path: string) => {
    for (const each of [...entries.keys()]) {
      if (each === path || each.startsWith(`${path}/`)) entries.delete(each);
    }
    removed.set(path, false);
  };
  const renamed = (from: string, to: string) => {
    const entry = entries.get(from);
    if (entry?.content === false) hasty.push(to);
    gone(from);
    made(to, entry?.content ?? true);
  };

  const { open, writeFile, mkdir, rename, link, symlink, rm } = promises;
  const { openSync, fsyncSync, renameSync, linkSync } = fs;
  const own = {
    promises: { open, writeFile, mkdir, rename, link, symlink, rm },
    fs: { open: fs.open, fsync: fs.fsync, openSync, fsyncSync, renameSync, linkSync },
  };
  const at = (path: unknown) => resolve(String(path));
  const watched = (handle: FileHandle, path: string): FileHandle =>
    new Proxy(handle, {
      get(target, name) {
        const value = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...words: unknown[]) => {
          if (["write", "writev", "writeFile", "appendFile", "truncate"].includes(String(name)))
            written(path);
          const result = value.apply(target, words);
          if (name !== "sync" && name !== "datasync") return result;
          return Promise.resolve(result).then(() => synced(path));
        };
      },
    });
  const creates = (flags: unknown) => /[wax]/.test(String(flags));
  promises.open = async (path, flags = "r", ...rest) => {
    const isNew = creates(flags) && !fs.existsSync(path);
    const handle = await own.promises.open(path, flags, ...rest);
    if (isNew || String(flags).startsWith("w")) made(at(path), false);
    return watched(handle, at(path));
  };
  promises.writeFile = (async (path: string, ...rest: [string, object?]) => {
    if (typeof path === "string") written(at(path));
    await own.promises.writeFile(path, ...rest);
    const entry = entries.get(at(path));
    if (entry && (rest[1] as { flush?: boolean } | undefined)?.flush === true) entry.content = true;
  }) as typeof promises.writeFile;
  promises.mkdir = (async (path: string, options?: { recursive: true }) => {
    const first = await own.promises.mkdir(path, options);
    // With `recursive`, the first folder that was not there.
    for (let each = at(path); first !== undefined || options?.recursive !== true; each = dirname(each)) {
      made(each, true);
      if (options?.recursive !== true || each === at(first)) break;
    }
    return first;
  }) as typeof promises.mkdir;
  promises.rename = async (from, to) => {
    await own.promises.rename(from, to);
    renamed(at(from), at(to));
  };
  promises.link = async (from, to) => {
    await own.promises.link(from, to);
    made(at(to), entries.get(at(from))?.content ?? true);
  };
  promises.symlink = async (target, path, ...rest) => {
    await own.promises.symlink(target, path, ...rest);
    made(at(path), true);
  };
  promises.rm = async (path, ...rest) => {
    const there = fs.existsSync(path);
    await own.promises.rm(path, ...rest);
    if (there) gone(at(path));
  };

  // The same of functions that do not wait, by descriptor.
  const paths = new Map<number, string>();
  fs.openSync = (path, flags, ...rest) => {
    const isNew = creates(flags) && !fs.existsSync(path);
    const descriptor = own.fs.openSync(path, flags, ...rest);
    paths.set(descriptor, at(path));
    if (isNew) made(at(path), false);
    return descriptor;
  };
  // Streams open and sync their files by these.
  fs.open = ((path: string, flags: string, mode: number, done: (e: unknown, fd: number) => void) => {
    const isNew = creates(flags) && !fs.existsSync(path);
    own.fs.open(path, flags, mode, (error, descriptor) => {
      if (error === null) {
        paths.set(descriptor, at(path));
        if (isNew) made(at(path), false);
      }
      done(error, descriptor);
    });
  }) as typeof fs.open;
  fs.fsync = ((descriptor: number, done: (error: unknown) => void) => {
    own.fs.fsync(descriptor, (error) => {
      if (error === null) synced(paths.get(descriptor) as string);
      done(error);
    });
  }) as typeof fs.fsync;
  fs.fsyncSync = (descriptor) => {
    own.fs.fsyncSync(descriptor);
    synced(paths.get(descriptor) as string);
  };
  fs.renameSync = (from, to) => {
    own.fs.renameSync(from, to);
    renamed(at(from), at(to));
  };
  fs.linkSync = (from, to) => {
    own.fs.linkSync(from, to);
    made(at(to), entries.get(at(from))?.content ?? true);
  };
  syncBuiltinESMExports();

  return {
    hasty,
    lossOf(path) {
      if (!fs.existsSync(path)) return `${path} is not there`;
      if (entries.get(at(path))?.content === false) return `the bytes of ${path} are not on disk`;
      for (let each = at(path); each !== dirname(each); each = dirname(each)) {
        if (entries.get(each)?.name === false) return `the name of ${each} is not on disk`;
      }
      return null;
    },
    isGone: (path) => !fs.existsSync(path) && removed.get(at(path)) !== false,
    stop() {
      Object.assign(promises, own.promises);
      Object.assign(fs, own.fs);
      syncBuiltinESMExports();
    },
  };
}
