/** Output that cannot be written, and results that nothing was written of: never lost in silence, never 0. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Lab } from "../../src/client/index.js";
import { startLab } from "../../src/lab/index.js";
import { compiledWorker, program } from "../support/program.js";

const root = mkdtempSync(join(tmpdir(), "tapline-lost-"));
const lab = await startLab({ port: 0, home: join(root, "home"), backend: "cpu", ...compiledWorker });
test.after(async () => {
  await lab.close();
  rmSync(root, { recursive: true, force: true });
});

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

interface Place {
  cwd?: string;
  /** Where standard output goes; a pipe unless told otherwise. */
  into?: string;
  /** Limits file sizes to a number of KiB, as on a disk that fills up: the last write is partial. */
  limit?: number;
}

async function run(words: string[], { cwd = root, into, limit }: Place) {
  const stdout = into === undefined ? "pipe" : openSync(into, "w");
  const limited = `ulimit -f ${limit ?? "unlimited"}; exec "$@"`;
  const child = spawn("bash", ["-c", limited, "-", process.execPath, ...program, ...words], {
    cwd,
    stdio: ["ignore", stdout, "pipe"],
    env: { ...process.env, FORCE_COLOR: "0" },
  });
  const shown = { stdout: "", stderr: "" };
  child.stdout?.on("data", (chunk) => {
    shown.stdout += chunk;
  });
  child.stderr?.on("data", (chunk) => {
    shown.stderr += chunk;
  });
  const [code] = (await once(child, "close")) as [number];
  return { code, ...shown };
}

const inspect = ["inspect", "The capital of France is", "--layers", "7", "--json", "--quiet"];

// A program that runs as root and renames a file to that name leaves an ordinary one.
if (statSync("/dev/full", { throwIfNoEntry: false })?.isCharacterDevice()) {
  for (const words of [
    ["completion", "bash"],
    ["models", "--json"],
    ["--help"],
    ["jobs", "--lab", lab.url],
  ]) {
    test(`a full disk is reported: ${words[0]}`, async () => {
      const { code, stderr } = await run(words, { into: "/dev/full" });
      assert.is(code, 1);
      assert.is(stderr, "tapline: Cannot write to standard output (ENOSPC).\n");
    });
  }
} else test.skip("a full disk is reported: /dev/full is missing here", () => {});

test("a partially written file counts as lost", async () => {
  const into = join(root, "completion");
  const { code, stderr } = await run(["completion", "bash"], { into, limit: 1 });
  assert.is(readFileSync(into).length, 1024);
  assert.is(code, 1);
  assert.is(stderr, "tapline: Cannot write to standard output (EFBIG).\n");
});

test("an unwritable folder is reported before anything is computed", async () => {
  for (const [place, words] of [
    ["/proc", [...inspect, "--lab", lab.url]],
    [root, [...inspect, "--lab", lab.url, "--out", `${main}/here`]],
    [root, ["demo", "--out", `${main}/here`]],
  ] as const) {
    if (!existsSync("/proc/self")) return;
    const { code, stdout, stderr } = await run([...words], { cwd: place });
    assert.is(code, 1);
    assert.is(stdout, "");
    assert.match(stderr, /^tapline: Cannot write to \S+ \(E\w+\); see --out\.\n$/);
  }
  assert.equal(await new Lab(lab.url).jobs(), []);
});

test("the result is printed even if its files fail", async () => {
  const out = join(root, "small");
  const { code, stdout, stderr } = await run([...inspect, "--lab", lab.url, "--out", out], { limit: 1 });
  assert.is(code, 1);
  assert.match(stderr, /^tapline: Cannot write \S+activations\.npz \(EFBIG\); see --out\.\n$/);
  const report = JSON.parse(stdout);
  assert.is(report.job.result.next_tokens[0].token, " Paris");
  assert.is(report.folder, null);
  assert.equal(report.files, []);
  assert.not(existsSync(out), "the partial file is deleted");

  const drawn = await run(["job", report.job.id, "--lab", lab.url, "--out", join(root, "again")], {
    limit: 1,
  });
  assert.is(drawn.code, 1);
  assert.match(drawn.stdout, "Logit lens");
  assert.not.match(drawn.stdout, "Written");
  assert.match(drawn.stderr, /Cannot write \S+activations\.npz \(EFBIG\)/);
  assert.equal(readdirSync(root).sort(), ["again", "completion", "home"]);
});

test.run();
