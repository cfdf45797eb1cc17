import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { BuildError } from "./errors.js";
import { buildRoot, root } from "./paths.js";
import { npmCommand, npmFailure } from "./source.js";

/** npm packages that only a build needs. */
export const buildPackages = ["cmake-js", "node-addon-api", "node-api-headers"];

const run = promisify(execFile);

/**
 * Moves the packages that only a build needs out of a published package's dependencies, into a field of our own: most users
 * have a prebuilt addon.
 * @template {{ dependencies: Record<string, string> }} Package
 * @param {Package} about package.json
 */
export function withoutBuildPackages(about) {
  const entries = Object.entries(about.dependencies);
  const ours = new Set([...buildPackages, "node-gyp"]); // that one only starts the install script
  return {
    ...about,
    dependencies: Object.fromEntries(entries.filter(([name]) => !ours.has(name))),
    buildDependencies: Object.fromEntries(entries.filter(([name]) => buildPackages.includes(name))),
  };
}

/**
 * The versions of these packages: a clone's package.json has them among the dependencies.
 * @param {{ dependencies: Record<string, string>, buildDependencies?: Record<string, string> }} about package.json
 * @returns {Record<string, string>}
 */
export function buildVersions({ dependencies, buildDependencies = {} }) {
  return Object.fromEntries(
    buildPackages.map((name) => [name, buildDependencies[name] ?? dependencies[name] ?? ""]),
  );
}

/**
 * @param {string} name
 * @param {string} [folder] where `ensureBuildPackages` installs
 * @returns {string} the package's folder
 */
export function buildPackage(name, folder = join(buildRoot, "packages")) {
  const path = `${name}/package.json`;
  try {
    return dirname(createRequire(join(root, "package.json")).resolve(path));
  } catch {
    return dirname(createRequire(join(folder, "package.json")).resolve(path));
  }
}

/**
 * Installs the packages that a build needs and that did not come with this one.
 * @param {(sentence: string) => void} say
 * @param {{ env?: NodeJS.ProcessEnv, folder?: string, versions?: Record<string, string> }} [options]
 */
export async function ensureBuildPackages(say, options = {}) {
  const { env = process.env, folder = join(buildRoot, "packages") } = options;
  const versions =
    options.versions ?? buildVersions(JSON.parse(readFileSync(join(root, "package.json"), "utf8")));
  const missing = Object.keys(versions).filter((name) => {
    try {
      return !buildPackage(name, folder);
    } catch {
      return true;
    }
  });
  if (missing.length === 0) return;
  const specs = missing.map((name) => `${name}@${versions[name]}`);
  say(`fetching ${specs.join(", ")}, which only a build needs, through npm`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
  const args = ["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const [command, before, shell] = npmCommand(env);
  try {
    // Variables of the npm that runs this script would make it install globally, or elsewhere.
    const clean = Object.entries(env).filter(
      ([name]) => !/^npm_config_(global|prefix|local_prefix|dry_run|omit|build_from_source)$/i.test(name),
    );
    await run(command, [...before, ...args, ...specs], {
      cwd: folder,
      env: Object.fromEntries(clean),
      shell,
    });
  } catch (cause) {
    throw new BuildError(
      `${specs.join(", ")} could not be fetched through npm (${npmFailure(cause)}): check the connection and npm's registry setting.`,
      { cause },
    );
  }
}
