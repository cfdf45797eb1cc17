import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { levelsFor } from "../../scripts/build/levels.js";
import { version } from "../../src/contracts/index.js";
import { findPrebuilt, processorFeatures } from "../../src/native/prebuilt.js";

const out = fileURLToPath(new URL("../../release/", import.meta.url));

/** A level of the released addon that this processor can run: the file, and its level for TAPLINE_LEVEL. */
export interface ReleasedLevel {
  path: string;
  level: string;
}

/**
 * The levels in the tarballs of `npm run release` that this processor can run, the best first, unpacked into `folder`
 * as npm would unpack them: the shipped files are the ones under test. Tarballs of other versions are ignored.
 */
export function releasedLevels(folder: string, from = out): ReleasedLevel[] {
  const modules = join(folder, "node_modules");
  mkdirSync(modules, { recursive: true });
  const suffix = `-${version}.tgz`;
  for (const tarball of readdirSync(from).filter((name) => name.endsWith(suffix))) {
    execFileSync("tar", ["-xzf", join(from, tarball), "-C", folder]);
    renameSync(join(folder, "package"), join(modules, tarball.slice(0, -suffix.length)));
  }
  const { candidates, refused } = findPrebuilt(join(modules, "tapline"), true);
  const addon = candidates.find(({ backend }) => backend === "cpu");
  if (addon === undefined)
    throw new Error(`${from} has no addon of version ${version} for this processor: ${refused.join("; ")}`);
  const features = processorFeatures();
  return levelsFor(process.platform, process.arch)
    .filter(({ name, needs }) => addon.levels.includes(name) && needs.every((each) => features.has(each)))
    .map(({ name }) => ({ path: addon.path, level: name }));
}
