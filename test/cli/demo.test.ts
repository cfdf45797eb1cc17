import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { DemoReport } from "../../src/cli/commands/demo-run.js";
import { Capabilities, CaptureResult, Job, validate } from "../../src/contracts/index.js";
import { story } from "../../src/findings/story.js";
import { width } from "../../src/findings/text.js";
import { readNpz } from "../lab/npz-reader.js";
import { assertNothingLeft, demo } from "./demo-process.js";
import { command } from "./in-process.js";
import { isOpen } from "./processes.js";

const root = mkdtempSync(join(tmpdir(), "tapline-demo-test-"));
test.after(() => rmSync(root, { recursive: true, force: true }));

test("--json: one run of both services, told in full", async () => {
  const run = demo(root, ["--json", "--layers", "1,4-7", "--out", "here/and there"]);
  const { code, stdout, stderr } = await run.ended;
  assert.is(stderr, "");
  assert.is(code, 0);
  const report = JSON.parse(stdout) as DemoReport;

  validate(Capabilities, report.model);
  validate(CaptureResult, report.capture);
  validate(Job, report.job);
  assert.is(report.job.status, "completed");
  assert.is(report.job.config.prompt, "The capital of France is");
  assert.equal(
    report.job.result.layers.map(({ layer }) => layer),
    [1, 4, 5, 6, 7],
  );
  assert.is(report.chat.question, "What is the capital of France?");
  assert.is(report.chat.finish_reason, "stop");
  assert.is.not(report.chat.answer.trim(), "");

  // Two copies of one model in two processes: the resident one and the job's agree on everything both measure.
  assert.equal(report.capture.tokens, report.job.result.tokens);
  assert.equal(report.capture.token_ids, report.job.result.token_ids);
  assert.is(report.capture.next_tokens[0]!.token_id, report.job.result.next_tokens[0]!.token_id);
  assert.ok(report.largest_norm_difference < 1e-3, String(report.largest_norm_difference));
  assert.ok(report.captured_while_answering);

  assert.is(report.files!.activations, join(run.folder, "here/and there/activations.npz"));
  const arrays = readNpz(readFileSync(report.files!.activations));
  const { tokens, layers, provenance } = report.job.result;
  assert.equal([...arrays.keys()], ["layer_1", "layer_4", "layer_5", "layer_6", "layer_7"]);
  for (const { layer, norms } of layers) {
    const { shape, data } = arrays.get(`layer_${layer}`)!;
    assert.equal(shape, [1, tokens.length, provenance.n_embd]);
    norms.forEach((norm, token) => {
      const row = data.subarray(token * provenance.n_embd, (token + 1) * provenance.n_embd);
      assert.ok(Math.abs(Math.hypot(...row) / norm - 1) < 1e-4);
    });
  }
  assert.equal(JSON.parse(readFileSync(report.files!.report, "utf8")), report);

  assert.not(await isOpen(report.services.inference));
  assert.not(await isOpen(report.services.lab));
  await assertNothingLeft(run);
});

test("the demo shows lens, norms, bars and file paths within the given width", async () => {
  const run = demo(root, ["--prompt", "The capital of Japan is"], { COLUMNS: "72" });
  const { code, stdout, stderr } = await run.ended;
  assert.is(stderr, "");
  assert.is(code, 0);
  const report = JSON.parse(readFileSync(join(run.folder, "tapline-demo/report.json"), "utf8")) as DemoReport;
  for (const line of stdout.split("\n")) assert.ok(width(line) <= 72, line);
  for (const part of [
    "Logit lens",
    "Norms",
    "Next token",
    "The capital of Japan is",
    report.chat.answer.trim(),
  ]) {
    assert.ok(stdout.includes(part), part);
  }
  const flat = stdout.replace(/\s+/g, " ");
  assert.ok(flat.includes(story(report.job.result)));
  assert.ok(flat.includes("tapline-demo/activations.npz (layer_0 … layer_7: float32 [1, 6, 128])"));
  assert.not(stdout.includes("\u001b"));
  await assertNothingLeft(run);
  // The folder that it has written is what a report is made of next.
  const page = join(root, "demo.html");
  const made = await command(["report", join(run.folder, "tapline-demo"), "--out", page]);
  assert.equal([made.code, made.stderr], [0, ""]);
  assert.match(readFileSync(page, "utf8"), "The capital of Japan is");
  const other = await command(["report", root]);
  assert.equal(
    [other.code, other.stderr],
    [2, `tapline: ${root} has no job.json: it is not an experiment's output folder.\n`],
  );
});

test("a missing model is one sentence, and nothing is written", async () => {
  const run = demo(root, ["--model", "nowhere.gguf"]);
  const { code, stdout, stderr } = await run.ended;
  assert.is(stdout, "");
  assert.is(stderr, "tapline: No model found at nowhere.gguf.\n");
  assert.is(code, 1);
  assert.equal(readdirSync(run.folder), ["tmp"]);
  await assertNothingLeft(run);
});

test("what the services refuse is one sentence, too", async () => {
  const run = demo(root, ["--layers", "0,99"]);
  const { code, stdout, stderr } = await run.ended;
  assert.is(stdout, "");
  assert.match(stderr, /^tapline: [^\n]*99[^\n]*\.\n$/);
  assert.is(code, 1);
  await assertNothingLeft(run);
});

test("a place that cannot be written to is one sentence", async () => {
  writeFileSync(join(root, "a-file"), "");
  const run = demo(root, ["--out", join(root, "a-file", "below")]);
  const { code, stderr } = await run.ended;
  assert.match(stderr, /^tapline: Cannot write to .*a-file.below \(ENOTDIR\); see --out\.\n$/);
  assert.is(code, 1);
  await assertNothingLeft(run);
});

test.run();
