import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { demoModelPath } from "../../../src/models/resolve.js";
import { mainCommit, sha256, TestHub } from "../../models/support/hub.js";
import { program } from "../../support/program.js";
import { until } from "../../support/until.js";

const demo = readFileSync(demoModelPath);
const hash = sha256(demo);

let hub: TestHub;
let home: string;
const children = new Set<ChildProcess>();

test.before.each(async () => {
  hub = await TestHub.open();
  hub.repositories["tiny/demo"] = { files: { "demo-F16.gguf": demo } };
  home = await mkdtemp(join(tmpdir(), "tapline-pull-"));
});
test.after.each(async () => {
  for (const child of children) child.kill("SIGKILL");
  await hub.close();
  await rm(home, { recursive: true, force: true });
});

interface Run {
  child: ChildProcess;
  ended: Promise<{ code: number | null; stdout: string; stderr: string }>;
}

/** `tapline` with the given words, in a process of its own; `shell` stands before it, e.g. a limit. */
function tapline(words: string[], options: { shell?: string; env?: Record<string, string> } = {}): Run {
  const env = { ...process.env, HF_ENDPOINT: hub.url, HF_HOME: home, TAPLINE_HOME: home, ...options.env };
  const command = [process.execPath, ...program, ...words];
  const child =
    options.shell === undefined
      ? spawn(command[0] as string, command.slice(1), { env })
      : spawn("bash", ["-c", `${options.shell}; exec "$@"`, "bash", ...command], { env });
  children.add(child);
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (text) => {
    stdout += text;
  });
  child.stderr.on("data", (text) => {
    stderr += text;
  });
  const ended = once(child, "close").then(([code]) => ({ code: code as number | null, stdout, stderr }));
  return { child, ended };
}

/** The one line that a command ends with; before it come lines of the download alone. */
function sentence(stderr: string): string {
  const lines = stderr.trimEnd().split("\n");
  for (const line of lines.slice(0, -1)) assert.match(line, /^downloading +\d+ % /);
  return lines.at(-1) as string;
}

const blobs = () => join(home, "hub", "models--tiny--demo", "blobs");

test("two processes that ask for the same file download it once", async () => {
  hub.faults = { dripMs: 20, dripBytes: 40_000 };
  const first = tapline(["pull", "tiny/demo"]);
  await until(() => hub.sent > 100_000);
  const second = tapline(["pull", "tiny/demo", "--json"]);
  const [a, b] = await Promise.all([first.ended, second.ended]);
  assert.is(a.code, 0, a.stderr);
  assert.is(b.code, 0, b.stderr);
  assert.is(JSON.parse(b.stdout).commit, mainCommit);
  assert.is(hub.downloads.length, 1);
  assert.is(hub.sent, demo.length);
  assert.equal(await readdir(blobs()), [hash]);
});

test("kill -9 during a download: never complete, and another process continues", async () => {
  hub.faults = { dripMs: 20, dripBytes: 40_000 };
  const first = tapline(["pull", "tiny/demo"]);
  await until(() => hub.sent > 500_000);
  first.child.kill("SIGKILL");
  await first.ended;
  assert.equal(await readdir(blobs()), [`${hash}.tapline.incomplete`]);
  assert.not.ok(existsSync(join(home, "hub", "models--tiny--demo", "snapshots")));
  const listed = await tapline(["models"]).ended;
  assert.match(listed.stdout, "No GGUF models in the cache ");
  assert.match(listed.stdout, /tiny\/demo has an unfinished download of \d/);
  const { size } = await stat(join(blobs(), `${hash}.tapline.incomplete`));
  hub.faults = {};
  const { code, stderr } = await tapline(["pull", "tiny/demo"]).ended;
  assert.is(code, 0, stderr);
  assert.is(hub.downloads.at(-1)?.range, `bytes=${size}-${demo.length - 1}`);
  assert.ok(demo.equals(await readFile(join(blobs(), hash))));
});

test("Ctrl-C: one sentence, and what has arrived stays", async () => {
  hub.faults = { dripMs: 20, dripBytes: 40_000 };
  const pull = tapline(["pull", "tiny/demo"]);
  await until(() => hub.sent > 200_000);
  pull.child.kill("SIGINT");
  const { code, stderr } = await pull.ended;
  assert.is(code, 1);
  assert.is(sentence(stderr), "tapline: Stopped. Run pull again to resume.");
  assert.equal(await readdir(blobs()), [`${hash}.tapline.incomplete`]);
});

if (process.platform === "linux") {
  test("a file larger than the system lets a process write", async () => {
    const { code, stderr } = await tapline(["pull", "tiny/demo"], { shell: "ulimit -f 1000" }).ended;
    assert.is(code, 1);
    assert.match(sentence(stderr), /^tapline: demo-F16\.gguf exceeds the file size limit in .*\.$/);
    assert.equal(await readdir(blobs()), [`${hash}.tapline.incomplete`]);
  });
}

const mounted = (size: string, folder: string) =>
  process.platform === "linux" &&
  spawnSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "none", folder]).status === 0;

