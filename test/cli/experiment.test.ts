import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { ExperimentReport } from "../../src/cli/run-experiment.js";
import type { InspectResult } from "../../src/contracts/index.js";
import { width } from "../../src/findings/text.js";
import { startLab } from "../../src/lab/index.js";
import { readNpz } from "../lab/npz-reader.js";
import { compiledWorker } from "../support/program.js";
import { command } from "./in-process.js";
import { type RunOptions, tapline } from "./run.js";

const root = mkdtempSync(join(tmpdir(), "tapline-experiment-"));
// The temporary files of commands: whatever they leave would be seen there.
const temporary = join(root, "tmp");
mkdirSync(temporary);
const lab = await startLab({
  port: 0,
  home: join(root, "home"),
  backend: "cpu",
  ...compiledWorker,
  queueCapacity: 2,
});
test.after(async () => {
  await lab.close();
  rmSync(root, { recursive: true, force: true });
});

const meddler = new URL("../lab/fixtures/meddle.mjs", import.meta.url).href;
const hanging = { NODE_OPTIONS: `--import=${meddler}`, TAPLINE_TEST_MEDDLE: "hang" };
const run = (words: string[], options: RunOptions = {}) =>
  tapline(words, { cwd: root, ...options, env: { TMPDIR: temporary, ...options.env } });
/** Which of a job's stages are seen depends on when it is looked at. */
const anyStage = /queued|starting a worker|loading the|capturing|writing artifacts/;
const leftTemporary = () => readdirSync(temporary).filter((name) => name.startsWith("tapline-"));

test("a Lab for the occasion: the picture, the files, and nothing else stays", async () => {
  const ran = await run(["inspect", "The capital of France is", "--lab", "new", "--out", "france"], {
    env: { COLUMNS: "80" },
  });
  assert.is(ran.code, 0, ran.stderr);
  for (const part of [
    "Logit lens",
    "·Paris",
    "Norms",
    "Next token",
    "france/activations.npz",
    "france/job.json",
  ]) {
    assert.ok(ran.stdout.includes(part), part);
  }
  for (const line of ran.stdout.split("\n")) assert.ok(width(line) <= 80, line);
  assert.match(ran.stderr, anyStage);
  const job = JSON.parse(readFileSync(join(root, "france/job.json"), "utf8"));
  // Blocks were not named: all eight of the model's.
  assert.equal(job.config.layers, [0, 1, 2, 3, 4, 5, 6, 7]);
  const arrays = readNpz(readFileSync(join(root, "france/activations.npz")));
  assert.equal(arrays.get("layer_7")!.shape, [1, 6, 128]);
  ran.assertNothingLeft();
  assert.equal(leftTemporary(), []);
});

test("a running Lab runs the job; --json prints all of it; job draws it again", async () => {
  const ran = await run(["inspect", "-", "--layers", "3,7", "--json", "--quiet", "--lab", lab.url], {
    input: "The capital of Japan is\n",
  });
  assert.is(ran.stderr, "");
  const report = JSON.parse(ran.stdout) as ExperimentReport;
  assert.is(report.lab, lab.url);
  assert.is((report.job.config as { prompt: string }).prompt, "The capital of Japan is");
  assert.is((report.job.result as InspectResult).next_tokens[0]!.token, " Tokyo");
  assert.is(report.folder, join(root, `tapline-inspect-${report.job.id.slice(0, 8)}`));
  for (const file of report.files) assert.ok(existsSync(file), file);

  const drawn = await command([
    "job",
    report.job.id.slice(0, 6),
    "--out",
    join(root, "again"),
    "--lab",
    lab.url,
  ]);
  assert.match(drawn.stdout, /Logit lens[\s\S]*·Tokyo[\s\S]*again.activations\.npz/);
  const fromFile = await command(["job", join(report.folder!, "job.json")]);
  assert.is(fromFile.stdout.split("\n\n")[1], drawn.stdout.split("\n\n")[1]);
});

test("compare refuses several blocks; swap accepts a range", async () => {
  const swap = ["--intervention", "swap", "--swap", " Paris", "--with", " Tokyo", "--strengths", "1"];
  const swapped = await command([
    ...["compare", "The capital of France is", "--layers", "4-6", ...swap, "--max-tokens", "2"],
    ...["--json", "--no-out", "--quiet", "--lab", lab.url],
  ]);
  assert.match(swapped.stdout, /"layers": ?\[\s*4,\s*5,\s*6\s*\]/, swapped.stderr);

  const ran = await command(["compare", "x", "--layers", "5,6", "--no-out", "--lab", lab.url]);
  assert.is(ran.code, 2);
  assert.match(ran.stderr, "--layers: compare changes one block at a time, got 5, 6. Run it once per block.");
});

test("compare, probe and sae: from files, drawn", async () => {
  writeFileSync(join(root, "prompts.txt"), "The capital of Italy is\nThe capital of Peru is\n");
  const words = ["--layers", "5", "--no-out", "--quiet", "--lab", lab.url];
  const compare = await command([
    "compare",
    "--prompts",
    join(root, "prompts.txt"),
    "--strengths",
    "0.5,1",
    "--max-tokens",
    "4",
    ...words,
  ]);
  assert.match(compare.stdout, /Dose-response[\s\S]*·Rome[\s\S]*2 {2}The capital of Peru is/);
  const example = (index: number) => {
    const good = index % 2 === 0;
    const split = index < 12 ? "train" : "test";
    return [
      `"The ${["film", "meal", "trip"][index % 3]}, number ${index}, was ${good ? "good" : "bad"}"`,
      good ? 1 : 0,
      split,
    ];
  };
  const rows = Array.from({ length: 20 }, (_, index) => example(index).join(","));
  writeFileSync(join(root, "reviews.csv"), ["text,label,split", ...rows].join("\r\n"));
  const probe = await command(["probe", "--examples", join(root, "reviews.csv"), ...words]);
  assert.match(probe.stdout, /ROC, AUROC[\s\S]*Calibration[\s\S]*majority/);
  const texts = rows.map((_, index) => ({ text: `Text ${index}`, split: index < 12 ? "train" : "test" }));
  writeFileSync(join(root, "texts.jsonl"), texts.map((text) => JSON.stringify(text)).join("\n"));
  const sae = await command([
    "sae",
    "--examples",
    join(root, "texts.jsonl"),
    "--features",
    "8",
    "--steps",
    "20",
    ...words,
  ]);
  assert.is(sae.code, 0, sae.stderr);
  assert.match(sae.stdout, /Training[\s\S]*explained[\s\S]*of 8/);
});

