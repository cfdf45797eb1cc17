import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { cacheFolder, ensureSource, linkSource, versionOf } from "../../scripts/build/source.js";

interface Context {
  folder: string;
  cache: string;
  tarball: string;
  release: { version: string; package: string; integrity: string; bundle: string };
}

const test = suite<Context>("source");

test.before((context) => {
  context.folder = mkdtempSync(join(os.tmpdir(), "tapline-source-"));
  context.tarball = makePackage(context.folder);
  const digest = createHash("sha512").update(readFileSync(context.tarball)).digest("base64");
  context.release = {
    version: "9.9.9",
    package: "pretend-llama@1.0.0",
    integrity: `sha512-${digest}`,
    bundle: "package/llama/gitRelease.bundle",
  };
});
test.before.each((context) => {
  context.cache = mkdtempSync(join(context.folder, "cache-"));
});
test.after((context) => rmSync(context.folder, { recursive: true, force: true }));

/** A package like node-llama-cpp: a .tgz that holds a git bundle of a (very small) llama.cpp. */
function makePackage(folder: string): string {
  const tree = join(folder, "tree");
  mkdirSync(join(tree, "tools", "server"), { recursive: true });
  writeFileSync(join(tree, "tools", "server", "server-context.h"), "#pragma once\r\n");
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.autocrlf=false", ...args], {
      cwd: tree,
    });
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "a tree");
  const bundle = join(folder, "gitRelease.bundle");
  git("bundle", "create", "-q", bundle, "HEAD");
  const tarball = join(folder, "package.tgz");
  writeFileSync(
    tarball,
    gzipSync(
      Buffer.concat([
        entry("package/package.json", Buffer.from("{}")),
        entry("package/llama/gitRelease.bundle", readFileSync(bundle)),
        Buffer.alloc(1024),
      ]),
    ),
  );
  return tarball;
}

function entry(name: string, content: Buffer): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  header.write(`${content.length.toString(8).padStart(11, "0")}\0`, 124);
  header.write("ustar", 257);
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512)]);
}

function options({ cache, tarball, release }: Context) {
  return { env: { PATH: process.env.PATH, TAPLINE_CACHE: cache }, release, download: async () => tarball };
}

async function rejection(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error("nothing was thrown");
}

test("fetches, checks and unpacks once", async (context) => {
  const first = await ensureSource(options(context));
  assert.is(first.dir, join(context.cache, "llama.cpp-v9.9.9"));
  assert.is(first.pinned, true);
  assert.ok(existsSync(join(first.dir, "tools/server/server-context.h")));
  assert.not(existsSync(join(first.dir, ".git")), "no separate repository");
  assert.equal(readdirSync(context.cache), ["llama.cpp-v9.9.9"], "nothing else is left");
  const again = await ensureSource({
    ...options(context),
    download: () => Promise.reject(new Error("fetched twice")),
  });
  assert.is(again.dir, first.dir);
});

test("line ends are those of the release on every platform", async (context) => {
  const { dir } = await ensureSource(options(context));
  assert.is(readFileSync(join(dir, "tools/server/server-context.h"), "utf8"), "#pragma once\r\n");
});

test("refuses a tarball with a different sha512 and leaves no files", async (context) => {
  const release = { ...context.release, integrity: `sha512-${Buffer.alloc(64).toString("base64")}` };
  const error = await rejection(ensureSource({ ...options(context), release }));
  assert.is(error.name, "BuildError");
  assert.match(error.message, /pretend-llama@1\.0\.0 .* does not have the pinned sha512/);
  assert.equal(readdirSync(context.cache), []);
});

test("an interrupted fetch leaves nothing that the next one trips over", async (context) => {
  // A process that is killed while unpacking: its folder stays, with half a tree inside.
  const dead = spawn(process.execPath, ["-e", ""]);
  await new Promise((ended) => dead.on("exit", ended));
  mkdirSync(join(context.cache, `.partial-${dead.pid}-abc`, "tree", "tools"), { recursive: true });
  mkdirSync(join(context.cache, "llama.cpp-v9.9.9", "tools"), { recursive: true });
  const { dir } = await ensureSource(options(context));
  assert.ok(existsSync(join(dir, "tools/server/server-context.h")));
  assert.equal(readdirSync(context.cache), ["llama.cpp-v9.9.9"]);
});

test("the work folder of a living process is left alone", async (context) => {
  const name = `.partial-${process.ppid}-abc`;
  mkdirSync(join(context.cache, name));
  await ensureSource(options(context));
  assert.equal(readdirSync(context.cache).sort(), [name, "llama.cpp-v9.9.9"]);
});

test("simultaneous fetches produce one tree", async (context) => {
  const all = await Promise.all(Array.from({ length: 4 }, () => ensureSource(options(context))));
  assert.is(new Set(all.map(({ dir }) => dir)).size, 1);
  assert.equal(readdirSync(context.cache), ["llama.cpp-v9.9.9"]);
});

