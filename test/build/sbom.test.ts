/** Lists of components, and the licences of what the addon is linked with. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  cudaComponents,
  licenceText,
  nativeComponents,
  sqliteComponents,
} from "../../scripts/build/components.js";
import { nativeEntries, npmEntries, sbom } from "../../scripts/build/sbom.js";
import { runtimePackages } from "../../scripts/build/wheel.js";
import { saying } from "../support/saying.js";

const test = suite<{ folder: string }>("sbom");
const root = fileURLToPath(new URL("../..", import.meta.url));
const notice = readFileSync(join(root, "NOTICE"), "utf8");

test.before.each((context) => {
  context.folder = mkdtempSync(join(os.tmpdir(), "tapline-sbom-"));
});
test.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }));

/** The files of llama.cpp's tree and of the compiler from which versions are read, shortened. */
function sources(folder: string): { llama: string; zig: string; cuda: string } {
  const files = {
    "llama/ggml/CMakeLists.txt":
      "set(GGML_VERSION_MAJOR 0)\nset(GGML_VERSION_MINOR 25)\nset(GGML_VERSION_PATCH 1)\n",
    "llama/ggml/src/ggml-cpu/llamafile/sgemm.cpp":
      "// Copyright 2024 Somebody\n//\n// Permission is granted.\n\n// Other text\nint a;\n",
    "llama/vendor/cpp-httplib/httplib.h":
      '#define CPPHTTPLIB_VERSION "0.57.1"\n#define CPPHTTPLIB_VERSION_NUM 1\n',
    "llama/vendor/nlohmann/json.hpp":
      "#define NLOHMANN_JSON_VERSION_MAJOR 3   // x\n#define NLOHMANN_JSON_VERSION_MINOR 12  // x\n#define NLOHMANN_JSON_VERSION_PATCH 0   // x\n",
    "llama/vendor/miniaudio/miniaudio.h":
      "#define MA_VERSION_MAJOR    0\n#define MA_VERSION_MINOR    11\n#define MA_VERSION_REVISION 25\n",
    "llama/vendor/stb/stb_image.h": "/* stb_image - v2.30 - public domain image loader\n",
    "cuda/include/cccl/cub/version.cuh": "#define CUB_VERSION 300102 // macro\n",
    "cuda/include/cccl/cub/cub.cuh":
      "/*****\n * Copyright (c) 2011\n *\n * Redistribution is\n *     permitted.\n *\n *****/\n\n/**\n * \\file\n */\n",
    "zig-1.2.3/ziglang/lib/libcxx/include/__config": "#  define _LIBCPP_VERSION 220108\n",
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return { llama: join(folder, "llama"), zig: join(folder, "zig-1.2.3"), cuda: join(folder, "cuda") };
}

test("versions of linked libraries are read from their sources", ({ folder }) => {
  const { llama, zig } = sources(folder);
  const versions = Object.fromEntries(
    nativeComponents(llama, zig).map(({ name, version }) => [name, version]),
  );
  const api = JSON.parse(readFileSync(join(root, "node_modules/node-addon-api/package.json"), "utf8"));
  assert.equal(
    [versions.ggml, versions["cpp-httplib"], versions["nlohmann/json"], versions.miniaudio],
    ["0.25.1", "0.57.1", "3.12.0", "0.11.25"],
  );
  assert.equal(
    [versions.stb_image, versions["libc++"], versions["Zig's compiler-rt"], versions["node-addon-api"]],
    ["2.30", "22.1.8", "1.2.3", api.version],
  );
  rmSync(join(llama, "vendor/stb/stb_image.h"));
  assert.throws(
    () => nativeComponents(llama),
    saying(`The version of a component was not found in ${join(llama, "vendor/stb/stb_image.h")}.`),
  );
});

test("NOTICE names every linked library", ({ folder }) => {
  const { llama, zig, cuda } = sources(folder);
  const all = [...nativeComponents(llama, zig), ...cudaComponents(cuda), ...sqliteComponents()];
  assert.ok(all.length >= 19, `${all.length} components`);
  for (const { name, text } of all) {
    assert.ok(notice.includes(name), `NOTICE lacks ${name}`);
    if (name.startsWith("node-") || name.startsWith("@")) assert.ok(existsSync(text!), text);
  }
});

test("CUB's version and licence are read from its headers", ({ folder }) => {
  const [cub] = cudaComponents(sources(folder).cuda);
  assert.is(cub?.version, "3.1.2");
  assert.is(licenceText(cub?.text as string), "Copyright (c) 2011\n\nRedistribution is\n    permitted.\n\n");
});

test("the licence of a source file is the comment at its beginning", ({ folder }) => {
  const { llama } = sources(folder);
  assert.is(
    licenceText(join(llama, "ggml/src/ggml-cpu/llamafile/sgemm.cpp")),
    "Copyright 2024 Somebody\n\nPermission is granted.\n",
  );
});

test("the same components give the same document, and its number depends on them", () => {
  const about = { name: "x", version: "1.0.0", license: "MIT" };
  const [a, b] = nativeEntries([
    { name: "b/c", version: "2", license: "Apache-2.0 WITH LLVM-exception", purl: "pkg:github/b/c" },
    { name: "a", version: "1", license: "MIT", purl: "pkg:github/a/a@v1" },
  ]) as [object, object];
  const document = sbom(about, [a, b]);
  assert.is(sbom(about, [b, a]), document);
  assert.is.not(sbom(about, [a]), document);
  const { serialNumber, components, metadata } = JSON.parse(document);
  assert.match(serialNumber, /^urn:uuid:[\da-f]{8}-[\da-f]{4}-5[\da-f]{3}-a[\da-f]{3}-[\da-f]{12}$/);
  assert.equal(components, [
    {
      type: "library",
      "bom-ref": "a@1",
      name: "a",
      version: "1",
      purl: "pkg:github/a/a@v1",
      licenses: [{ license: { id: "MIT" } }],
    },
    {
      type: "library",
      "bom-ref": "b/c@2",
      name: "b/c",
      version: "2",
      purl: "pkg:github/b/c@2",
      licenses: [{ expression: "Apache-2.0 WITH LLVM-exception" }],
    },
  ]);
  assert.is(metadata.component.purl, "pkg:npm/x@1.0.0");
});

test("npm packages have the lock file's hash, in hexadecimal, and license", () => {
  const sum = createHash("sha512").update("some bytes").digest();
  const koa = { version: "3.3.0", integrity: `sha512-${sum.toString("base64")}`, license: "MIT" };
  const entry = {
    type: "library",
    "bom-ref": "@a/koa@3.3.0",
    name: "@a/koa",
    version: "3.3.0",
    purl: "pkg:npm/%40a/koa@3.3.0",
    hashes: [{ alg: "SHA-512", content: sum.toString("hex") }],
    licenses: [{ license: { id: "MIT" } }],
  };
  const [one, two] = ["node_modules/@a/koa", "node_modules/b/node_modules/@a/koa"] as const;
  assert.equal(npmEntries({ [one]: koa, [two]: koa }, [one, two]), [entry]);
  assert.throws(
    () => npmEntries({ [one]: { version: "1.0.0" } }, [one]),
    saying("package-lock.json has no version, sha512 or license of node_modules/@a/koa."),
  );
});

test("every package that runs is in the list", () => {
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  const paths = runtimePackages(packages);
  assert.ok(paths.length > 100, `${paths.length} packages`);
  assert.ok(npmEntries(packages, paths).length > 100);
});

test.run();
