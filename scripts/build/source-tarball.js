import { execFileSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { root } from "./paths.js";

/**
 * Packs the sources of the current commit, as a clone has them; llama.cpp's come from npm when they are compiled.
 * @param {string} version
 * @param {string} out
 * @param {(sentence: string) => void} say
 * @param {string} [clone]
 * @returns {string | undefined} the file's name; undefined outside of a clone
 */
export function packSource(version, out, say, clone = root) {
  if (!existsSync(join(clone, ".git"))) return undefined;
  /** @param {string[]} args */
  const git = (...args) => execFileSync("git", args, { cwd: clone, encoding: "utf8" });
  const name = `tapline-${version}-source.tar.gz`;
  if (git("status", "--porcelain") !== "")
    say(`${name} has the last commit, without your uncommitted changes`);
  rmSync(join(out, name), { force: true });
  // `-n`: no time stamp in the compressed file.
  git(
    "-c",
    "tar.tar.gz.command=gzip -9 -n",
    "archive",
    "--format=tar.gz",
    `--prefix=tapline-${version}/`,
    `--output=${join(out, name)}`,
    "HEAD",
  );
  return name;
}
