/** `tapline verify`: this machine passes, and faults in models or expected values are found and named. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Expected, expectedFolder, modelNames, readExpected } from "../../src/verify/expected.js";
import { placesOf, type Verification, verifyMachine } from "../../src/verify/run.js";
import { failures, verificationLine } from "../../src/verify/words.js";
import { tapline } from "./run.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-verify-test-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

/** The expected values of one model, with a fault. */
function planted(name: string, model: string, fault: (expected: Expected, head: Buffer) => void): string {
  const into = join(folder, name);
  cpSync(expectedFolder, into, { recursive: true });
  const expected = readExpected(model);
  const head = readFileSync(join(into, `${model}.head`));
  fault(expected, head);
  writeFileSync(join(into, `${model}.json`), JSON.stringify(expected));
  writeFileSync(join(into, `${model}.head`), head);
  return into;
}

async function failedChecks(from: string, model: string): Promise<string[]> {
  const result = await verifyMachine({ folder: from, models: [model] });
  return result.checks.filter(({ ok }) => !ok).map(({ check, problem }) => `${check}: ${problem}`);
}

test("this machine passes: one line, and a file that doctor reads", async () => {
  const env = { TAPLINE_HOME: join(folder, "home"), TAPLINE_LEVEL: "" };
  const { code, stdout, stderr } = await tapline(["verify", "--quiet"], { env });
  assert.is(code, 0, stderr);
  const [line = "", , path = ""] = stdout.split("\n");
  assert.match(
    line,
    /^tapline \S+ verify: \d+ checks of 10 architectures pass \| \w+-\w+, .+ \| llama\.cpp /,
  );
  const result = JSON.parse(readFileSync(path, "utf8")) as Verification;
  assert.equal(result.models, modelNames());
  for (const model of result.models) {
    const own = result.checks.filter((check) => check.model === model).map(({ check }) => check);
    const forms = Object.keys(readExpected(model).forms);
    assert.equal(own, ["model file", "block outputs", "edits", "one batch", "live batch", ...forms]);
  }
  const { stdout: found } = await tapline(["doctor"], { env: { ...env, HF_HUB_OFFLINE: "1" } });
  const day = new Date(result.created * 1000).toISOString().slice(0, 10);
  assert.match(found, `✓ numbers     ${result.checks.length} checks of 10 architectures passed on ${day}`);
});

test("a wrong block output is named with its block", async () => {
  const from = planted("block", "qwen3", ({ plain }) => {
    // One value that is not printed moves the sum alone.
    plain.blocks[2]!.sum += 0.1;
  });
  assert.equal(await failedChecks(from, "llama"), []);
  const [first = "", ...others] = await failedChecks(from, "qwen3");
  assert.match(first, /^block outputs: text 1, block 2: off by 0\.\d+$/);
  assert.equal(
    others.map((each) => each.split(":")[0]),
    ["one batch"],
  );
});

test("a wrong control vector is named as edits and live requests", async () => {
  const from = planted("steered", "gpt2", ({ steered }) => {
    for (const value of steered.pass.logits.values) value[2] *= 1.01; // the tokens at both ends of the vocabulary
  });
  const failed = await failedChecks(from, "gpt2");
  const [edits = "", batch = "", live = ""] = failed;
  assert.is(failed.length, 3);
  assert.match(edits, /^edits: steered at block 1, logits: off by 0\.0099$/);
  assert.match(batch, /^one batch: edited next to a plain text, logits: off by 0\.0099$/);
  assert.match(live, /^live batch: the edited request: off by 0\.0099$/);
});

test("a wrong model file is named, and so are the values it changes", async () => {
  const from = planted("file", "olmo2", (_, head) => {
    const key = "layer_norm_rms_epsilon";
    // After the key, its type.
    head.writeFloatLE(0.5, head.indexOf(key) + key.length + 4);
  });
  const [file = "", blocks = ""] = await failedChecks(from, "olmo2");
  assert.match(file, /^model file: its SHA-256 is [0-9a-f]{12}…, recorded [0-9a-f]{12}…$/);
  assert.match(blocks, /^block outputs: text 1, block \d: off by /);
});

test("a model that does not load is one failed check, and others go on", async () => {
  const from = planted("broken", "phi3", (_, head) => head.fill(0, 0, 4));
  const result = await verifyMachine({ folder: from, models: ["phi3", "qwen3"] });
  assert.equal(failures(result), ["phi3, run (processor): The file is not a GGUF file."]);
  assert.match(
    verificationLine(result),
    /verify: 1 of 6 checks FAIL, the first: phi3, run \(processor\) \| /,
  );
});

test("quantised weights of another form are too far away", async () => {
  const from = planted("form", "llama", ({ forms, plain }) => {
    forms.Q4_K_M = { ...plain, logits: forms.Q8_0!.logits };
  });
  const [only = "", ...others] = await failedChecks(from, "llama");
  assert.equal(others, []);
  assert.match(only, /^Q4_K_M: plain, block \d: off by 0\.0\d+$/);
});

test("lower levels of the processor run without the server, the best first", () => {
  const levels = ["x86-64-v4", "x86-64-v3", "x86-64-v2"];
  const cpu = { name: "CPU", description: "", kind: "cpu" as const, memoryFree: 0, memoryTotal: 0 };
  const places = placesOf({ level: "x86-64-v3", devices: [cpu] }, levels);
  assert.equal(
    places.map(({ name, env }) => [name, env]),
    [
      ["x86-64-v3", {}],
      ["x86-64-v2", { TAPLINE_LEVEL: "x86-64-v2" }],
    ],
  );
});

test.run();
