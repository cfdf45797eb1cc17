import { readFileSync } from "node:fs";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { CompareResult, Job, ProbeResult } from "../../src/contracts/index.js";
import { Job as JobSchema, validate } from "../../src/contracts/index.js";
import { calibration, roc } from "../../src/findings/probe.js";
import { width } from "../../src/findings/text.js";
import { bare, type Canvas, type Colors, jobList, jobPicture } from "../../src/terminal/index.js";
import { explainJob } from "../report/jobs.js";
import { example } from "./example.js";

const recorded = (name: string) =>
  JSON.parse(readFileSync(new URL(`./recorded/${name}.json`, import.meta.url), "utf8")) as Job;
const compare = recorded("compare");
const probe = recorded("probe");
const sae = recorded("sae");
const plain: Canvas = { width: 100, colors: "none" };
const picture = (job: Job, canvas = plain) => jobPicture(job, canvas).join("\n");

const explained = {
  ...{ ...probe, ...explainJob() },
  model: "demo",
} as Job;

test("explain: each row with what is said to it, shuffled values, and to none", () => {
  validate(JobSchema, explained);
  const text = picture(explained);
  assert.match(text, /^Explained +The <capital> of France is \(layer 5\)$/m);
  assert.match(text, /^Verbaliser +av Q8_0, activations of layer 5, scaled to norm 150$/m);
  assert.match(
    text,
    /^Token 4 +“is”, norm 10\.25\nDescription +a <b>capital<\/b> of Europe\nShuffled +a country of words …$/m,
  );
  assert.match(text, /^Without an activation .*\nDescription +nothing at all …$/m);
  for (const columns of [40, 80]) {
    for (const line of jobPicture(explained, { width: columns, colors: "none" })) {
      assert.ok(width(line) <= columns, line);
    }
  }
});

test("the recorded jobs are jobs", () => {
  for (const job of [compare, probe, sae]) validate(JobSchema, job);
});

test("no line is wider than the terminal, from 40 columns on", () => {
  for (const job of [compare, probe, sae]) {
    for (const columns of [40, 80, 100, 200]) {
      for (const line of jobPicture(job, { width: columns, colors: "none" })) {
        assert.ok(width(line) <= columns, `${job.operation}, ${columns}: ${line}`);
      }
    }
  }
});

test("colours change nothing but colours, and explain themselves", () => {
  // The legend of a colour scale is there only with colours.
  const withoutLegend = (text: string) => text.replace(/ +0 {14}1$/m, "");
  for (const job of [compare, probe, sae]) {
    for (const colors of ["16", "256", "truecolor"] as Colors[]) {
      const coloured = withoutLegend(bare(picture(job, { width: 90, colors })));
      assert.is(coloured, picture(job, { width: 90, colors: "none" }), job.operation);
    }
  }
});

