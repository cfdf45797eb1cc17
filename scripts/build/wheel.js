import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BuildError } from "./errors.js";
import { beyond, needsOf } from "./needs.js";
import { root } from "./paths.js";
import { oldestGlibc, processors } from "./portable.js";
import { readmeForPackages, repositoryAddress } from "./readme.js";
import { nativeEntries, npmEntries, sbom, sbomName } from "./sbom.js";

/** Dependencies that only compile the addon or describe types. */
const buildOnly = /^(@types\/.+|cmake-js|node-addon-api|node-api-headers|node-gyp)$/;

/** Files that no program reads at run time: types, sources and source maps. */
const neverRead = /\.([cm]?tsx?|map|c|cpp|h|gyp)$/;

/**
 * @typedef {object} LockedPackage an entry of package-lock.json's `packages`
 * @property {string} [version]
 * @property {string} [integrity]
 * @property {string} [license]
 * @property {Record<string, string>} [dependencies]
 * @property {Record<string, string>} [optionalDependencies]
 * @property {Record<string, string>} [peerDependencies]
 * @property {Record<string, { optional?: boolean }>} [peerDependenciesMeta]
 */

/**
 * The packages that run, with their own dependencies.
 * @param {Record<string, LockedPackage>} locked by path, such as "node_modules/koa"; the main package is ""
 * @returns {string[]} paths
 */
export function runtimePackages(locked) {
  /** @type {Set<string>} */
  const found = new Set();
  /** @param {string} from a path */
  const addDependencies = (from) => {
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = locked[from] ?? {};
    const names = Object.keys({ ...dependencies, ...peerDependencies, ...optionalDependencies });
    for (const name of names.filter((each) => !buildOnly.test(each))) {
      const path = resolvePackage(locked, from, name);
      const optional = optionalDependencies?.[name] !== undefined || peerDependenciesMeta?.[name]?.optional;
      if (path === undefined) {
        if (optional) continue;
        throw new BuildError(`package-lock.json lacks ${name}, which ${from || "tapline"} requires.`);
      }
      if (found.has(path)) continue;
      found.add(path);
      addDependencies(path);
    }
  };
  addDependencies("");
  return [...found].sort();
}

/**
 * Where Node.js finds a package: in the nearest node_modules.
 * @param {Record<string, LockedPackage>} locked
 * @param {string} from
 * @param {string} name
 */
function resolvePackage(locked, from, name) {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    const path = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`;
    if (locked[path] !== undefined) return path;
    if (folder === "") return undefined;
  }
}

/**
 * Makes the Python wheel of a platform: the client, and in it the main package, its dependencies and the addons.
 * @param {object} parts
 * @param {string} parts.main folder of the unpacked main package
 * @param {{ name: string }} parts.platformPackage its entry in prebuilt.json
 * @param {string} parts.addons folder of the platform package
 * @param {string} parts.sqlite SQLite's addon, compiled like ours
 * @param {import("./components.js").Component[]} parts.components what the addons are linked with
 * @param {string} parts.arch
 * @param {string} parts.work
 * @param {string} parts.out
 * @returns {string} the wheel's path
 */
export function makeWheel({ main, platformPackage, addons, sqlite, components, arch, work, out }) {
  const app = join(work, `app-${arch}`);
  mkdirSync(app);
  const { name, version, description, license, type, exports, engines, dependencies } = readJson(
    main,
    "package.json",
  );
  const about = { name, version, description, license, type, exports, engines };
  writeFileSync(join(app, "package.json"), `${JSON.stringify(about, null, 2)}\n`);
  writeFileSync(join(app, "prebuilt.json"), `${JSON.stringify({ packages: [platformPackage] }, null, 2)}\n`);
  for (const part of ["bin", "dist", "models", "recipes", "LICENSE", "NOTICE"])
    copyRead(join(main, part), join(app, part));
  const { packages } = readJson(root, "package-lock.json");
  const paths = runtimePackages({ ...packages, "": { dependencies } });
  for (const path of paths) copyRead(join(root, path), join(app, path), arch);
  cpSync(addons, join(app, "node_modules", platformPackage.name), { recursive: true });
  const own = join(app, "node_modules/@photostructure/sqlite/prebuilds", `linux-${arch}`);
  copyFileSync(sqlite, join(own, "@photostructure+sqlite.glibc.node"));
  for (const path of readdirSync(app, { recursive: true, encoding: "utf8" })) {
    const above = path.endsWith(".node") ? beyond(needsOf(join(app, path)), oldestGlibc) : [];
    if (above.length > 0)
      throw new BuildError(`${path} needs ${above.join(", ")}, beyond glibc ${oldestGlibc}.`);
  }
  const list = join(work, `${arch}-${sbomName}`);
  writeFileSync(list, sbom(about, [...npmEntries(packages, paths), ...nativeEntries(components)]));
  const tag = `manylinux_${oldestGlibc.replace(".", "_")}_${processors[arch]}`;
  const args = [join(root, "scripts/build/wheel.py"), clientWheel(work, arch), app, tag, out, list];
  return join(out, execFileSync("python3", args, { encoding: "utf8" }).trim());
}

/**
 * @param {string} from
 * @param {string} to
 * @param {string} [arch] whose prebuilt addons are needed
 */
function copyRead(from, to, arch) {
  cpSync(from, to, {
    recursive: true,
    filter: (path) => {
      const inside = path.slice(from.length).replaceAll("\\", "/");
      if (/\/node_modules$/.test(inside)) return false; // those needed are listed themselves
      const [, platform] = /\/prebuilds\/([^/]+)/.exec(inside) ?? [];
      if (platform !== undefined && (platform !== `linux-${arch}` || inside.endsWith(".musl.node")))
        return false;
      return !neverRead.test(inside) || statSync(path).isDirectory();
    },
  });
}

/**
 * The client alone, as setuptools makes it. It builds next to the sources, so it gets a copy.
 * @param {string} work
 * @param {string} arch
 */
function clientWheel(work, arch) {
  const [source, folder] = [join(work, `client-${arch}`), join(work, `client-wheel-${arch}`)];
  const made = /[\\/](build|__pycache__|[^\\/]+\.egg-info)$/;
  cpSync(join(root, "clients/python/tapline_lab"), source, {
    recursive: true,
    filter: (path) => !made.test(path),
  });
  const readme = join(source, "README.md");
  const about = readJson(root, "package.json");
  const options = {
    address: repositoryAddress(about),
    version: about.version,
    folder: "clients/python/tapline_lab",
  };
  writeFileSync(readme, readmeForPackages(readFileSync(readme, "utf8"), options));
  const pip = [
    "-m",
    "pip",
    "wheel",
    "--quiet",
    "--disable-pip-version-check",
    "--no-deps",
    "--wheel-dir",
    folder,
  ];
  execFileSync("python3", [...pip, source], { stdio: ["ignore", "ignore", "inherit"] });
  return join(folder, readdirSync(folder)[0] ?? "");
}

/**
 * @param {string} folder
 * @param {string} name
 */
function readJson(folder, name) {
  return JSON.parse(readFileSync(join(folder, name), "utf8"));
}
