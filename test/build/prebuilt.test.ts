import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { cmakeOptions, levelList, levelsFor } from "../../scripts/build/levels.js";
import { usePrebuilt } from "../../scripts/build/prebuilt.js";
import { version as current } from "../../src/contracts/index.js";
import { findPrebuilt, type Machine, processorFeatures } from "../../src/native/prebuilt.js";
import { releasedLevels } from "../support/released.js";
import { saying } from "../support/saying.js";

const test = suite<{ root: string; beside: string }>("prebuilt");

const hash = (text: string | Buffer) => createHash("sha256").update(text).digest("hex");
const machine = (...features: string[]): Machine => ({
  platform: "linux",
  arch: "x64",
  features: () => new Set(features),
});

/** A package tree as npm leaves it: tapline, and next to it a platform package with two files that aren't addons. */
test.before.each((context) => {
  const modules = join(mkdtempSync(join(os.tmpdir(), "tapline-prebuilt-")), "node_modules");
  context.root = join(modules, "tapline");
  context.beside = join(modules, "tapline-linux-x64");
  mkdirSync(context.root, { recursive: true });
  mkdirSync(context.beside, { recursive: true });
  const addon = (level: string, needs: string[]) => {
    const text = `an addon for ${level}`;
    writeFileSync(join(context.beside, `${level}.node`), text);
    return { levels: [level], file: `${level}.node`, needs, bytes: text.length, sha256: hash(text) };
  };
  const addons = [addon("fast", ["avx2", "fma"]), addon("plain", [])];
  const manifest = JSON.stringify({ addons });
  writeFileSync(join(context.beside, "addons.json"), manifest);
  writeFileSync(join(context.beside, "package.json"), JSON.stringify({ version: "1.0.0" }));
  const linux = { platform: "linux", arch: "x64", backend: "cpu", manifest: hash(manifest) };
  writeFileSync(
    join(context.root, "prebuilt.json"),
    JSON.stringify({ packages: [{ name: "tapline-linux-x64", version: "1.0.0", ...linux }] }),
  );
});
test.after.each(({ root }) => rmSync(join(root, "..", ".."), { recursive: true, force: true }));

test("uses the best level that the processor supports", ({ root, beside }) => {
  const levels = (...features: string[]) => findPrebuilt(root, true, machine(...features)).candidates;
  assert.equal(levels("avx2", "fma", "sse2")[0], {
    path: join(beside, "fast.node"),
    levels: ["fast"],
    package: "tapline-linux-x64 1.0.0",
    backend: "cpu",
  });
  assert.equal(
    levels("avx2").map(({ levels }) => levels),
    [["plain"]],
  );
});

test("a missing or mismatched platform package is reported by name", ({ root, beside }) => {
  const refused = (where = machine("avx2")) => {
    const { candidates, refused } = findPrebuilt(root, true, where);
    assert.equal(candidates, []);
    return refused.join("; ");
  };
  assert.is(
    refused({ ...machine(), arch: "arm64" }),
    "this package has prebuilt addons for linux-x64, and this is linux-arm64",
  );
  writeFileSync(join(beside, "addons.json"), "{}");
  assert.is(refused(), "tapline-linux-x64 1.0.0 is not the package that was made together with this one");
  writeFileSync(join(beside, "package.json"), JSON.stringify({ version: "0.9.0" }));
  assert.is(refused(), "tapline-linux-x64 is here as 0.9.0, and this package takes 1.0.0");
  rmSync(join(beside, "addons.json"));
  writeFileSync(join(beside, "package.json"), JSON.stringify({ version: "1.0.0" }));
  assert.is(refused(), "tapline-linux-x64 is damaged: its package.json or addons.json cannot be read");
});

test("a package that is not installed is named", ({ root, beside }) => {
  rmSync(beside, { recursive: true });
  assert.equal(findPrebuilt(root, true, machine()).refused, ["tapline-linux-x64 1.0.0 is not installed"]);
});

test("installing compiles if a package file is damaged; starting skips the file", ({ root, beside }) => {
  writeFileSync(join(beside, "fast.node"), "an addon for faST"); // as long, another
  const damaged = ["tapline-linux-x64 1.0.0 is damaged: fast.node"];
  assert.equal(findPrebuilt(root, true, machine("avx2", "fma")), {
    candidates: [],
    refused: damaged,
    missing: [],
  });
  truncateSync(join(beside, "fast.node"), 3);
  const atStart = findPrebuilt(root, false, machine("avx2", "fma"));
  assert.equal([atStart.candidates.map(({ levels }) => levels), atStart.refused], [[["plain"]], damaged]);
});

test("an install reports the addon it uses, or why it compiles", async ({ root }) => {
  const said: string[] = [];
  const install = async (env: NodeJS.ProcessEnv = {}) => {
    said.length = 0;
    const used = await usePrebuilt((sentence) => said.push(sentence), env, root, findPrebuilt);
    return `${used}: ${said.join("|")}`;
  };
  assert.match(
    await install({ npm_config_build_from_source: "true" }),
    /^false: compiling the addon, as --build-from-source asks$/,
  );
  assert.match(await install({ LLAMA_CPP_DIR: "/x" }), /^false: compiling the addon, as LLAMA_CPP_DIR asks$/);
  assert.match(
    await install({ TAPLINE_BACKEND: "cuda" }),
    /^false: no prebuilt addon is used \(none is for TAPLINE_BACKEND=cuda\): compiling$/,
  );
  // A file whose bytes are right and that does not load: another C library, say.
  assert.match(
    await install(),
    /^false: no prebuilt addon is used \(.*plain\.node does not load here: .*(file too short|invalid ELF header).*\): compiling$/,
  );
  rmSync(join(root, "prebuilt.json"));
  assert.is(await install(), "false: "); // packed with none
});

