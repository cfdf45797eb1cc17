/** The dependencies of an installed package, and those that only a clone needs. */
import { spawnSync } from "node:child_process";
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { builtinModules } from "node:module";
import os from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));

/** Names of packages that the code of some files loads when it runs; what types come from does not count. */
function loaded(folder: string, ending: RegExp, skipped: RegExp): Set<string> {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  const names = files
    .filter((file) => ending.test(file) && !skipped.test(file.replaceAll("\\", "/")))
    .flatMap((file) => {
      const text = readFileSync(join(root, folder, file), "utf8");
      const found = text.matchAll(
        /^(?:import|export) (?!type )(?:[^;"]*? from )?"([^"]+)"|(?:\bimport|\))\("([^"]+)"\)/gm,
      );
      return [...found].map(([, one, other]) => (one ?? other) as string);
    });
  const bare = names.filter((name) => !/^[./]|^node:/.test(name) && !builtinModules.includes(name));
  return new Set(bare.map((name) => /^(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] as string));
}

test("every package that published code or the install script loads is a dependency", () => {
  // The workbench's page is bundled; these three scripts run where src/ is compiled.
  const code = loaded("src", /\.ts$/, /^workbench\/page\//);
  const install = loaded("scripts/build", /\.js$/, /^(?:javascript|page|typebox)\.js$/);
  assert.ok(code.has("koa") && code.has("katex"), [...code].join());
  // Found by path: what reports inline, and what the addon is compiled with.
  const found = ["d3", "@observablehq/plot", "cmake-js", "node-addon-api", "node-api-headers", "node-gyp"];
  for (const name of [...code, ...install, ...found]) {
    assert.ok(name in dependencies, `${name} is missing from the dependencies`);
  }
});

/** A folder with the package's declarations and only the packages that npm installs next to it. */
function installed(): string {
  const folder = mkdtempSync(join(os.tmpdir(), "tapline-dependencies-"));
  const own = join(folder, "node_modules/tapline");
  mkdirSync(own, { recursive: true });
  copyFileSync(join(root, "package.json"), join(own, "package.json"));
  const settings = {
    extends: join(root, "tsconfig.build.json"),
    compilerOptions: {
      ...{
        emitDeclarationOnly: true,
        sourceMap: false,
        rootDir: join(root, "src"),
        outDir: join(own, "dist"),
      },
      typeRoots: [join(root, "node_modules/@types")],
    },
    files: ["client", "native", "contracts"].map((name) => join(root, `src/${name}/index.ts`)),
    include: [],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(settings));
  assert.is(compile(folder, "-p", "tsconfig.json"), "");
  rmSync(join(folder, "tsconfig.json"));
  for (const [path, { dev }] of Object.entries<{ dev?: boolean }>(packages)) {
    if (dev || !/^node_modules\/(?:@[^/]+\/)?[^/]+$/.test(path)) continue;
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    symlinkSync(join(root, path), join(folder, path), "junction");
  }
  return folder;
}

function compile(cwd: string, ...options: string[]): string {
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const { stdout, error } = spawnSync(process.execPath, [tsc, ...options], { cwd, encoding: "utf8" });
  if (error) throw error;
  return stdout;
}

test("a TypeScript program compiles with the packages that npm installs", () => {
  const folder = installed();
  try {
    const lines = [
      'import { Lab, ServingModel } from "tapline";',
      'import { ResearchClient } from "tapline/client";',
      'import { limits } from "tapline/contracts";',
      'import * as native from "tapline/native";',
      "export const most: number = limits.layers;",
      "export const lab = new Lab();",
      "export { native, ResearchClient, ServingModel };",
    ];
    writeFileSync(join(folder, "program.ts"), lines.join("\n"));
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    const options = ["--noEmit", "--strict", "--preserveSymlinks", "--types", "node", "program.ts"];
    const checked = () =>
      compile(folder, ...options, "--module", "NodeNext", "--target", "ES2022", "--skipLibCheck", "false");
    assert.is(checked(), "");
    rmSync(join(folder, "node_modules/@types/ndarray"));
    assert.match(checked(), "Could not find a declaration file for module 'ndarray'");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test.run();
