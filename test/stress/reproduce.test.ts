import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { startLab } from "../../src/lab/index.js";
import { command } from "../cli/in-process.js";
import { compiledWorker } from "../support/program.js";

const root = mkdtempSync(join(tmpdir(), "tapline-reproduce-"));
const recipes = fileURLToPath(new URL("../../recipes", import.meta.url));
const lab = await startLab({ port: 0, home: join(root, "home"), backend: "cpu", ...compiledWorker });
test.after(async () => {
  await lab.close();
  rmSync(root, { recursive: true, force: true });
});

for (const name of readdirSync(recipes)) {
  const { models } = JSON.parse(readFileSync(join(recipes, name, "recipe.json"), "utf8"));
  if (models[0].id !== "demo") continue;
  test(`${name} holds on the embedded model`, async () => {
    const ran = await command(["reproduce", name, "--lab", lab.url, "--out", join(root, name), "--quiet"]);
    assert.is(ran.code, 0, `${ran.stderr}\n${ran.stdout}`);
  });
}

test.run();
