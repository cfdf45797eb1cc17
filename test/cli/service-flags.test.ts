/** What each flag of a service becomes in what it is started with. Nothing is started. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { registerJobs } from "../../src/cli/commands/jobs.js";
import { registerLab } from "../../src/cli/commands/lab.js";
import { registerReproduce } from "../../src/cli/commands/reproduce.js";
import { registerRouter } from "../../src/cli/commands/router.js";
import { registerServe, servingOf, sharing } from "../../src/cli/commands/serve.js";
import { registerStudy } from "../../src/cli/commands/study.js";
import { registerWorkbench } from "../../src/cli/commands/workbench.js";
import { refusalBy } from "../support/refusal.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-flags-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));
const before = process.env.TAPLINE_API_KEY;
delete process.env.TAPLINE_API_KEY;
test.after(() => {
  if (before !== undefined) process.env.TAPLINE_API_KEY = before;
});

/** The argument and the options that a command reads of its words. */
async function read(register: (program: Command) => void, words: string[]) {
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  register(program);
  const [command] = program.commands;
  let given: unknown[] = [];
  command!.exitOverride().action((...parsed: unknown[]) => {
    given = parsed.slice(0, -1);
  });
  await program.parseAsync([command!.name(), ...words], { from: "user" });
  return given;
}

const said = (value: object) =>
  Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined));
const served = async (...words: string[]) => {
  const [named, options] = await read(registerServe, words);
  return said(await servingOf(named as string | undefined, options as never));
};
const refused = refusalBy(Error);

test("serve: the defaults", async () => {
  const usual = { host: "127.0.0.1", port: 8971, parallel: 4, cacheRamMiB: 512, waiting: 256, sampling: {} };
  assert.equal(await served(), { model: "demo", ...usual });
  assert.equal(await served("m.gguf"), { model: "m.gguf", ...usual });
  assert.equal(await served("--model", "m.gguf"), { model: "m.gguf", ...usual });
});

test("serve: every flag is its setting", async () => {
  const template = join(folder, "chat.jinja");
  writeFileSync(template, "{{ x }}\n");
  const words = `m --alias a --alias b --revision r --rpc h:50052 --force --port 0 --host ::1 --ctx-size 16 --parallel 8
    --threads 3 --batch 64 --gpu-layers 5 --cache-ram 0 --waiting 7 --thinking off --draft d --mmproj e.gguf --lora l.gguf:0.5
    --cache-type-k q8_0 --cache-type-v q4_0 --flash-attn on --rope-scaling yarn --rope-scale 2 --rope-freq-base 10000
    --yarn-orig-ctx 4096 --split-mode row --tensor-split 3,1 --main-gpu 1 --n-cpu-moe 6 --pooling mean --temperature 0.5
    --top-k 40 --top-p 0.9 --min-p 0.05 --repeat-penalty 1.1 --presence-penalty -1 --frequency-penalty 2 --seed 11
    --embeddings --api-key k --cors https://a.example`;
  assert.equal(await served(...words.split(/\s+/), "--chat-template", template), {
    ...{
      model: "m",
      aliases: ["a", "b"],
      revision: "r",
      rpc: [{ host: "h", port: 50_052 }],
      force: true,
      port: 0,
    },
    ...{
      host: "::1",
      ctxSize: 16,
      parallel: 8,
      threads: 3,
      batch: 64,
      gpuLayers: 5,
      cacheRamMiB: 0,
      waiting: 7,
    },
    ...{
      thinking: false,
      draft: "d",
      mmproj: "e.gguf",
      loras: [{ path: "l.gguf", scale: 0.5 }],
      cacheTypeK: "q8_0",
    },
    ...{ cacheTypeV: "q4_0", flashAttention: "on", ropeScaling: "yarn", ropeScale: 2, ropeFreqBase: 10_000 },
    ...{
      yarnOriginalCtx: 4096,
      splitMode: "row",
      tensorSplit: [3, 1],
      mainGpu: 1,
      cpuMoe: 6,
      pooling: "mean",
    },
    sampling: {
      ...{ temperature: 0.5, top_k: 40, top_p: 0.9, min_p: 0.05, repeat_penalty: 1.1, presence_penalty: -1 },
      ...{ frequency_penalty: 2, seed: 11 },
    },
    ...{ embeddings: true, apiKey: "k", cors: ["https://a.example"], chatTemplate: "{{ x }}\n" },
  });
  const one = async (...more: string[]) => (await served(...more)) as Record<string, unknown>;
  assert.is((await one("--thinking", "on")).thinking, true);
  assert.is((await one("--cpu-moe")).cpuMoe, -1, "all of them");
  assert.is((await one("--no-embeddings")).embeddings, false);
  process.env.TAPLINE_API_KEY = "of-the-environment";
  assert.is((await one()).apiKey, "of-the-environment");
  delete process.env.TAPLINE_API_KEY;
});

