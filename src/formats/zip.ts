import { FormatError, quoted } from "./format-error.js";

/** One file of a zip archive. */
export interface ZipEntry {
  name: string;
  /** 0: stored, 8: deflated. */
  method: number;
  /** Bytes, packed and unpacked. */
  packed: number;
  size: number;
  crc: number;
  /** Offset of its local header. */
  header: number;
}

const endOfDirectory = 0x06054b50;
const directoryEntry = 0x02014b50;
const endBytes = 22;
const longestComment = 65_535;

/** Bytes of a zip file's local header before its name. */
export const localHeaderBytes = 30;

/** Maximum bytes from the end of a file in which the end of its directory is. */
export const zipTailBytes = endBytes + longestComment;

/**
 * The place of a zip file's directory.
 * @param tail the file's last bytes, at least {@link zipTailBytes} of them or all
 * @param kind how error messages refer to the file
 * @throws FormatError
 */
export function zipDirectory(
  tail: Uint8Array,
  kind: string,
): { start: number; length: number; count: number } {
  const bytes = Buffer.from(tail.buffer, tail.byteOffset, tail.byteLength);
  let end = bytes.length - endBytes;
  const first = Math.max(0, end - longestComment);
  while (end >= first && bytes.readUInt32LE(end) !== endOfDirectory) end--;
  if (end < first) throw new FormatError(`The file is not a ${kind} file: it has no directory.`);
  const [count, length, start] = [
    bytes.readUInt16LE(end + 10),
    bytes.readUInt32LE(end + 12),
    bytes.readUInt32LE(end + 16),
  ];
  if (start === 0xffffffff || count === 0xffff) {
    throw new FormatError(`The ${kind} file is a zip64 archive (over 4 GiB), which is not supported.`);
  }
  return { start, length, count };
}

/** The files in a directory. @throws FormatError */
export function zipEntries(directory: Uint8Array, count: number, kind: string): ZipEntry[] {
  const bytes = Buffer.from(directory.buffer, directory.byteOffset, directory.byteLength);
  const entries: ZipEntry[] = [];
  let at = 0;
  for (let index = 0; index < count; index++) {
    if (at + 46 > bytes.length || bytes.readUInt32LE(at) !== directoryEntry) {
      throw new FormatError(`The file is not a ${kind} file: its directory is truncated.`);
    }
    const nameLength = bytes.readUInt16LE(at + 28);
    entries.push({
      name: bytes.toString("utf8", at + 46, at + 46 + nameLength),
      method: bytes.readUInt16LE(at + 10),
      crc: bytes.readUInt32LE(at + 16),
      packed: bytes.readUInt32LE(at + 20),
      size: bytes.readUInt32LE(at + 24),
      header: bytes.readUInt32LE(at + 42),
    });
    at += 46 + nameLength + bytes.readUInt16LE(at + 30) + bytes.readUInt16LE(at + 32);
  }
  return entries;
}

/**
 * Offset of an entry's data.
 * @param local its local header, {@link localHeaderBytes} of it
 * @throws FormatError
 */
export function zipDataStart(entry: ZipEntry, local: Uint8Array, kind: string): number {
  if (local.length < localHeaderBytes) throw damaged(entry.name, kind);
  const view = new DataView(local.buffer, local.byteOffset, local.byteLength);
  return entry.header + localHeaderBytes + view.getUint16(26, true) + view.getUint16(28, true);
}

export function damaged(name: string, kind: string): FormatError {
  return new FormatError(`${quoted(name)} in the ${kind} file is damaged.`);
}
