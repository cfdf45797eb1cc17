#!/usr/bin/env node
/**
 * Formats native/ with clang-format; with --check only says what is not formatted. Without clang-format on the
 * PATH it says so and succeeds: not everybody who changes a line of TypeScript has it.
 */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const native = fileURLToPath(new URL("../native", import.meta.url));
const files = readdirSync(native, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.(cpp|h|inc)$/.test(name))
  .map((name) => join(native, name));

const check = process.argv.includes("--check");
const options = check ? ["--dry-run", "-Werror"] : ["-i"];
const { error, status } = spawnSync("clang-format", [...options, ...files], { stdio: "inherit" });
if (error) {
  console.log(`clang-format was not found: native/ is not ${check ? "checked" : "formatted"}.`);
} else {
  process.exitCode = status ?? 1;
}
