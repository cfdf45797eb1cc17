import { readFileSync, statSync } from "node:fs";

/** First byte of the range that SQLite connections lock for reading, in all its versions. */
const sharedFirst = 0x40000002;

/**
 * Whether this process holds the lock that stops other programs from deleting the file's write-ahead log when they close
 * it. POSIX releases all locks of a process on a file when it closes any descriptor of it, so only SQLite may ever open
 * a database file.
 * @param path of an open database in WAL mode that has been read
 * @returns undefined if the kernel does not report locks
 */
export function holdsLock(path: string): boolean | undefined {
  let table: string;
  try {
    table = readFileSync("/proc/locks", "utf8");
  } catch {
    return undefined;
  }
  const locks = locksOf(process.pid, table);
  const of = (file: string) => {
    const { ino } = statSync(file);
    return locks.filter(({ inode }) => inode === ino);
  };
  if (of(path).some(({ first, last }) => first <= sharedFirst && sharedFirst <= last)) return true;
  // If even the lock on the WAL index is missing, the table identifies inodes or processes differently.
  return of(`${path}-shm`).length > 0 ? false : undefined;
}

interface Lock {
  inode: number;
  first: number;
  last: number;
}

/** @param table lines such as `7: POSIX  ADVISORY  READ 812 fd:01:5505045 1073741826 1073742335` */
function locksOf(pid: number, table: string): Lock[] {
  return table.split("\n").flatMap((line) => {
    const [, kind, , , owner, place, first, last] = line.trim().split(/\s+/);
    if (kind !== "POSIX" || Number(owner) !== pid) return [];
    const end = last === "EOF" ? Number.POSITIVE_INFINITY : Number(last);
    return [{ inode: Number(place?.split(":")[2]), first: Number(first), last: end }];
  });
}
