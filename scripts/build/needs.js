import { execFileSync } from "node:child_process";
import { BuildError } from "./errors.js";

/** Libraries that belong to every glibc. Whatever else an addon names would have to be installed by hand. */
const ofGlibc =
  /^(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|librt\.so\.1|ld-linux-[\w-]+\.so\.\d)$/;

/**
 * What an ELF file asks of the machine that loads it, as readelf of binutils tells, for any processor.
 * @param {string} path
 */
export function needsOf(path) {
  let text = "";
  try {
    text = execFileSync("readelf", ["--dynamic", "--version-info", "--wide", path], {
      encoding: "utf8",
      env: { ...process.env, LC_ALL: "C" },
      stdio: ["ignore", "pipe", "pipe"],
    });
  } catch (error) {
    const { code, message } = /** @type {NodeJS.ErrnoException} */ (error);
    throw new BuildError(
      code === "ENOENT"
        ? "readelf is not on the PATH: install binutils, which reads what an addon needs."
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
  return { libraries, versions: [...new Set(versions)] };
}

/**
 * @param {ReturnType<typeof needsOf>} needs
 * @param {string} glibc the newest version that may be asked for, e.g. "2.28"
 * @returns {string[]} what is above that, and libraries that not every machine has
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
