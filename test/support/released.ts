import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Candidate, findPrebuilt } from "../../src/native/prebuilt.js";

const out = fileURLToPath(new URL("../../release/", import.meta.url));

/**
 * The addons in the tarballs of `npm run release` that this processor can run, the best first, unpacked into `folder`
 * as npm would unpack them: the shipped files are the ones under test.
 */
export function releasedAddons(folder: string): Candidate[] {
  const modules = join(folder, "node_modules");
  mkdirSync(modules, { recursive: true });
  const tarballs = readdirSync(out).filter((name) => name.endsWith(".tgz"));
  for (const tarball of tarballs) {
    execFileSync("tar", ["-xzf", join(out, tarball), "-C", folder]);
    renameSync(join(folder, "package"), join(modules, tarball.replace(/-\d[^-]*\.tgz$/, "")));
  }
  const { candidates, refused } = findPrebuilt(join(modules, "tapline"), true);
  if (candidates.length === 0)
    throw new Error(`${out} has no addon for this processor: ${refused.join("; ")}`);
  return candidates.filter(({ backend }) => backend === "cpu");
}
