import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import * as assert from "uvu/assert";

/** Asserts that Redocly's recommended rules find nothing in an OpenAPI document. */
export function assertLinted(document: unknown): void {
  const folder = mkdtempSync(join(tmpdir(), "tapline-openapi-"));
  const file = join(folder, "openapi.json");
  writeFileSync(file, JSON.stringify(document));
  const manifest = createRequire(import.meta.url).resolve("@redocly/cli/package.json");
  const { bin } = createRequire(import.meta.url)(manifest) as { bin: Record<string, string> };
  const { stdout, status } = spawnSync(
    process.execPath,
    [join(dirname(manifest), bin.redocly as string), "lint", "--extends=recommended", "--format=json", file],
    {
      encoding: "utf8",
      cwd: folder,
      env: { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
    },
  );
  rmSync(folder, { recursive: true });
  const report = JSON.parse(stdout.slice(stdout.indexOf("{"), stdout.lastIndexOf("}") + 1));
  assert.equal(report.totals, { errors: 0, warnings: 0, ignored: 0 }, stdout);
  assert.is(status, 0);
}
