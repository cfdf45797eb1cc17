#!/usr/bin/env node
/**
 * Gives the symbols of a set of object files a common prefix, so that the same sources, compiled for several processors,
 * can be linked into one addon: `node scripts/build/rename.js PREFIX AR OUT.a OBJECT…`. Renamed are the symbols that one
 * of the objects defines, inline functions included (the linker would otherwise keep one of them for all processors),
 * and the names of section groups. Calls of other code stay as they are.
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [SHT_SYMTAB, SHT_GROUP] = [2, 17];
const [SHN_UNDEF, SHN_COMMON, STB_LOCAL] = [0, 0xfff2, 0];

/**
 * @typedef {object} Section
 * @property {number} header offset of its header
 * @property {number} type
 * @property {number} offset
 * @property {number} size
 * @property {number} link
 * @property {number} info
 */

/**
 * @typedef {object} Symbols of an object file
 * @property {Section[]} sections
 * @property {Section} strings
 * @property {{ at: number, index: number, name: string, local: boolean, defined: boolean }[]} all
 */

/**
 * @param {Buffer} file
 * @param {string} path for messages
 * @returns {Symbols}
 */
function symbolsOf(file, path) {
  if (file.toString("latin1", 0, 6) !== "\x7fELF\x02\x01") {
    throw new Error(`${path} is not a 64-bit little-endian ELF file.`);
  }
  const start = Number(file.readBigUInt64LE(0x28));
  const count = file.readUInt16LE(0x3c) || Number(file.readBigUInt64LE(start + 0x20));
  const sections = Array.from({ length: count }, (_, i) => {
    const header = start + 64 * i;
    const [offset, size] = [0x18, 0x20].map((at) => Number(file.readBigUInt64LE(header + at)));
    const [type = 0, link = 0, info = 0] = [4, 0x28, 0x2c].map((at) => file.readUInt32LE(header + at));
    return { header, type, offset: offset ?? 0, size: size ?? 0, link, info };
  });
  const table = sections.find(({ type }) => type === SHT_SYMTAB);
  const strings = sections[table?.link ?? 0];
  if (table === undefined || strings === undefined) throw new Error(`${path} has no symbols.`);
  const all = Array.from({ length: table.size / 24 }, (_, index) => {
    const at = table.offset + 24 * index;
    const from = strings.offset + file.readUInt32LE(at);
    const section = file.readUInt16LE(at + 6);
    if (section === SHN_COMMON) throw new Error(`${path} has a common symbol: compile with -fno-common.`);
    const name = file.toString("latin1", from, file.indexOf(0, from));
    return {
      at,
      index,
      name,
      local: (file[at + 4] ?? 0) >> 4 === STB_LOCAL,
      defined: section !== SHN_UNDEF,
    };
  });
  return { sections, strings, all };
}

/**
 * The names that one of the object files defines for others, and those of its section groups.
 * @param {Buffer[]} files
 * @param {string[]} paths for messages
 */
export function definedNames(files, paths) {
  const names = new Set();
  for (const [i, file] of files.entries()) {
    const { sections, all } = symbolsOf(file, paths[i] ?? "");
    for (const { name, local, defined } of all) if (!local && defined) names.add(name);
    for (const { type, info } of sections) if (type === SHT_GROUP) names.add(all[info]?.name);
  }
  names.delete("");
  return /** @type {Set<string>} */ (names);
}

/**
 * @param {Buffer} file an object file
 * @param {string} prefix
 * @param {ReadonlySet<string>} names the symbols to rename
 * @param {string} path for messages
 * @returns {Buffer} the object file with other names; the table of names moves to its end
 */
export function renamed(file, prefix, names, path) {
  const { sections, strings, all } = symbolsOf(file, path);
  const groups = new Set(sections.filter(({ type }) => type === SHT_GROUP).map(({ info }) => info));
  const result = Buffer.from(file);
  const added = [];
  let end = strings.size;
  for (const { at, index, name, local } of all) {
    if (!names.has(name) || (local && !groups.has(index))) continue;
    const text = Buffer.from(`${prefix}${name}\0`, "latin1");
    result.writeUInt32LE(end, at);
    added.push(text);
    end += text.length;
  }
  const table = Buffer.concat([file.subarray(strings.offset, strings.offset + strings.size), ...added]);
  result.writeBigUInt64LE(BigInt(file.length), strings.header + 0x18);
  result.writeBigUInt64LE(BigInt(table.length), strings.header + 0x20);
  return Buffer.concat([result, table]);
}

/**
 * @param {string} prefix
 * @param {string} ar
 * @param {string} out
 * @param {string[]} paths
 */
function renameAll(prefix, ar, out, paths) {
  const files = paths.map((path) => readFileSync(path));
  const names = definedNames(files, paths);
  mkdirSync(dirname(out), { recursive: true });
  const folder = mkdtempSync(`${out}-`);
  try {
    const objects = paths.map((path, i) => join(folder, `${i}-${basename(path)}`));
    for (const [i, object] of objects.entries()) {
      writeFileSync(object, renamed(/** @type {Buffer} */ (files[i]), prefix, names, paths[i] ?? ""));
    }
    rmSync(out, { force: true });
    execFileSync(ar, ["qcD", out, ...objects], { stdio: ["ignore", "ignore", "inherit"] });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [prefix = "", ar = "", out = "", ...paths] = process.argv.slice(2);
  renameAll(prefix, ar, out, paths);
}
