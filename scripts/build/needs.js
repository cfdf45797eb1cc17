import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { BuildError } from "./errors.js";

/** Libraries of every glibc. Users would have to install any other library. */
const ofGlibc =
  /^(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|ld-linux-[\w-]+\.so\.\d)$/;

/**
 * The libraries and symbol versions that an ELF file requires, and folders where it searches for them; for any processor, as
 * reported by readelf of binutils.
 * @param {string} path
 */
export function needsOf(path) {
  let text = "";
  try {
    text = execFileSync("readelf", ["--dynamic", "--version-info", "--wide", path], {
      encoding: "utf8",
      env: { ...process.env, LC_ALL: "C" },
      stdio: ["ignore", "pipe", "pipe"],
      maxBuffer: 2 ** 30, // Node.js exports a hundred thousand symbols with versions
    });
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
    throw new BuildError(
      code === "ENOENT"
        ? "readelf is not on the PATH: install binutils, which reads the symbol versions of addons."
        : `readelf cannot read ${path}: ${message}`,
    );
  }
  return parseNeeds(text);
}

/** @param {string} text readelf's output */
export function parseNeeds(text) {
  const libraries = [...text.matchAll(/\(NEEDED\)\s+Shared library: \[(.+?)\]/g)].map(
    (match) => match[1] ?? "",
  );
  const start = text.indexOf("Version needs section");
  const wanted = start < 0 ? "" : text.slice(start);
  const versions = [...wanted.matchAll(/\bName: (\S+)\s+Flags:/g)].map((match) => match[1] ?? "");
  const searched = [...text.matchAll(/\((?:RUNPATH|RPATH)\)\s+Library r(?:un)?path: \[(.+?)\]/g)];
  const folders = searched.flatMap((match) => (match[1] ?? "").split(":"));
  return { libraries, versions: [...new Set(versions)], folders };
}

/**
 * @param {Pick<ReturnType<typeof needsOf>, "libraries" | "versions">} needs
 * @param {string} glibc the newest version allowed, e.g. "2.28"
 * @returns {string[]} newer versions, and libraries that are not part of glibc
 */
export function beyond({ libraries, versions }, glibc) {
  const foreign = libraries.filter((name) => !ofGlibc.test(name));
  const [, most = 0] = glibc.split(".").map(Number);
  const newer = versions.filter((name) => {
    const minor = /^GLIBC_2\.(\d+)(\.\d+)?$/.exec(name)?.[1];
    return minor === undefined || Number(minor) > most;
  });
  return [...foreign, ...newer];
}

/**
 * Which folders of this machine a file names: one that does is different when it is made elsewhere.
 * @param {string} path
 * @param {string[]} folders
 */
export function foldersNamedIn(path, folders) {
  const bytes = readFileSync(path);
  return folders.filter((folder) => bytes.includes(folder));
}
