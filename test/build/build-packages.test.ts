import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import { delimiter, join } from "node:path";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import {
  buildPackage,
  buildVersions,
  ensureBuildPackages,
  withoutBuildPackages,
} from "../../scripts/build/build-packages.js";
import { saying } from "../support/saying.js";

const test = suite<{ folder: string }>("build-packages");

test.before.each((context) => {
  context.folder = mkdtempSync(join(os.tmpdir(), "tapline-build-packages-"));
});
test.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }));

const about = {
  name: "tapline",
  dependencies: {
    koa: "3.3.0",
    "cmake-js": "8.0.0",
    "node-addon-api": "8.9.2",
    "node-api-headers": "1.9.0",
    "node-gyp": "12.4.0",
  },
};

test("a published package depends on nothing that only a build needs", () => {
  const published = withoutBuildPackages(about);
  const moved = { "cmake-js": "8.0.0", "node-addon-api": "8.9.2", "node-api-headers": "1.9.0" };
  assert.equal(published, { name: "tapline", dependencies: { koa: "3.3.0" }, buildDependencies: moved });
  assert.equal([buildVersions(about), buildVersions(published)], [moved, moved]);
});

/** An npm that notes its arguments and leaves a package, or fails. */
function standIn(folder: string, script: string): NodeJS.ProcessEnv {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "npm"), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, "npm"), 0o755);
  const { npm_execpath: _, ...env } = process.env;
  return { ...env, PATH: `${bin}${delimiter}${env.PATH}`, npm_config_global: "true" };
}

if (process.platform !== "win32") {
  test("a build fetches the packages that are missing, once", async ({ folder }) => {
    const own = join(folder, "packages");
    const env = standIn(
      folder,
      `echo "$npm_config_global $*" >>"${folder}/calls"; mkdir -p node_modules/tapline-no-such; echo '{}' >node_modules/tapline-no-such/package.json`,
    );
    const said: string[] = [];
    const versions = { "cmake-js": "8.0.0", "tapline-no-such": "1.2.3" };
    const ensure = () =>
      ensureBuildPackages((sentence) => said.push(sentence), { env, folder: own, versions });
    await ensure();
    await ensure();
    assert.equal(said, ["fetching tapline-no-such@1.2.3, which only a build needs, through npm"]);
    assert.match(readFileSync(join(folder, "calls"), "utf8"), /^ install .* tapline-no-such@1\.2\.3\n$/);
    assert.is(buildPackage("tapline-no-such", own), join(own, "node_modules/tapline-no-such"));
    assert.ok(existsSync(join(buildPackage("cmake-js", own), "bin/cmake-js")));
  });

  test("a failed fetch names the packages and npm's reason", async ({ folder }) => {
    const env = standIn(folder, 'echo "npm error 404 not there" >&2; exit 1');
    const versions = { "tapline-no-such": "1.2.3" };
    const failed = await ensureBuildPackages(() => {}, {
      env,
      folder: join(folder, "packages"),
      versions,
    }).catch((error: Error) => error);
    assert.throws(() => {
      throw failed;
    }, saying(
      "tapline-no-such@1.2.3 could not be fetched through npm (404 not there): check the connection and npm's registry setting.",
    ));
  });
}

test.run();
