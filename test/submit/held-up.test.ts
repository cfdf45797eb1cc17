/** A part whose process is stopped in the middle: it runs a second time, and nothing of the first run remains. */
// Runs alone: it changes the environment.
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { startOf } from "../../src/files/process-tree.js";
import { follow } from "../../src/submit/follow.js";
import { engineOf, planned, start } from "../../src/submit/index.js";
import { partsFolder } from "../../src/submit/submission.js";
import { program } from "../support/program.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-held-up-"));
const at = (...names: string[]) => join(folder, ...names);
const temporary = at("tmp");
mkdirSync(temporary);
Object.assign(process.env, { TAPLINE_HOME: at("home"), TMPDIR: temporary });
test.after(() => rmSync(folder, { recursive: true, force: true }));

const shellWord = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
const tapline = [process.execPath, ...program];

test("a stopped process is replaced by a second run; the files are those of one run", async () => {
  writeFileSync(
    at("texts.txt"),
    Array.from({ length: 180 }, (_, n) => `${n} ${"the capital of France is Paris ".repeat(5)}`).join("\n"),
  );
  const settings = { model: "demo", data: at("texts.txt"), layers: [2, 5], shard_tokens: 256 };
  writeFileSync(at("whole.json"), JSON.stringify(settings));
  execFileSync(
    process.execPath,
    [
      ...[...program, "extract", "--config", at("whole.json"), "--lab", "new", "--quiet"],
      ...["--json", "--out", at("whole")],
    ],
    { stdio: "pipe" },
  );

  // The process of part 1 stops itself at the third of its files, except in the second run. The other parts begin when it has
  // two, so that it is not taken for slow before.
  writeFileSync(
    at("hold.mjs"),
    `import promises from "node:fs/promises";
     import { syncBuiltinESMExports } from "node:module";
     const { rename } = promises;
     promises.rename = async (from, to) => {
       if (String(to).endsWith("-00002.safetensors")) process.kill(process.pid, "SIGSTOP");
       return rename(from, to);
     };
     syncBuiltinESMExports();`,
  );
  writeFileSync(
    at("tapline.sh"),
    [
      "#!/bin/bash",
      'case "$*" in',
      "  */copy-1*) ;;",
      `  *"--shard 1/3"*) export NODE_OPTIONS=${shellWord(`--import=${pathToFileURL(at("hold.mjs"))}`)} ;;`,
      `  *"--shard "[02]/3*) until [ -e ${shellWord(at("rows", "parts", "shard-1-of-3-00001.safetensors"))} ]; do sleep 0.1; done ;;`,
      "esac",
      `exec ${tapline.map(shellWord).join(" ")} "$@"`,
      "",
    ].join("\n"),
    { mode: 0o755 },
  );
  const out = at("rows");
  const own = [at("tapline.sh")];
  const place = { engine: "local" as const, out, parts: 3, workers: 3, engineOptions: [] };
  const { submission } = await start(at("home"), planned(settings, place), own);
  const copied: number[][] = [];
  const holders: number[] = [];
  let [log, left]: [string, string[]] = ["", []];
  await follow(submission, {
    ...{ home: at("home"), engine: engineOf(submission, own) },
    ...{ signal: AbortSignal.timeout(300_000), intervalMs: 100, onProgress: () => {} },
    onRestart: () => assert.unreachable("no part ended early"),
    onCopy: (parts) => {
      copied.push([...parts]);
      const lock = readFileSync(join(partsFolder(submission), "index-1-of-3.json.lock"), "utf8");
      holders.push((JSON.parse(lock) as { pid: number }).pid);
    },
    onMerge: () => {
      log ||= readFileSync(join(partsFolder(submission), "part-1-copy.log"), "utf8");
      left = readdirSync(partsFolder(submission));
    },
  });
  assert.equal(copied, [[1]]);
  const { job } = JSON.parse(log.slice(log.indexOf("{"))) as { job: { result: { kept_files: number } } };
  assert.is(job.result.kept_files, 2, "the second run resumes after two files");
  assert.equal(holders.map(startOf), [""], "the stopped process has ended");
  assert.equal(
    left.filter((name) => /^copy-|partial$|lock$/.test(name)),
    [],
  );
  assert.equal(
    readdirSync(temporary).filter((name) => name.startsWith("tapline-")),
    [],
    "temporary folders",
  );
  const contents = (path: string) =>
    Object.fromEntries(
      readdirSync(path).map((name) => [name, readFileSync(join(path, name)).toString("hex")]),
    );
  assert.equal(contents(out), contents(at("whole")));
});

test.run();
