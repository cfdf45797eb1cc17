import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";

const module = fileURLToPath(new URL("../../scripts/build/interrupt.js", import.meta.url));

if (process.platform !== "win32") {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    test(`onInterrupt removes a temporary folder on ${signal}`, async () => {
      const folder = mkdtempSync(join(tmpdir(), "tapline-interrupt-"));
      const script = `
        import { rmSync } from "node:fs";
        const { onInterrupt } = await import(process.argv[1]);
        onInterrupt(() => rmSync(process.argv[2], { recursive: true }));
        console.log("ready");
        setInterval(() => {}, 1000);`;
      const child = spawn(process.execPath, ["--input-type=module", "-e", script, module, folder], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      await once(child.stdout, "data");
      child.kill(signal);
      const [code, endedBy] = await once(child, "exit");
      assert.is(code, null);
      assert.is(endedBy, signal, "the process still ends by the signal");
      assert.not.ok(existsSync(folder));
    });
  }
}

test.run();
