/** A job's request, in a line or two for each kind; and its progress line while it runs. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Job } from "../../src/contracts/index.js";
import { jobList, jobPicture } from "../../src/terminal/index.js";
import { Pace } from "../../src/terminal/pace.js";
import { ProgressLine } from "../../src/terminal/progress-line.js";
import { withTime } from "../support/with-time.js";
import { jobs } from "./results.js";

const canvas = { width: 200, colors: "none" } as const;

/** The lines of a job that has nothing to show yet, without their labels' room. */
function asked(operation: string, config: object, more: object = {}): string[] {
  const job = {
    ...{ id: "1a", status: "queued", operation, model: "owner/m", started: null, ended: null },
    ...{ config: { operation, ...config }, ...more },
  } as unknown as Job;
  return jobPicture(job, canvas).map((line) => line.replace(/ {2,}/, ": "));
}
const last = (operation: string, config: object) => asked(operation, config).slice(2);

test("every kind begins with its id, state, duration, and model", () => {
  assert.equal(asked("probe", { examples: [1, 2], layers: [3] }), [
    "Job: 1a, probe, queued",
    "Model: owner/m",
    "Probed: 2 examples, layer 3",
  ]);
  for (const [operation, config] of [
    ["features", { prompt: "a", dictionary: "d" }],
    ["patch_sweep", { clean: "a", corrupted: "b" }],
    ["explain", { prompt: "a", layer: 1 }],
    ["graph", { prompt: "a" }],
    ["drift", { other: "o", examples: [], layers: [] }],
  ] as const) {
    const times = { status: "failed", started: 100, ended: 102.5, error: "no \u001b room" };
    assert.equal(asked(operation, config, times).slice(0, 2), [
      `Job: 1a, ${operation}, failed in 2.5 s`,
      "Model: owner/m",
    ]);
    assert.is(asked(operation, config, times).at(-1), "Error: no ␛ room");
  }
});

test("inspect and patch: the read layers, and the source and target of the patch", () => {
  assert.equal(last("features", { texts: ["a\nb"], dictionary: "d" }), [
    "Read: a b, through the dictionary d",
  ]);
  assert.equal(last("features", { prompt: "p", dictionary: "d" }), ["Read: p, through the dictionary d"]);
  assert.equal(last("features", { texts: ["a", "b"], dictionary: "d" }), [
    "Read: 2 texts, through the dictionary d",
  ]);
  assert.equal(last("explain", { prompt: "p q", layer: 4 }), ["Explained: p q (layer 4)"]);
  assert.equal(last("graph", { prompt: "p\nq" }), ["Graph of: p q"]);
  assert.equal(last("graph", { prompt: "p", target_token: " a", foil_token: "b" }), [
    "Graph of: p",
    "Token: ·a minus b",
  ]);
  assert.equal(last("inspect", { prompt: "p", layers: [1, 2] }), ["Inspected: p (layers 1, 2)"]);
  const sides = { clean: "new", corrupted: "old" };
  assert.equal(last("patch_sweep", { ...sides, direction: "denoise" }), [
    "Patched: activations of “new” into the run of “old”",
  ]);
  assert.equal(last("patch_sweep", { ...sides, direction: "noise" }), [
    "Patched: activations of “old” into the run of “new”",
  ]);
  const pairs = [sides, { clean: "x", corrupted: "y" }, sides];
  assert.equal(last("patch_sweep", { pairs, direction: "denoise" }), [
    "Patched: activations of “new” into the run of “old”, and 2 pairs more",
  ]);
  assert.equal(last("patch_sweep", { pairs: pairs.slice(1, 2), direction: "denoise" }), [
    "Patched: activations of “x” into the run of “y”",
  ]);
});