test("serve: refuses contradictory and out-of-range flags", async () => {
  for (const [words, sentence] of [
    ["m --model n", "Give the model either as an argument or with --model, not both."],
    ["--pooling mean --no-embeddings", "--pooling and --no-embeddings cannot be combined."],
    ["--cpu-moe --n-cpu-moe 3", "cannot be used with option"],
    ["--port 65536", "between 0 and 65535"],
    ["--ctx-size 15", "between 16 and 10000000"],
    ["--ctx-size 10000001", "between 16 and 10000000"],
    ["--parallel 0", "between 1 and 256"],
    ["--parallel 257", "between 1 and 256"],
    ["--threads 1025", "between 1 and 1024"],
    ["--batch 65537", "between 1 and 65536"],
    ["--gpu-layers 100001", "between 0 and 100000"],
    ["--cache-ram 10000001", "between 0 and 10000000"],
    ["--waiting 100001", "between 0 and 100000"],
    ["--rope-scale 0", "between 0.001 and 1000"],
    ["--rope-freq-base 0.5", "between 1 and 1000000000000"],
    ["--main-gpu 128", "between 0 and 127"],
    ["--temperature 101", "between 0 and 100"],
    ["--top-k 2147483648", "between 0 and 2147483647"],
    ["--top-p 1.01", "between 0 and 1"],
    ["--min-p -0.01", "between 0 and 1"],
    ["--repeat-penalty 0", "between 0.01 and 100"],
    ["--presence-penalty 101", "between -100 and 100"],
    ["--frequency-penalty -101", "between -100 and 100"],
    ["--seed 4294967296", "between 0 and 4294967295"],
    ["--cache-type-k q3", "Allowed choices are f32, f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0, iq4_nl."],
    ["--split-mode column", "Allowed choices are none, layer, row."],
    ["--api-key", "argument missing"],
  ] as const) {
    assert.match(await refused(() => served(...words.split(" "))), sentence, words);
  }
});

test("serve warns if other machines can use it without a key", () => {
  for (const host of ["127.0.0.1", "127.5.0.1", "localhost", "LOCALHOST", "::1"]) {
    assert.is(sharing(host, undefined), undefined, host);
  }
  const [open, keyed] = ["/v1 and /health without a key", "all but /lab and /executions with the key"];
  for (const host of ["0.0.0.0", "::", "10.0.0.1", "a127.0.0.1", "localhost.example", "::11"]) {
    assert.is(sharing(host, undefined), `Anyone who can reach ${host} can use ${open}.`);
    assert.is(sharing(host, "k"), `Anyone who can reach ${host} can use ${keyed}.`);
  }
});

