import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";

const addon = fileURLToPath(new URL("../../.build/tapline.node", import.meta.url));

function nm(...args: string[]): string[] | undefined {
  const { status, stdout } = spawnSync("nm", [...args, addon], { encoding: "utf8", maxBuffer: 1e8 });
  return status === 0 ? stdout.trim().split("\n") : undefined;
}

test("an addon has been built", () => {
  assert.ok(existsSync(addon), "run `npm run build:native`");
});

if (process.platform === "linux" && nm("-D")) {
  test("the addon exports only what Node looks up", () => {
    const names = nm("-D", "--defined-only")?.map((line) => line.split(" ").at(-1)?.split("@")[0]) ?? [];
    assert.equal(names.sort(), ["napi_register_module_v1", "node_api_module_get_api_version_v1"]);
  });

  test("it takes nothing from OpenSSL or zlib, which Node would lend it", () => {
    const wanted = nm("-D", "--undefined-only") ?? [];
    assert.equal(
      wanted.filter((line) => /\b(SSL_|EVP_|CRYPTO_|BIO_|inflate|deflate)/.test(line)),
      [],
    );
  });
}

test.run();