test("reports an unsupported processor, but does not infer one from damaged files", ({ root, beside }) => {
  const manifest = readFileSync(join(beside, "addons.json"), "utf8");
  const addons = JSON.parse(manifest).addons.slice(0, 1);
  const alone = JSON.stringify({ addons });
  writeFileSync(join(beside, "addons.json"), alone);
  const list = readFileSync(join(root, "prebuilt.json"), "utf8");
  writeFileSync(join(root, "prebuilt.json"), list.replace(hash(manifest), hash(alone)));
  assert.equal(findPrebuilt(root, true, machine("avx2")), {
    candidates: [],
    refused: ["this processor can run none of the addons of tapline-linux-x64"],
    missing: [],
  });
  assert.is(findPrebuilt(root, true, machine("avx2", "fma")).candidates.length, 1);
  truncateSync(join(beside, "fast.node"), 3);
  assert.equal(findPrebuilt(root, false, machine("avx2", "fma")).refused, [
    "tapline-linux-x64 1.0.0 is damaged: fast.node",
  ]);
});

test("levels of a release come from this version's tarballs, whatever else lies there", ({ root }) => {
  const [out, into] = [join(root, "release"), join(root, "into")];
  mkdirSync(out);
  const lowest = levelsFor(process.platform, process.arch).at(-1)!.name;
  const pack = (name: string, files: Record<string, string>, version = current) => {
    mkdirSync(join(root, "package"));
    for (const [file, text] of Object.entries(files)) writeFileSync(join(root, "package", file), text);
    execFileSync("tar", ["-czf", join(out, `${name}-${version}.tgz`), "-C", root, "package"]);
    rmSync(join(root, "package"), { recursive: true });
  };
  const addon = { levels: ["never", lowest], file: "a.node", needs: [], bytes: 1, sha256: hash("a") };
  const manifest = JSON.stringify({ addons: [addon] });
  const { platform, arch } = process;
  const platformPackage = { name: "tapline-here", version: current, platform, arch, backend: "cpu" };
  const list = { packages: [{ ...platformPackage, manifest: hash(manifest) }] };
  pack("tapline", { "package.json": "{}", "prebuilt.json": "{" }, "0.0.1");
  pack("tapline", { "package.json": "{}", "prebuilt.json": JSON.stringify(list) });
  pack("tapline-here", {
    "package.json": JSON.stringify({ version: current }),
    "addons.json": manifest,
    "a.node": "a",
  });
  assert.equal(releasedLevels(into, out), [
    { path: join(into, "node_modules/tapline-here/a.node"), level: lowest },
  ]);
  rmSync(join(out, `tapline-here-${current}.tgz`));
  assert.throws(
    () => releasedLevels(join(root, "again"), out),
    saying(
      `${out} has no addon of version ${current} for this processor: tapline-here ${current} is not installed`,
    ),
  );
});

test("the features of the first processor count", ({ root }) => {
  const file = join(root, "cpuinfo");
  writeFileSync(file, `processor\t: 0\nflags\t\t: fpu avx2 fma\n\nprocessor\t: 1\nflags\t\t: fpu\n`);
  assert.equal([...processorFeatures(file)], ["fpu", "avx2", "fma"]);
  assert.is(processorFeatures(join(root, "none")).size, 0);
});

test("the list of levels for CMake has the compiler's options by hand", () => {
  const named = (arch: string, ...names: string[]) =>
    levelList(levelsFor("linux", arch).filter(({ name }) => names.includes(name)));
  assert.is(
    named("x64", "x86-64-v2", "x86-64"),
    "x86-64-v2|-msse4.2|cx16 lahf_lm popcnt ssse3 sse4_1 sse4_2/x86-64||",
  );
  assert.is(
    named("arm64", "arm64-dotprod", "arm64"),
    "arm64-dotprod|-march=generic+dotprod|asimd asimddp/arm64|-march=generic|",
  );
});

test("systems that report no features get one level, whose addon checks the processor", () => {
  const names = (platform: string, arch: string) =>
    levelsFor(platform, arch).map(({ name, needs }) => `${name} ${needs.length}`);
  assert.equal(names("win32", "x64"), ["x86-64-v3 0"]);
  assert.equal(names("darwin", "x64"), ["x86-64-v3 0"]);
  assert.equal(names("darwin", "arm64"), ["arm64 0"]);
});

test("each level requires the features it is compiled with; the last none", () => {
  const levels = levelsFor("linux", "x64");
  assert.equal(levels.at(-1), { name: "x86-64", needs: [], options: [] });
  // By hand: the instructions that a kernel's option allows.
  const features: Record<string, string[]> = {
    GGML_SSE42: ["sse4_2", "popcnt"],
    GGML_AVX: ["avx"],
    GGML_F16C: ["f16c"],
    GGML_FMA: ["fma"],
    GGML_BMI2: ["bmi2"],
    GGML_AVX2: ["avx2"],
    GGML_AVX_VNNI: ["avx_vnni"],
    GGML_AVX512: ["avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw"],
    GGML_AVX512_VBMI: ["avx512vbmi"],
    GGML_AVX512_VNNI: ["avx512_vnni"],
    GGML_AVX512_BF16: ["avx512_bf16"],
  };
  for (const level of levels) {
    const words = cmakeOptions(level, "linux", "x64").split(" ");
    assert.ok(words.includes("GGML_NATIVE=OFF"));
    for (const [option, needed] of Object.entries(features)) {
      const on = words.includes(`${option}=ON`);
      assert.is(on, !words.includes(`${option}=OFF`), `${level.name} says of ${option} what it is`);
      if (on) for (const each of needed) assert.ok(level.needs.includes(each), `${level.name}: ${each}`);
    }
  }
});

test.run();