test("lab, router and workbench: their flags and their bounds", async () => {
  const options = async (register: (program: Command) => void, ...words: string[]) =>
    said((await read(register, words)).at(-1) as object);
  assert.equal(await options(registerLab), { port: 8980, queue: 0 });
  assert.equal(
    await options(
      registerLab,
      ..."--port 0 --home h --queue 64 --rpc h:1 --gpu-layers 0 --device A,B --force".split(" "),
    ),
    {
      ...{ port: 0, home: "h", queue: 64, rpc: [{ host: "h", port: 1 }], gpuLayers: 0, device: ["A", "B"] },
      force: true,
    },
  );
  assert.match(await refused(() => options(registerLab, "--queue", "65")), "between 0 and 64");
  assert.equal(await options(registerRouter), { port: 8970 });
  assert.equal(
    await options(
      registerRouter,
      ..."--backend a --backend b --port 1 --share --api-key k --cors * --json-log".split(" "),
    ),
    { backend: ["a", "b"], port: 1, share: true, apiKey: "k", cors: ["*"], jsonLog: true },
  );
  assert.equal(await options(registerWorkbench), { port: 8972, open: true });
  assert.equal(await options(registerWorkbench, "--no-open", "--link", "--url", "8123", "--lab", "l:1"), {
    ...{ port: 8972, open: false, link: true, url: "http://127.0.0.1:8123", lab: "http://l:1" },
  });
});

/** The options of a command below others, by its words. */
async function below(register: (program: Command) => void, path: string, words: string[]) {
  const program = new Command().exitOverride().configureOutput({ writeErr: () => {} });
  register(program);
  let given: unknown[] = [];
  const find = (parent: Command, names: string[]): Command => {
    const [name, ...rest] = names;
    const found = parent.commands.find((one) => one.name() === name)!.exitOverride();
    return rest.length === 0 ? found : find(found, rest);
  };
  const command = find(program, path.split(" "));
  command.configureOutput({ writeErr: () => {} }).action((...parsed: unknown[]) => {
    given = parsed.slice(0, -1);
  });
  await program.parseAsync([...path.split(" "), ...words], { from: "user" });
  return said(given.at(-1) as object);
}

test("jobs, reproduce and study: their flags and their bounds", async () => {
  delete process.env.TAPLINE_LAB_URL;
  for (const [register, path, words, options] of [
    [registerJobs, "jobs", "", { limit: 20 }],
    [registerJobs, "jobs", "--limit 100 --lab 1", { limit: 100, lab: "http://127.0.0.1:1" }],
    [registerReproduce, "reproduce", "r --lab new", { lab: "new" }],
    [
      registerReproduce,
      "reproduce",
      "r --lab 8123 --url 8124",
      { lab: "http://127.0.0.1:8123", url: "http://127.0.0.1:8124" },
    ],
    [registerReproduce, "reproduce", "r --variant a=b=c --variant d=e", { variant: { a: "b=c", d: "e" } }],
    [
      registerReproduce,
      "reproduce",
      "r --texts a=b --model m --out o",
      { texts: { a: "b" }, model: "m", out: "o" },
    ],
    [registerStudy, "study list", "a b --limit 1 --offset 0", { limit: 1, offset: 0 }],
    [
      registerStudy,
      "study list",
      "--limit 50 --offset 10000 --json",
      { limit: 50, offset: 10_000, json: true },
    ],
    [
      registerStudy,
      "study get",
      "12345678-1234-4234-8234-123456789ABC --version-number 1",
      { versionNumber: 1 },
    ],
    [registerStudy, "study draft", "- --key k", { key: "k" }],
  ] as const) {
    const given = words.split(" ").filter((word) => word !== "");
    assert.equal(await below(register, path, given), options, `${path} ${words}`);
  }
  for (const [register, path, words, sentence] of [
    [registerJobs, "jobs", "--limit 101", "between 1 and 100"],
    [registerJobs, "jobs", "--limit 0", "between 1 and 100"],
    [registerReproduce, "reproduce", "r --lab old", "an address such as"],
    [registerReproduce, "reproduce", "r --variant =b", "It must be name=value."],
    [registerReproduce, "reproduce", "r --texts a=", "It must be name=value."],
    [registerStudy, "study list", "--limit 51", "between 1 and 50"],
    [registerStudy, "study list", "--limit 0", "between 1 and 50"],
    [registerStudy, "study list", "--offset 10001", "between 0 and 10000"],
    [registerStudy, "study get", "12345678", "A study id must be a UUID."],
    [registerStudy, "study get", "x --version-number 0", "between 1 and 999999999"],
  ] as const) {
    assert.match(await refused(() => below(register, path, words.split(" "))), sentence, `${path} ${words}`);
  }
});

test.run();