test("compare: each kind of intervention, at its place", () => {
  const compared = (config: object) => last("compare", { prompt: "p", layers: [5], ...config })[0];
  assert.is(compared({ intervention: "scale" }), "Compared: p, the last token's layer 5 scaled");
  assert.is(
    compared({ intervention: "ablate", prompts: ["a", "b"] }),
    "Compared: 2 prompts, the last token's layer 5 ablated",
  );
  assert.is(
    compared({ intervention: "ablate", prompts: ["a"] }),
    "Compared: a, the last token's layer 5 ablated",
  );
  assert.is(
    compared({ intervention: "patch", donor_prompt: "d" }),
    "Compared: p, the last token's layer 5 patched from “d”",
  );
  const direction = { negative: "bad", positives: ["x", "y"] };
  assert.is(
    compared({ intervention: "steer", ...direction }),
    "Compared: p, the last token's layer 5 steered from “bad” to the mean of 2",
  );
  assert.is(
    compared({ intervention: "project_out", positive: "good", negatives: ["x"] }),
    "Compared: p, the last token's layer 5 without its component from the mean of 1 to “good”",
  );
  assert.is(
    compared({ intervention: "clamp", feature: ["d", 7] }),
    "Compared: p, the last token's layer 5 with its projection along feature 7 of d clamped",
  );
  assert.is(
    compared({ intervention: "swap", swap: ["a", "b"], layers: [1, 2] }),
    "Compared: p, the last token's layers 1, 2 with “a” and “b” exchanged",
  );
});

test("train, extract and drift: the inputs and the other model", () => {
  assert.equal(last("drift", { other: "tuned", examples: [1, 2], layers: [2] }), [
    "Other model: tuned",
    "Compared: 2 examples, layer 2",
  ]);
  assert.equal(last("extract", { data: "t.jsonl", layers: [2] }), ["Extracted: t.jsonl, layer 2"]);
  assert.equal(last("extract", { examples: [1, 2], layers: [2] }), ["Extracted: 2 examples, layer 2"]);
  const training = { features: 32, steps: 60, layers: [2, 3] };
  assert.equal(last("sae", { ...training, examples: [1, 2] }), [
    "Trained: 32 features on 2 examples, 60 steps, layers 2, 3",
  ]);
  assert.equal(last("sae", { ...training, from: "rows/" }), [
    "Trained: 32 features on rows/, 60 steps, layers 2, 3",
  ]);
});

test("a list has columns from 60 terminal columns on; below, ids get separate lines", () => {
  const at = (width: number) => jobList(jobs.slice(0, 1), { width, colors: "none" }, 1020);
  assert.match(at(60)[0] as string, /^id +status +experiment$/);
  assert.equal(at(59), ["a".repeat(32), "  running  compare  20 s ago"]);
});

test("a stage's remaining time, at its average speed", () => {
  const pace = new Pace();
  const left = (stage: string, done: number, total: number, now: number) =>
    pace.left({ stage, done, total }, now);
  assert.is(left("a", 10, 100, 50), undefined);
  assert.is(left("a", 20, 100, 50.5), undefined, "half a second says little");
  assert.is(left("a", 20, 100, 51), 8);
  assert.is(left("a", 40, 100, 56), 12);
  assert.is(left("a", 100, 100, 60), undefined, "it is done");
  // Another stage, or the same one restarted, has its own speed.
  assert.is(left("b", 100, 200, 61), undefined);
  assert.is(left("b", 150, 200, 63), 2);
  assert.is(left("b", 50, 200, 64), undefined);
  assert.is(left("b", 50, 200, 70), undefined, "nothing was made");
  assert.is(left("b", 51, 200, 74), 1490);
});

test("progress: one line on a terminal, else one per change and 30 seconds", () => {
  const written: string[] = [];
  const output = (more: object) => new ProgressLine({ write: (text) => written.push(text), ...more });
  const terminal = output({ isTTY: true, columns: 10 });
  terminal.clear();
  terminal.log("a", "never here");
  terminal.show("123456789");
  terminal.show("1234567890");
  terminal.clear();
  terminal.clear();
  assert.equal(written.splice(0), ["\r\u001b[K123456789", "\r\u001b[K12345678…", "\r\u001b[K"]);
  output({ isTTY: true }).show("x".repeat(81));
  assert.is(written.splice(0)[0]?.length, 4 + 79);

  let seconds = 100;
  withTime({ "performance.now": () => seconds * 1000 }, () => {
    const log = output({});
    log.show("never here");
    for (const [at, about] of [
      [100, "a"],
      [129.99, "a"],
      [130, "a"],
      [131, "b"],
      [160.99, "b"],
      [161, "b"],
      [162, "a"],
    ] as const) {
      seconds = at;
      log.log(about, `${about} ${at}`);
    }
    log.show("c 0 %", "c");
    log.show("c 1 %", "c");
    log.clear();
  });
  assert.equal(written, ["a 100\n", "a 130\n", "b 131\n", "b 161\n", "a 162\n", "c 0 %\n"]);
});

test.run();
