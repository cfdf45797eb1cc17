import { readFileSync } from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { build } from "esbuild";

/** The modules that a test file loads before its first test decide which others may share its process. */
type Weight = "light" | "shared" | "alone";

/** Files in one process, at most. */
const largest: Record<Weight, number> = { light: 24, shared: 4, alone: 1 };

/** Modules that start a program, a server, a browser, a database or a model. */
const heavy =
  /^(?:(?:node:)?(?:child_process|http|https|net|tls|worker_threads)|koa|undici|pg|playwright-core|@photostructure\/sqlite|src\/native\/load\.ts)$/;
/** Modules whose tests need a process to themselves: they count what is open in it, drive a browser, or replace the addon. */
const alone = /^(?:playwright-core|test\/support\/open-files\.ts|test\/(?:.+\/)?stand-in.*\.ts)$/;

interface Imports {
  /** Paths inside the root and names of packages, direct and through others. */
  reached: Set<string>;
  /** Whether one of them adds hooks to uvu's suite when it loads: that happens once a process. */
  hooks: boolean;
}

/**
 * Files by what they import, directly and through others: paths inside `root` and names of packages. Imports of types,
 * and what is imported while a test runs, do not count.
 */
export async function importsOf(files: readonly string[], root: string): Promise<Map<string, Imports>> {
  const { metafile } = await build({
    entryPoints: [...files],
    absWorkingDir: root,
    bundle: true,
    write: false,
    outdir: root,
    splitting: true,
    metafile: true,
    platform: "node",
    format: "esm",
    packages: "external",
    logLevel: "silent",
    jsx: "automatic",
    jsxImportSource: "preact",
    loader: { ".node": "empty" },
  });
  const direct = new Map(
    Object.entries(metafile.inputs).map(([path, { imports }]) => [
      path,
      imports.filter(({ kind }) => kind !== "dynamic-import").map((each) => each.path),
    ]),
  );
  const reach = (path: string, seen = new Set<string>()): Set<string> => {
    for (const next of direct.get(path) ?? []) {
      if (seen.has(next)) continue;
      seen.add(next);
      reach(next, seen);
    }
    return seen;
  };
  return new Map(
    files.map((file) => {
      const reached = reach(relative(root, resolve(root, file)));
      const hooks = [...reached].some((path) => direct.get(path)?.includes("uvu"));
      return [file, { reached, hooks }];
    }),
  );
}

function weightOf(file: string, { reached, hooks }: Imports): Weight {
  const names = [...reached];
  if (
    hooks ||
    names.some((name) => alone.test(name)) ||
    /^\/\/ Runs alone: /m.test(readFileSync(file, "utf8"))
  ) {
    return "alone";
  }
  return names.some((name) => heavy.test(name)) ? "shared" : "light";
}

/** Weights of the test files below `root`. Light ones use no model, server, program, database or browser. */
export async function weigh(files: readonly string[], root: string): Promise<Map<string, Weight>> {
  const imports = await importsOf(files, resolve(root, ".."));
  return new Map(files.map((file) => [file, weightOf(file, imports.get(file) as Imports)]));
}

/** Files by the processes that run them: neighbours in one folder, light ones of all folders. */
export function groupTests(files: ReadonlyMap<string, Weight>): string[][] {
  const groups = new Map<string, string[][]>();
  for (const [file, weight] of files) {
    const key = weight === "light" ? weight : `${weight} ${dirname(file)}`;
    const ofKey = groups.get(key) ?? [];
    groups.set(key, ofKey);
    const open = ofKey.at(-1);
    if (open === undefined || open.length >= largest[weight]) ofKey.push([file]);
    else open.push(file);
  }
  return [...groups.values()].flat();
}
