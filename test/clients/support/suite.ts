import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { clientSources, pythonForTests, runProgram } from "./python.js";

const here = fileURLToPath(new URL(".", import.meta.url));

interface Line {
  name: string;
  outcome: "passed" | "failed" | "skipped";
  detail: string;
}

/**
 * Runs the Python tests in a folder beside this one, with variables that say where the services are, and makes a
 * test of each; one more says that Python itself ended well.
 */
export async function pythonSuite(folder: string, environment: Record<string, string>): Promise<void> {
  const ended = await runProgram(pythonForTests(), [`${here}run_suite.py`, `${here}../${folder}`], {
    environment: { ...environment, PYTHONPATH: [...clientSources, here].join(":") },
  });
  const lines = ended.stdout.split("\n").filter((line) => line.startsWith("{"));
  const results = lines.map((line) => JSON.parse(line) as Line);
  for (const { name, outcome, detail } of results) {
    if (outcome === "skipped") test.skip(`${name}: ${detail}`);
    else {
      test(name, () => {
        if (outcome !== "passed") throw new Error(detail);
      });
    }
  }
  test("Python ran to its end and found tests", () => {
    assert.is(ended.code, 0, ended.stderr);
    assert.ok(results.length > 0, ended.stdout + ended.stderr);
  });
}
