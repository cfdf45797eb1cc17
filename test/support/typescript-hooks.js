import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { places } from "../../scripts/build/typebox.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Where compiled files are kept, each at its own place. */
const kept = process.env.TAPLINE_TEST_TYPESCRIPT ?? join(root, ".build/typescript");

/** Packages of many files, as the build has joined them. @type {Map<string, string>} */
const joined = new Map();
for (const [name, file] of Object.entries(places)) {
  const place = new URL(`../../dist/${file}`, import.meta.url);
  if (process.env.TAPLINE_TEST_BUILT === "1" && existsSync(place)) joined.set(name, place.href);
}

/**
 * A file of TypeScript is imported by the name of the JavaScript that it becomes, or by its own.
 * @type {import("node:module").ResolveHook}
 */
export async function resolve(specifier, context, next) {
  const whole = joined.get(specifier);
  if (whole !== undefined) return { url: whole, format: "module", shortCircuit: true };
  const url = /^(?:\.{0,2}\/|file:)/.test(specifier) ? sourceOf(new URL(specifier, context.parentURL)) : null;
  return url === null ? next(specifier, context) : { url, format: "module", shortCircuit: true };
}

/** @param {URL} url */
function sourceOf(url) {
  if (url.protocol !== "file:") return null;
  if (/\.(?:ts|mts|tsx)$/.test(url.pathname)) return url.href;
  if (!url.pathname.endsWith(".js") || existsSync(url)) return null;
  for (const ending of [".ts", ".tsx"]) {
    const source = new URL(url);
    source.pathname = url.pathname.replace(/\.js$/, ending);
    if (existsSync(source)) return source.href;
  }
  return null;
}

/** @type {import("node:module").LoadHook} */
export async function load(url, context, next) {
  const { protocol, pathname } = new URL(url);
  if (protocol !== "file:" || !/\.(?:ts|mts|tsx)$/.test(pathname)) return next(url, context);
  return {
    format: "module",
    source: await compiled(fileURLToPath(`file://${pathname}`)),
    shortCircuit: true,
  };
}

/** @param {string} path */
async function compiled(path) {
  const { mtimeMs, size } = statSync(path);
  const mark = `\n// of ${mtimeMs} ${size}\n`;
  const inside = relative(root, path);
  const place = inside.startsWith("..") ? undefined : join(kept, `${inside}.js`);
  if (place !== undefined && existsSync(place)) {
    const code = readFileSync(place, "utf8");
    if (code.endsWith(mark)) return code;
  }
  const { transform } = await import("esbuild");
  const { code } = await transform(readFileSync(path, "utf8"), {
    loader: path.endsWith("x") ? "tsx" : "ts",
    target: "es2022",
    sourcemap: "inline",
    sourcefile: path,
    sourcesContent: false,
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  if (place !== undefined) keep(place, code + mark);
  return code;
}

/**
 * Whole or not at all, because other tests compile the same files; where nothing can be written, each compiles for itself.
 * @param {string} place
 * @param {string} text
 */
function keep(place, text) {
  const own = `${place}.${randomUUID()}`;
  try {
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(own, text);
    renameSync(own, place);
  } catch {
    rmSync(own, { force: true });
  }
}
