import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { BuildError } from "./errors.js";

const BLOCK = 512;

/**
 * Reads one file out of a .tgz. npm's tarballs are plain ustar, with pax headers for long names; nothing is
 * written to disk, so a hostile entry name can do no harm.
 * @param {string} tarball
 * @param {string} wanted path inside the archive
 * @returns {Buffer}
 */
export function readFromTarball(tarball, wanted) {
  const data = gunzipSync(readFileSync(tarball));
  for (let at = 0; at + BLOCK <= data.length; ) {
    const header = data.subarray(at, at + BLOCK);
    if (header[0] === 0) {
      break;
    }
    const size = Number.parseInt(text(header, 124, 12), 8) || 0;
    const prefix = text(header, 345, 155);
    const name = prefix ? `${prefix}/${text(header, 0, 100)}` : text(header, 0, 100);
    if (name === wanted) {
      return data.subarray(at + BLOCK, at + BLOCK + size);
    }
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  throw new BuildError(`${wanted} is not in ${tarball}.`);
}

/**
 * @param {Buffer} header
 * @param {number} start
 * @param {number} length
 */
function text(header, start, length) {
  const field = header.subarray(start, start + length);
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? length : end).trim();
}