test("compare: every prompt has its curve, its row of figures and its continuations", () => {
  const text = picture(compare);
  const { trials } = compare.result as CompareResult;
  assert.match(text, /6 prompts, the last token's layer 5 ablated/);
  assert.match(text, /● mean of 6 prompts/);
  assert.match(text, /0 neutral/);
  for (const [index, prompt] of [...new Set(trials.map((trial) => trial.prompt))].entries()) {
    const own = trials.filter((trial) => trial.prompt === prompt);
    const figures = own.map(({ probability }) => probability.toFixed(3)).join(" +");
    assert.match(text, new RegExp(`^${index + 1}  ${prompt}  .*${figures}$`, "m"));
    assert.match(text, new RegExp(`^${index + 1}  ${prompt}$`, "m"));
  }
});

test("compare: what a continuation shares with the baseline ends with a bar", () => {
  const trial = {
    ...(compare.result as CompareResult).trials[0]!,
    strength: 1,
    delta: -0.25,
    probability: 0.5,
  };
  const job = (output: string) =>
    ({
      ...compare,
      config: { ...compare.config, strengths: [1] },
      result: { ...compare.result, trials: [{ ...trial, baseline: " a b c", output }] },
    }) as Job;
  assert.match(picture(job(" a b d")), /^1 +0\.500 +-0\.250 +a b │ d$/m);
  assert.match(picture(job(" x b c")), /-0\.250 +x b c$/m);
  assert.match(picture(job(" a b c")), /-0\.250 += the baseline's$/m);
  assert.match(picture(job(" a b")), /-0\.250 +a b$/m);
});

test("compare shows continuations of six prompts and counts the rest", () => {
  const trial = (index: number) => ({ ...(compare.result as CompareResult).trials[0]!, prompt: `p${index}` });
  const of = (count: number) =>
    picture({
      ...compare,
      config: { ...compare.config, strengths: [1] },
      result: { ...compare.result, trials: Array.from({ length: count }, (_, index) => trial(index)) },
    } as Job);
  assert.not.match(of(6), /more prompt/);
  assert.match(of(7), /^The continuations of 1 more prompt are in the result\.$/m);
  assert.match(of(6), /^6 {2}p5$/m);
  assert.match(of(8), /\n\nThe continuations of 2 more prompts are in the result\.\n\n/);
  assert.not.match(of(8), /^7 {2}p6$/m);
});

test("compare: text of a model cannot reach the terminal's controls", () => {
  const trial = { ...(compare.result as CompareResult).trials[0]!, output: " \u001b[2J\u0007 gone" };
  const job = { ...compare, result: { ...compare.result, trials: [trial] } } as Job;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  assert.not.match(picture(job), /[\u0000-\u0009\u000b-\u001f]/);
});

test("probe: every layer stands beside its controls", () => {
  const text = picture(probe);
  for (const report of (probe.result as ProbeResult).reports) {
    const figures = [report.accuracy, report.majority_accuracy, report.shuffled_label_accuracy, report.auc];
    const row = figures.map((value) => value.toFixed(3)).join(" +");
    assert.match(text, new RegExp(`^ *${report.layer} +${row}`, "m"));
  }
  assert.match(text, /ROC by layer +Calibration, layer 5/);
});

test("sae: summary, dead features and the features with their examples", () => {
  const text = picture(sae);
  assert.match(text, /^layer +explained +MSE +train MSE +active +dead +alive$/m);
  assert.match(text, /\d+ of 32/);
  assert.match(text, /step 60/);
  assert.match(text, /^Layer 5 {2}the 16 most active features/m);
});

test("inspect: the picture of the demo", () => {
  const result = {
    ...example(["a", " b"]),
    note: "A note.",
    artifacts: [],
    provenance: probe.result!.provenance,
  };
  const job = {
    ...probe,
    operation: "inspect",
    config: {
      operation: "inspect",
      model: "demo",
      prompt: "a b",
      layers: [0],
      max_input_tokens: 9,
      max_tokens: 1,
      seed: 0,
    },
    result,
  } as unknown as Job;
  for (const part of ["Logit lens", "Norms", "Next token", "A note.", "Inspected    a b (layer 0)"]) {
    assert.ok(picture(job).includes(part), part);
  }
});

test("a job without a result tells why", () => {
  const { result: _result, ...rest } = compare;
  const lines = jobPicture({ ...rest, status: "failed", error: "layers: 99 does not exist." } as Job, plain);
  assert.match(lines.join("\n"), /compare, failed[\s\S]*Error +layers: 99 does not exist\./);
});

test("the list shows whole ids and fits", () => {
  const jobs = [compare, { ...probe, status: "running", ended: null } as Job];
  for (const columns of [40, 59, 60, 80, 120]) {
    const lines = jobList(jobs, { width: columns, colors: "none" }, compare.created + 90);
    for (const line of lines) assert.ok(width(line) <= columns, line);
    for (const { id } of jobs) assert.ok(lines.some((line) => line.startsWith(id)));
  }
  assert.equal(jobList([], plain), ["No jobs yet."]);
});

const curve = (examples: Parameters<typeof roc>[0]) =>
  roc(examples).map(({ falsePositiveRate, truePositiveRate }) => [falsePositiveRate, truePositiveRate]);

test("the ROC curve: ties make one step, and its area is the AUROC", () => {
  const scored = (pairs: Array<[0 | 1, number]>) => pairs.map(([label, score]) => ({ label, score }));
  assert.equal(
    curve(
      scored([
        [1, 0.9],
        [0, 0.1],
      ]),
    ),
    [
      [0, 0],
      [0, 1],
      [1, 1],
    ],
  );
  assert.equal(
    curve(
      scored([
        [1, 0.5],
        [0, 0.5],
      ]),
    ),
    [
      [0, 0],
      [1, 1],
    ],
  );
  for (const { scores, auc } of (probe.result as ProbeResult).reports) {
    const points = curve(scores.filter(({ split }) => split === "test"));
    let area = 0;
    points.slice(1).forEach(([x = 0, y = 0], index) => {
      const [px = 0, py = 0] = points[index]!;
      area += ((x - px) * (y + py)) / 2;
    });
    assert.ok(Math.abs(area - auc) < 1e-6, `${area} ${auc}`);
  }
});

test("calibration: bins hold all examples", () => {
  const examples = [0, 0.05, 0.5, 0.99, 1].map((score) => ({ score, label: (score > 0.6 ? 1 : 0) as 0 | 1 }));
  const bins = calibration(examples);
  assert.is(
    bins.reduce((sum, { size }) => sum + size, 0),
    5,
  );
  assert.equal(bins.at(-1), { from: 0.9, to: 1, size: 2, meanScore: 0.995, positiveShare: 1 });
});

test.run();
