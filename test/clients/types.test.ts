import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { clientSources, findPython, runProgram } from "./support/python.js";

const here = fileURLToPath(new URL(".", import.meta.url));
const python = findPython("mypy");

/** Lines of a program that its comments call wrong. */
function marked(file: string): string[] {
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.flatMap((line, index) => (line.includes("# wrong") ? [`typed_misuse.py:${index + 1}`] : []));
}

if (python === undefined) {
  test.skip("strict type checking: mypy is not installed");
} else {
  test("sources and a program pass strict type checking; mistakes are found", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tapline-clients-"));
    const misuse = join(here, "support/typed_misuse.py");
    const configuration = join(clientSources[0] as string, "../pyproject.toml");
    const words = ["-m", "mypy", "--strict", "--no-site-packages", "--cache-dir", folder];
    const files = [...clientSources, join(here, "support/typed_use.py"), misuse];
    const { stdout, stderr } = await runProgram(
      python,
      [...words, "--config-file", configuration, ...files],
      {
        environment: { MYPYPATH: clientSources.join(":") },
      },
    );
    rmSync(folder, { recursive: true });
    const errors = stdout.split("\n").filter((line) => line.includes(": error:"));
    const places = errors.map((line) => /([^/]*): error:/.exec(line)?.[1]);
    assert.equal([...new Set(places)], marked(misuse), stdout + stderr);
    assert.match(stdout, /checked \d\d source files/);
  });
}
test.run();