test("each fault is one sentence, and its exit code names the culprit", async () => {
  writeFileSync(join(root, "bogus.json"), '{"prompt": "x", "bogus": 1}');
  writeFileSync(join(root, "sae.json"), '{"operation": "sae"}');
  const cases: Array<[words: string[], code: number, sentence: RegExp]> = [
    [["inspect"], 2, /^tapline: <prompt> or --tokens is required\.\n$/],
    [["sae"], 2, /^tapline: --examples or --from is required, but not both\.\n$/],
    [["probe", "--shard", "0/2", "--out", join(root, "parts")], 2, /^tapline: --examples is required\.\n$/],
    [["patch", "x"], 2, /^tapline: --corrupted is required with <clean>\.\n$/],
    [["explain", "x"], 2, /^tapline: --layer, --template and --marker are required\.\n$/],
    // The name of an intervention is also that of an option.
    [["compare", "x", "--intervention", "swap"], 2, /^tapline: --swap is required for swap\.\n$/],
    [["inspect", "x", "--layers", "300"], 2, /An index can be at most 255/],
    [["compare", "x", "--intervention", "patch"], 2, /^tapline: --donor-prompt is required for patch\.\n$/],
    [["inspect", "--config", join(root, "bogus.json")], 2, /unknown field "bogus"/],
    [
      ["inspect", "--config", join(root, "sae.json")],
      2,
      /sae\.json is a submission of sae, not of inspect\./,
    ],
    [["probe", "--examples", "nowhere.csv"], 2, /Cannot read .*nowhere\.csv \(ENOENT\)/],
    [
      ["inspect", "x", "--quiet", "--layers", "99", "--lab", lab.url],
      1,
      /99 does not exist; the model has 8 blocks/,
    ],
    // A worker without output leaves no log to mention.
    [
      ["inspect", "x", "--quiet", "--model", "/nowhere", "--lab", "new"],
      1,
      /^tapline: No model found at \/nowhere\.\n$/,
    ],
    [["inspect", "x", "--lab", "http://127.0.0.1:1"], 3, /Nothing listens at http:\/\/127\.0\.0\.1:1/],
    [["stats", "--url", "1"], 3, /Nothing listens/],
    [["job", "0".repeat(32), "--lab", lab.url], 1, /There is no job 0+\./],
    [
      ["rm", "nonsense", "--lab", lab.url],
      2,
      /nonsense is neither a job id \(32 hexadecimal characters\) nor a hub model \(owner\/name\)\./,
    ],
    [["inspect", "x", "--lab", lab.url, "--out", join(root, "bogus.json/x")], 1, /Cannot write to .*ENOTDIR/],
    [["bogus"], 2, /^tapline: Unknown command 'bogus'/],
  ];
  for (const [words, code, sentence] of cases) {
    const ran = await command(words);
    assert.is(ran.code, code, `${words.join(" ")}: ${ran.code} ${ran.stderr}`);
    assert.match(ran.stderr, sentence);
    assert.is(ran.stdout, "");
  }
});

test("Ctrl-C: a Lab for the occasion ends, a job in a running one is cancelled", async () => {
  const signal = { when: anyStage, name: "SIGINT" } as const;
  const own = await run(["inspect", "x", "--lab", "new", "--out", "none"], { env: hanging, signal });
  assert.is(own.signal, "SIGINT");
  assert.is(own.stdout, "");
  assert.not(existsSync(join(root, "none")));
  own.assertNothingLeft();
  assert.equal(leftTemporary(), []);

  Object.assign(process.env, hanging);
  try {
    const shared = await run(["inspect", "x", "--lab", lab.url, "--out", "none"], { signal });
    assert.is(shared.signal, "SIGINT");
  } finally {
    for (const name of Object.keys(hanging)) delete process.env[name];
  }
  const list = JSON.parse((await command(["jobs", "--json", "--lab", lab.url])).stdout).jobs;
  assert.is(list[0].status, "cancelled");
});

test("detach, cancel, job --wait, rm", async () => {
  process.env.TAPLINE_LAB_URL = lab.url;
  Object.assign(process.env, hanging);
  let id: string;
  try {
    id = (await command(["inspect", "x", "--detach"])).stdout.trim();
    assert.match(id, /^[0-9a-f]{32}$/);
    assert.match((await command(["job", id])).stdout, /inspect, (queued|running)/);
    assert.is((await command(["rm", id])).code, 1);
    assert.is((await command(["cancel", "last"])).stdout, `Job ${id} is cancelled.\n`);
    const waited = await command(["job", id, "--wait"]);
    assert.match(waited.stdout, /inspect, cancelled/);
    assert.is(waited.code, 1);
    assert.is((await command(["rm", id])).stdout, `Deleted job ${id}.\n`);
    assert.not((await command(["jobs"])).stdout.includes(id));
  } finally {
    for (const name of [...Object.keys(hanging), "TAPLINE_LAB_URL"]) delete process.env[name];
  }
});

test.run();
