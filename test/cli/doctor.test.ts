/** The findings of `tapline doctor`: healthy parts, warnings, faults, and their fixes. */
import { constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { findingLines } from "../../src/cli/commands/doctor.js";
import { type Finding, findings, nodeVersion, notBuildable } from "../../src/cli/commands/doctor-checks.js";
import { wrap } from "../../src/terminal/fit.js";
import { freePort } from "../support/free-port.js";
import { withFiles } from "../support/with-files.js";
import { standIn } from "./stand-in.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-doctor-"));
const names = ["HF_HOME", "HF_HUB_CACHE", "HF_ENDPOINT", "HF_HUB_OFFLINE", "HF_TOKEN", "TAPLINE_HOME"];
const before = Object.fromEntries(names.map((name) => [name, process.env[name]]));
const hub = await standIn();

function environment(values: Record<string, string>): void {
  for (const name of names) delete process.env[name];
  Object.assign(
    process.env,
    { HF_HOME: join(folder, "hf"), TAPLINE_HOME: join(folder, "not", "there") },
    values,
  );
}
test.after(async () => {
  for (const [name, value] of Object.entries(before)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  await hub.close();
  rmSync(folder, { recursive: true, force: true });
});

const of = (found: readonly Finding[], check: string) => found.filter((one) => one.check === check);

test("a machine on which all is well, in order", async () => {
  environment({ HF_ENDPOINT: hub.url });
  const free = await freePort();
  const found = await findings("demo", [], undefined, { lab: free });
  assert.equal(
    found.map(({ check }) => check),
    ["node", "addon", "toolchain", "gpu", "numbers", "memory", "cache", "jobs", "port", "hub", "model"],
  );
  for (const { check, status, advice } of found) {
    assert.is(advice === undefined, status === "ok", `${check} has advice where it is not well`);
  }
  const [node, addon, , , numbers, memory, cache, jobs, port, asked, model] = found as Required<Finding>[];
  assert.equal([node!.status, node!.finding], ["ok", `Node.js ${process.versions.node}`]);
  assert.match(addon!.finding, /^llama\.cpp \S+ for \w+/);
  assert.match(numbers!.finding, /^not checked with this addon; `tapline verify` /);
  assert.match(memory!.finding, /^[\d.]+ [kMGT]?B of [\d.]+ [kMGT]?B free$/);
  assert.match(cache!.finding, new RegExp(`^${join(folder, "hf", "hub")}, [\\d.]+ [kMGT]?B free$`));
  assert.match(jobs!.finding, `${join(folder, "not", "there")}, `);
  assert.is(port!.finding, `${free} (lab) is free`);
  assert.is(asked!.finding, `${hub.url} responds, without a token`);
  assert.match(model!.finding, /^demo, 3\.\d MB; needs [\d.]+ MB of memory with the default context$/);
});

test("doctor reports used ports and missing models, hubs and RPC servers", async () => {
  environment({ HF_HUB_OFFLINE: "1", HF_TOKEN: "t" });
  for (const [body, status, holder] of [
    [{ status: "ok" }, "ok", "tapline"],
    [{ state: "ok" }, "warning", "another program."],
    [Buffer.from("<html>"), "warning", "another program."],
    [Buffer.from("null"), "warning", "another program."],
  ] as const) {
    for (const path of ["/health", "/lab/v1/health"]) {
      hub.answers = { [`GET ${path}`]: body };
      const found = await findings("owner/none", [{ host: "127.0.0.1", port: 1 }], undefined, {
        x: hub.port,
      });
      const [port] = of(found, "port");
      assert.equal([port?.status, port?.finding], [status, `${hub.port} (x) is in use by ${holder}`]);
      assert.match(of(found, "hub")[0]!.finding, / not contacted: HF_HUB_OFFLINE is set$/);
      const [rpc, model] = [of(found, "rpc")[0]!, of(found, "model")[0]!];
      assert.equal([rpc.status, model.status], ["problem", "problem"]);
      assert.match(rpc.finding, "127.0.0.1:1");
      assert.match(model.finding, "HF_HUB_OFFLINE is set, but a model of owner/none");
      assert.is(model.advice, "Choose another model with --model.");
    }
  }
});

test("a hub that is silent, requires a token, or cannot be reached", async () => {
  const asked = async (values: Record<string, string>) => {
    environment(values);
    return of(await findings("demo", [], undefined, {}), "hub")[0];
  };
  const check = "hub";
  const { timeout } = AbortSignal;
  const waits: number[] = [];
  AbortSignal.timeout = (ms) => {
    waits.push(ms);
    return timeout.call(AbortSignal, ms);
  };
  const away = await asked({ HF_ENDPOINT: "http://127.0.0.1:1" }).finally(() => {
    AbortSignal.timeout = timeout;
  });
  assert.equal(waits, [5000], "five seconds, and no longer");
  assert.equal(away, {
    ...{ check, status: "warning", finding: "http://127.0.0.1:1 does not respond" },
    advice: "Downloaded models still work. To download more, check the network, the proxy and HF_ENDPOINT.",
  });
  const finding = `${hub.url} responds, with a token`;
  assert.equal(await asked({ HF_ENDPOINT: hub.url, HF_TOKEN: "t" }), { check, status: "ok", finding });
  assert.equal(await asked({ HF_ENDPOINT: hub.url, HF_TOKEN: "a b" }), {
    ...{
      check,
      status: "problem",
      finding: "The hub's token in HF_TOKEN contains a space or an invalid character.",
    },
    advice: "Fix the variable.",
  });
});

test("a disk, memory and a model that are tight, and those that are too small", async () => {
  const { availableMemory, constrainedMemory } = process;
  environment({ HF_HUB_OFFLINE: "1" });
  const looked = async (free: number, memory: { available?: number; limit?: number }, writable = true) => {
    process.availableMemory = () => memory.available ?? availableMemory();
    process.constrainedMemory = () => memory.limit ?? 0;
    const statfs = async () => ({ bavail: free / 512, bsize: 512 });
    const access = async (_: unknown, mode: number) => {
      if (mode === constants.W_OK && !writable) throw new Error("EACCES");
    };
    try {
      return await withFiles({ statfs, access } as never, () => findings("demo", [], undefined, {}));
    } finally {
      Object.assign(process, { availableMemory, constrainedMemory });
    }
  };
  const states = (found: readonly Finding[]) =>
    ["cache", "jobs", "memory", "model"].map((check) => of(found, check)[0]?.status);
  const roomy = { available: 2e9, limit: 4e9 };
  assert.equal(states(await looked(5e9 + 512, roomy)), ["ok", "ok", "ok", "ok"]);
  const tight = await looked(5e9 - 512, { available: 1e6, limit: 4e9 });
  assert.equal(states(tight), ["warning", "warning", "warning", "warning"]);
  assert.match(
    of(tight, "model")[0]!.finding,
    /^The model needs about .* of 4\.0 GB is free: it may be slow/,
  );
  const small = await looked(200e6 - 512, { available: 1e6, limit: 2e6 });
  assert.equal(states(small), ["problem", "problem", "warning", "problem"]);
  assert.match(of(small, "cache")[0]!.advice!, /: free space with tapline rm, or set HF_HOME/);
  const closed = await looked(5e9, roomy, false);
  assert.equal(of(closed, "jobs"), [
    {
      ...{ check: "jobs", status: "problem" },
      finding: `No write permission for ${join(folder, "not", "there")}.`,
      advice: "Change its owner, or set TAPLINE_HOME to another folder.",
    },
  ]);
});

test("Node.js from 20.19 on", () => {
  for (const version of ["20.19.0", "20.20.2", "21.0.0", "22.1.0", "100.0.0"]) {
    assert.equal(nodeVersion(version), { check: "node", status: "ok", finding: `Node.js ${version}` });
  }
  for (const version of ["20.18.9", "20.9.0", "19.19.0", "18.20.0", "2.19.0"]) {
    assert.equal(nodeVersion(version), {
      ...{
        check: "node",
        status: "problem",
        finding: `Node.js ${version}`,
        advice: "Install Node.js 20.19 or newer.",
      },
    });
  }
});

test("findings have signs, with the fix below", () => {
  const found: Finding[] = [
    { check: "node", status: "ok", finding: "Node.js" },
    { check: "memory", status: "warning", finding: "one two three four five", advice: "End it." },
    { check: "model", status: "problem", finding: "None.", advice: "Name another, with --model." },
  ];
  assert.equal(findingLines(found, 20, wrap), [
    "✓ node        Node.js",
    "! memory      one two three four",
    "              five",
    "              → End it.",
    "✘ model       None.",
    "              → Name another, with",
    "              --model.",
  ]);
  assert.is(findingLines(found, 80, wrap).length, 5);
});

test("missing build tools are a problem only without an addon", () => {
  const missing = "Neither Ninja nor make is on the PATH: install it (`x y`) and run `b` again.";
  for (const [built, status] of [
    [true, "warning"],
    [false, "problem"],
  ] as const) {
    assert.equal(notBuildable(missing, built), {
      ...{ check: "toolchain", status },
      finding: "Neither Ninja nor make is on the PATH; the addon cannot be rebuilt.",
      advice: "Install it (`x y`) and run `b` again.",
    });
  }
  assert.equal(notBuildable("Cannot find module '/a/toolchain.js'", true), {
    ...{ check: "toolchain", status: "warning" },
    finding: "Cannot find module '/a/toolchain.js'; the addon cannot be rebuilt.",
    advice: "Reinstall tapline.",
  });
});

test.run();