test("works inside a git hook, where git's variables point at another repository", async (context) => {
  const { env, ...rest } = options(context);
  const hook = { ...env, GIT_DIR: join(context.folder, "elsewhere"), GIT_INDEX_FILE: "index" };
  const { dir } = await ensureSource({ env: hook, ...rest });
  assert.ok(existsSync(join(dir, "tools/server/server-context.h")));
});

test("LLAMA_CPP_DIR is used as it is, and nothing is fetched", async (context) => {
  const tree = join(context.folder, "tree");
  const source = await ensureSource({ env: { LLAMA_CPP_DIR: tree, TAPLINE_CACHE: context.cache } });
  assert.equal(source, { dir: tree, pinned: false });
  assert.equal(readdirSync(context.cache), []);
});

test("a LLAMA_CPP_DIR without llama.cpp is refused in one sentence", async (context) => {
  const error = await rejection(ensureSource({ env: { LLAMA_CPP_DIR: context.cache } }));
  assert.match(error.message, /^LLAMA_CPP_DIR \(.*\) is not a llama\.cpp source tree with tools\/server: /);
});

test("no git: one sentence, and nothing is fetched in vain", async (context) => {
  const { env, ...rest } = options(context);
  const download = () => Promise.reject(new Error("fetched"));
  const error = await rejection(ensureSource({ ...rest, env: { ...env, PATH: context.cache }, download }));
  assert.match(
    error.message,
    /^git, which unpacks llama\.cpp, is not on the PATH or does not run: install it/,
  );
  assert.equal(readdirSync(context.cache), []);
});

test("no registry: one sentence with npm's reason", async (context) => {
  const { download: _, ...rest } = options(context);
  const env = {
    ...process.env,
    TAPLINE_CACHE: context.cache,
    npm_config_offline: "true",
    npm_config_cache: join(context.cache, "..", "empty-npm-cache"),
  };
  const error = await rejection(
    ensureSource({ ...rest, env, release: { ...context.release, package: "uvu@0.5.6" } }),
  );
  assert.match(
    error.message,
    /^llama\.cpp could not be fetched through npm \(.*ENOTCACHED.*\): check the connection/,
  );
  assert.not.match(error.message, /\n/);
  assert.equal(readdirSync(context.cache), []);
});

test("a package without the bundle is refused", async (context) => {
  const release = { ...context.release, bundle: "package/llama/other.bundle" };
  const error = await rejection(ensureSource({ ...options(context), release }));
  assert.match(error.message, /^package\/llama\/other\.bundle is not in /);
  assert.equal(readdirSync(context.cache), []);
});

test("the cache is in each platform's usual place", () => {
  const home = os.homedir();
  assert.is(
    cacheFolder({ TAPLINE_CACHE: fileURLToPath(new URL("x", import.meta.url)) }),
    fileURLToPath(new URL("x", import.meta.url)),
  );
  assert.is(cacheFolder({ XDG_CACHE_HOME: "/c" }), join("/c", "tapline"));
  assert.is(cacheFolder({}, "linux"), join(home, ".cache", "tapline"));
  assert.is(cacheFolder({}, "darwin"), join(home, "Library", "Caches", "tapline"));
  assert.is(cacheFolder({ LOCALAPPDATA: "L" }, "win32"), join("L", "tapline", "Cache"));
});

test("versionOf reads the version that the tree itself sets", ({ cache }) => {
  const text = ["0", "6", "12"].map((n, i) => `set(LLAMA_VERSION_${["MAJOR", "MINOR", "PATCH"][i]} ${n})`);
  writeFileSync(join(cache, "CMakeLists.txt"), `### version\n${text.join("\n")}\n`);
  assert.is(versionOf(cache), "0.6.12");
});

test("versionOf refuses a tree without a version", ({ cache }) => {
  writeFileSync(join(cache, "CMakeLists.txt"), "set(LLAMA_VERSION_MAJOR 0)\n");
  assert.throws(
    () => versionOf(cache),
    /does not set LLAMA_VERSION_MAJOR, _MINOR and _PATCH, so its version is unknown/,
  );
});

test("linkSource returns one path per version, wherever the cache is", ({ cache }) => {
  const build = join(cache, "build");
  const trees = ["a", "b"].map((name) => join(cache, name));
  for (const tree of trees) {
    mkdirSync(tree);
    writeFileSync(join(tree, "name"), tree);
  }
  const [one = "", two = ""] = trees;
  const link = linkSource(one, "0.5.0", build);
  assert.is(link, join(build, "llama.cpp-v0.5.0"));
  assert.is(readFileSync(join(link, "name"), "utf8"), one);
  rmSync(one, { recursive: true });
  assert.is(linkSource(two, "0.5.0", build), link, "the cache moved");
  assert.is(readFileSync(join(link, "name"), "utf8"), two);
  assert.is.not(linkSource(two, "0.6.0", build), link);
  assert.equal(readdirSync(build).sort(), ["llama.cpp-v0.5.0", "llama.cpp-v0.6.0"]);
});

test.run();
