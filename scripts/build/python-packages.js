import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { BuildError } from "./errors.js";
import { onInterrupt } from "./interrupt.js";
import { root } from "./paths.js";

/**
 * @typedef {object} PythonPackage
 * @property {string} name
 * @property {string} version
 * @property {string[]} sha256 of its wheels, one per platform
 */

/**
 * Installs pinned packages of the Python index into a folder, once for all clones of a user, and puts it in place by
 * one rename.
 * @param {string} folder
 * @param {PythonPackage[]} packages
 * @param {{ what: string, say: (sentence: string) => void, finish?: (folder: string) => void }} options what it is and
 *   how large, for messages; what to do with the files before the folder gets its name
 * @returns {string} the folder
 */
export function installPythonPackages(folder, packages, { what, say, finish = () => {} }) {
  if (existsSync(folder)) return folder;
  say(`installing ${what} into ${folder}`);
  mkdirSync(dirname(folder), { recursive: true });
  const work = mkdtempSync(join(dirname(folder), `${basename(folder)}-`));
  const clean = () => rmSync(work, { recursive: true, force: true });
  const stop = onInterrupt(clean);
  const made = join(work, "packages");
  try {
    const lines = packages.map(({ name, version, sha256 }) => {
      return [`${name}==${version}`, ...sha256.map((each) => `--hash=sha256:${each}`)].join(" ");
    });
    writeFileSync(join(work, "requirements.txt"), `${lines.join("\n")}\n`);
    const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"];
    const args = [...pip, "--only-binary=:all:", "--target", made, "--require-hashes"];
    execFileSync("python3", [...args, "-r", join(work, "requirements.txt")], {
      cwd: root,
      stdio: ["ignore", "ignore", "pipe"],
      encoding: "utf8",
    });
    finish(made);
    renameSync(made, folder);
  } catch (error) {
    if (existsSync(folder)) return folder; // another build was faster
    const { stderr = "", message } = /** @type {Error & { stderr?: string }} */ (error);
    const reason = stderr.trim().split("\n").at(-1) || message;
    const named = packages.map(({ name, version }) => `${name}==${version}`).join(" ");
    throw new BuildError(`\`python3 -m pip install ${named}\` failed: ${reason}`);
  } finally {
    clean(); // a signal while it deletes is still ours
    stop();
  }
  return folder;
}