test("a full disk before and during a download (if a small disk can be mounted)", async () => {
  const small = join(home, "small");
  await mkdir(small);
  if (!mounted("4m", small)) return;
  try {
    const env = { HF_HOME: small };
    await writeFile(join(small, "filler"), Buffer.alloc(2 << 20));
    const before = await tapline(["pull", "tiny/demo"], { env }).ended;
    assert.is(before.code, 1);
    assert.match(
      before.stderr,
      /^tapline: demo-F16\.gguf needs 4 MB, but the disk of .* has \d MB free; free some space/,
    );
    assert.is(hub.downloads.length, 0);
    await rm(join(small, "filler"));
    hub.faults = { dripMs: 20, dripBytes: 40_000 };
    const during = tapline(["pull", "tiny/demo"], { env });
    await until(() => hub.sent > 300_000);
    await writeFile(join(small, "filler"), Buffer.alloc(2 << 20));
    const { code, stderr } = await during.ended;
    assert.is(code, 1);
    assert.match(
      sentence(stderr),
      /^tapline: demo-F16\.gguf needs 4 MB, but the disk of .* is full; free some space/,
    );
  } finally {
    spawnSync("umount", ["-l", small]);
  }
});

test("models lists headers; rm deletes one quantisation, then the rest", async () => {
  hub.repositories["tiny/demo"] = {
    files: { "demo-F16.gguf": demo, "demo-Q8_0.gguf": Buffer.concat([demo, Buffer.alloc(32)]) },
    refs: { v1: "fedcba9876543210fedcba9876543210fedcba98" },
  };
  for (const [model, revision] of [
    ["tiny/demo:F16", "main"],
    ["tiny/demo:Q8_0", "main"],
    ["tiny/demo:F16", "v1"],
  ]) {
    const { code, stderr } = await tapline(["pull", model as string, "--revision", revision as string]).ended;
    assert.is(code, 0, stderr);
  }
  const { stdout } = await tapline(["models", "--json"]).ended;
  const { models } = JSON.parse(stdout);
  assert.equal(
    models.map((model: { id: string; commits: string[] }) => [model.id, model.commits.length]),
    [
      ["tiny/demo/demo-F16.gguf", 2],
      ["tiny/demo/demo-Q8_0.gguf", 1],
    ],
  );
  assert.equal(models[0].header, {
    architecture: "qwen3",
    name: "tapline demo",
    parameters: 1_542_784,
    quantization: "F16",
    context: 512,
    blocks: 8,
    hidden: 128,
  });
  const table = await tapline(["models"]).ended;
  assert.match(table.stdout, /tiny\/demo\/demo-F16\.gguf +qwen3 +1\.5 M +F16 +512 +3\.2 MB/);

  const one = await tapline(["rm", "tiny/demo:f16"]).ended;
  assert.is(one.stdout, "Deleted tiny/demo/demo-F16.gguf.\nFreed 3.2 MB.\n");
  assert.is((await readdir(blobs())).length, 1);
  assert.is((await tapline(["rm", "tiny/demo"]).ended).code, 0);
  assert.not.ok(existsSync(join(home, "hub", "models--tiny--demo")));
  const again = await tapline(["rm", "tiny/demo"]).ended;
  assert.is(again.code, 1);
  assert.match(again.stderr, "tiny/demo is not in the cache");
  const odd = await tapline(["rm", "nonsense"]).ended;
  assert.is(odd.code, 2);
  assert.match(odd.stderr, "neither a job id (32 hexadecimal characters) nor a hub model (owner/name).");
});

if (process.platform === "linux") {
  test("a model that does not fit is refused with the arithmetic; --force tries", async () => {
    const words = ["serve", "--port", "0", "--ctx-size", "1000000", "--parallel", "64"];
    // 262 GB of K/V cache; the limit makes sure that no system promises them.
    const shell = "ulimit -v 100000000";
    const sentence =
      /^tapline: The model needs about \d+\.\d GB \(weights 4 MB, context .* in total; .* or --force to load it anyway\.$/m;
    const refused = await tapline(words, { shell }).ended;
    assert.is(refused.code, 1);
    assert.match(refused.stderr, sentence);
    assert.is(refused.stderr.trim().split("\n").length, 1);
    const forced = await tapline([...words, "--force"], { shell }).ended;
    assert.is(forced.code, 1);
    const [warning, failure] = forced.stderr.trim().split("\n");
    assert.match(warning as string, sentence);
    assert.match(failure as string, /^tapline: .* (could not be loaded|crashed)/);
  });
}

test("doctor names each problem and its fix, and exits with its code", async () => {
  const { code, stdout } = await tapline(["doctor", "--json", "--model", "tiny/none", "--rpc", "127.0.0.1:9"])
    .ended;
  assert.is(code, 1);
  const { findings } = JSON.parse(stdout) as {
    findings: { check: string; status: string; finding: string; advice?: string }[];
  };
  const of = (check: string) => findings.filter((each) => each.check === check);
  for (const check of ["node", "addon", "gpu", "memory", "cache", "jobs", "port", "hub", "rpc", "model"]) {
    assert.ok(of(check).length > 0, check);
  }
  for (const { status, finding, advice } of findings) {
    assert.ok(finding.length > 0);
    assert.is(advice === undefined, status === "ok", finding);
  }
  assert.is(of("addon")[0]?.status, "ok");
  assert.is(of("rpc")[0]?.status, "problem");
  assert.match(of("rpc")[0]?.finding as string, "The rpc-server 127.0.0.1:9 is not running");
  assert.match(of("model")[0]?.finding as string, "is neither a local file nor a repository on ");
  assert.not.ok(existsSync(join(home, "hub")), "looking creates nothing");
});

test.run();
