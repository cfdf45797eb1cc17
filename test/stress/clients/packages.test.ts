import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { findPython, runProgram } from "../../clients/support/python.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const here = fileURLToPath(new URL("../../clients/", import.meta.url));
const anyPython = findPython() as string;
const folder = mkdtempSync(join(tmpdir(), "tapline-clients-"));
const inside = join(folder, ".venv/bin/python");
// A copy, because setuptools builds beside the sources.
cpSync(join(root, "clients/python"), join(folder, "clients/python"), { recursive: true });

// Debian has setuptools and wheel as wheels, which its own Python builds with, so that no network is needed.
// Elsewhere pip asks its index.
const wheelhouse = "/usr/share/python-wheels";
const kept = existsSync(wheelhouse) ? readdirSync(wheelhouse) : [];
const offline = ["setuptools-", "wheel-"].every((start) => kept.some((name) => name.startsWith(start)));
const python = offline ? "/usr/bin/python3" : anyPython;
const pip: Record<string, string> = offline ? { PIP_NO_INDEX: "1", PIP_FIND_LINKS: wheelhouse } : {};

async function succeed(program: string, words: string[], environment: Record<string, string> = {}) {
  const { code, stdout, stderr } = await runProgram(program, words, { folder, environment });
  assert.is(code, 0, stdout + stderr);
  return stdout;
}

test("the page's commands build both wheels and install them into a fresh environment", async () => {
  const page = readFileSync(join(root, "docs/python.md"), "utf8");
  const commands = /```sh\n([\s\S]*?)```/.exec(page)?.[1] as string;
  assert.match(commands, /^python3 -m venv \.venv\n\.venv\/bin\/pip install .*\n$/);
  await succeed("sh", ["-ec", commands.replace(/^python3/, `"${python}"`)], pip);
});

test("the installed package has its types, nothing else, and no dependencies", async () => {
  const installed = JSON.parse(await succeed(inside, [join(here, "support/installed.py")]));
  const expected = {
    "tapline-lab": ["tapline_lab", "0.3.0"],
    "agent-research-client": ["agent_research", "0.1.0"],
  };
  for (const [distribution, [module, version]] of Object.entries(expected)) {
    const found = installed[distribution];
    assert.is(found.version, version);
    assert.is(found.module_version, version);
    assert.is(found.python, ">=3.10");
    assert.equal(found.needs, []);
    assert.match(found.wheel, /^Root-Is-Purelib: true\nTag: py3-none-any$/m);
    const sources = readdirSync(join(root, `clients/python/${module}/src/${module}`));
    assert.ok(sources.includes("py.typed"));
    assert.equal(
      found.files,
      sources
        .filter((file) => file !== "__pycache__")
        .map((file) => `${module}/${file}`)
        .sort(),
    );
    assert.ok(found.licence, "the licence goes with it");
  }
});

test("only arrays and frames need packages, and name the missing one", async () => {
  const output = await succeed(inside, [join(here, "support/without_numpy.py")]);
  const [arrays, frames] = output.split("\n");
  assert.match(
    arrays as string,
    /^Arrays require NumPy, which is not installed; Lab\.artifact\(\) downloads/,
  );
  assert.match(
    frames as string,
    /^DataFrames require pandas, which is not installed: pip install 'tapline-lab\[/,
  );
});

test.after(() => rmSync(folder, { recursive: true }));
test.run();
