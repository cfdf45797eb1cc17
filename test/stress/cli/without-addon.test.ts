import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";

const root = fileURLToPath(new URL("../../..", import.meta.url));

test("without the addon, commands that need it say so, and the rest works", async () => {
  const folder = mkdtempSync(join(tmpdir(), "tapline-light-"));
  try {
    cpSync(join(root, "src"), join(folder, "src"), { recursive: true });
    copyFileSync(join(root, "package.json"), join(folder, "package.json"));
    for (const name of ["models", "node_modules", "scripts"])
      symlinkSync(join(root, name), join(folder, name));
    const run = async (...words: string[]) => {
      const program = join(folder, "src/cli/main.ts");
      const child = spawn(process.execPath, ["--import", import.meta.resolve("tsx"), program, ...words], {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, TAPLINE_HOME: join(folder, "home") },
      });
      const [stdout, stderr, [code]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        once(child, "close") as Promise<[number | null]>,
      ]);
      return { code, stdout, stderr };
    };
    const asks = /^tapline: The native addon is not built; run `npm run build:native`\.\n$/;
    const [serving, lab, agents] = await Promise.all([
      run("serve", "--port", "0"),
      run("lab", "--port", "0"),
      run("mcp", "lab"),
    ]);
    for (const { code, stderr } of [serving, lab]) {
      assert.is(code, 1);
      assert.match(stderr, asks);
    }
    assert.equal(agents, { code: 0, stdout: "", stderr: "" });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test.run();
