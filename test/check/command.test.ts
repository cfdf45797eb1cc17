/** `tapline check`: a budget written and used, exit codes, refused input. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { command } from "../cli/in-process.js";
import { startServer, type TestServer } from "../inference/support/serving.js";
import { program } from "../support/program.js";
import { temporaryFolder } from "../support/temporary.js";
import { changedModel } from "./changed-model.js";

const folder = temporaryFolder("check-command");
const file = join(folder, "budget.json");
const texts = join(folder, "texts.txt");
let good: TestServer;
let bad: TestServer;

test.before(async () => {
  process.env.TAPLINE_HOME = join(folder, "home");
  const shrink = (values: Float32Array) => {
    for (const [index, value] of values.entries()) values[index] = 0.9 * value;
  };
  const path = await changedModel(join(folder, "shrunk.gguf"), {
    weights: { "blk.4.ffn_down.weight": shrink },
  });
  good = await startServer({ threads: 1 });
  bad = await startServer({ model: path, threads: 1 });
  writeFileSync(texts, "The capital of France is Paris.\nOnce upon a time\n");
});
test.after(async () => {
  await good.close();
  await bad.close();
});

test("a budget is written, passes on its model and fails on a changed one", async () => {
  const made = await command(["check", "make", file, "--model", good.url, "--texts", texts, "--quiet"]);
  assert.is(made.code, 0, made.stderr);
  assert.match(made.stdout, "2 prompts, 9 readings per token, thresholds from 24 repeats");
  const same = await command(["check", file, "--model", good.url, "--quiet"]);
  assert.is(same.code, 0, same.stdout + same.stderr);
  assert.match(same.stdout, /^tapline-demo \(F16\) and tapline-demo \(F16\) agree: \d+ comparisons/);
  const changed = await command(["check", file, "--model", bad.url, "--quiet"]);
  assert.is(changed.code, 1, changed.stderr);
  assert.match(
    changed.stdout,
    /^shrunk \(F16\) and tapline-demo \(F16\) first differ at prompt 1 “The capital of France is Paris\.”, token 1 .*: block 4 differs by/,
  );
  const json = await command(["check", file, "--model", bad.url, "--against", bad.url, "--json"]);
  assert.is(json.code, 0, json.stderr);
  const { passed, greatest, alarms } = JSON.parse(json.stdout);
  assert.equal([passed, alarms], [true, []]);
  assert.ok(greatest < 1);
});

test("Ctrl-C ends a check and a card by the signal, with nothing on standard output", async () => {
  const silent = createServer();
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  try {
    for (const words of [
      ["check", file, "--model", url],
      ["card", "polite", "--url", url],
    ]) {
      const child = spawn(process.execPath, [...program, ...words], { stdio: ["ignore", "pipe", "inherit"] });
      let stdout = "";
      child.stdout.on("data", (chunk) => {
        stdout += chunk;
      });
      silent.once("request", () => child.kill("SIGINT"));
      assert.equal([await once(child, "close"), stdout], [[null, "SIGINT"], ""]);
    }
  } finally {
    silent.closeAllConnections();
    silent.close();
  }
});

test("refuses a changed budget, unknown items and malformed features", async () => {
  const broken = join(folder, "broken.json");
  writeFileSync(broken, JSON.stringify({ ...JSON.parse(readFileSync(file, "utf8")), false_alarms: 2 }));
  const invalid = await command(["check", broken, "--model", good.url]);
  assert.is(invalid.code, 2);
  assert.match(invalid.stderr, "false_alarms");
  const unknown = await command(["check", "make", file, "--model", good.url, "--probe", "nowhere"]);
  assert.is(unknown.code, 1);
  assert.match(unknown.stderr, "There is no probe named nowhere");
  const feature = await command(["check", "make", file, "--model", good.url, "--feature", "dict"]);
  assert.is(feature.code, 2);
  assert.match(feature.stderr, "--feature must be dictionary:index, got dict.");
});

test.run();
