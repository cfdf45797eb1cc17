import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  checkSubmission,
  type PatchSite,
  type PatchSweepConfig,
  type PatchSweepResult,
  type Progress,
} from "../../src/contracts/index.js";
import { Artifacts } from "../../src/lab/artifacts.js";
import { StageClock } from "../../src/lab/stage-clock.js";
import { Model } from "../../src/native/index.js";
import { patchSweep } from "../../src/operations/patch_sweep/run.js";
import { until } from "../support/until.js";
import { type Harness, openHarness } from "./harness.js";
import { readNpz } from "./npz-reader.js";

const demo = fileURLToPath(new URL("../../models/demo/tapline-demo.gguf", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tapline-patch-"));
let model: Model;
let harness: Harness;
test.before(async () => {
  harness = await openHarness();
  model = await Model.open(demo);
});
test.after(async () => {
  await harness.close();
  await model.close();
  rmSync(folder, { recursive: true, force: true });
});

const capitals = { clean: "The capital of France is", corrupted: "The capital of Japan is" };

const openOther = () => Promise.reject(new Error("One model is enough."));

/** The operation itself, as a worker runs it. */
async function result(
  body: object,
  progress: (progress: Progress) => void = () => {},
): Promise<Omit<PatchSweepResult, "artifacts" | "provenance">> {
  const config = checkSubmission({ operation: "patch_sweep", model: "demo", ...body }) as PatchSweepConfig;
  const artifacts = new Artifacts(mkdtempSync(join(folder, "job-")));
  return patchSweep({ config, model, artifacts, progress, clock: new StageClock(), openOther });
}

async function refusal(body: object): Promise<string> {
  return result(body).then(
    () => assert.unreachable("it was refused"),
    (error) => (error as Error).message,
  ) as Promise<string>;
}

test("partial results have the final layout, with null for the rest", async () => {
  const told: Progress[] = [];
  const body = { ...capitals, layers: [5, 2], positions: [5, 3, 4], direction: "noise" };
  const { sites } = await result(body, (progress) => told.push(progress));
  const last = await until(() => told.find(({ stage, done }) => stage === "patch" && done === 1));
  assert.equal(last.growth?.layers, [5, 2]);
  assert.equal(last.growth?.positions, [5, 3, 4]);
  assert.equal(last.growth?.clean, [" is", " of", " France"]);
  assert.equal(last.growth?.corrupted, [" is", " of", " Japan"]);
  assert.is(last.growth?.recovery.includes(null), false);
  for (const { growth } of told) {
    for (const [at, value] of (growth?.recovery ?? []).entries()) {
      if (value !== null)
        assert.is(
          value,
          Number((sites[at] as PatchSite & { recovery: number }).recovery.toPrecision(4)),
          String(at),
        );
    }
  }
  await result(
    { pairs: [capitals, { clean: "The capital of Spain is", corrupted: "The capital of Italy is" }] },
    (one) => told.push(one),
  );
  const second = await until(() => told.find(({ growth }) => growth?.pair === 1 && growth.pairs === 2));
  assert.is(second.growth?.recovery.length, 8 * 6);
});

test("the subject moves to the last token between blocks 3 and 5, as the model card says", async () => {
  const { id } = await harness.submit({ operation: "patch_sweep", model: "demo", ...capitals });
  const job = await harness.finished(id);
  assert.is(job.status, "completed", job.error);
  const found = job.result as PatchSweepResult;
  assert.equal(found.layers, [0, 1, 2, 3, 4, 5, 6, 7]);
  assert.equal(found.positions, [0, 1, 2, 3, 4, 5]);
  const [pair] = found.pairs;
  assert.equal(pair?.clean.tokens.slice(1), ["The", " capital", " of", " France", " is"]);
  assert.equal([pair?.target_token, pair?.foil_token], [" Paris", " Tokyo"]);
  const site = (layer: number, position: number) =>
    found.sites.find((one) => one.layer === layer && one.position === position) as PatchSite;
  const recovery = (layer: number, position: number) => site(layer, position).recovery as number;
  // Up to block 3 the subject's state decides; from block 5 on, the last token's does.
  for (const layer of [0, 1, 2, 3, 5, 6]) {
    const [subject, last] = [recovery(layer, 4), recovery(layer, 5)];
    const [holder, other] = layer < 4 ? [subject, last] : [last, subject];
    const [most, least] = layer === 3 || layer === 5 ? [0.5, 0.5] : [0.8, 0.2];
    assert.ok(holder > most && other < least, `block ${layer}: subject ${subject}, last token ${last}`);
  }
  // The common beginning of both prompts, and unread positions, change nothing, to the bit.
  for (const one of found.sites) {
    const idle = one.position < 4 || (one.layer === 7 && one.position < 5);
    assert.is(one.change === 0, idle, `${one.layer}, ${one.position}`);
    assert.is(one.change_length === null, one.layer === 7 && one.position < 5);
  }
  assert.ok(Math.abs(recovery(7, 5) - 1) < 1e-5);
  assert.ok(Math.abs(found.restored - found.corrupted) < 1e-3);
  const controls = found.sites.map(({ control }) => Math.abs(control?.recovery as number));
  assert.ok(Math.max(...controls) < 0.5, "random changes do little");
  assert.match(found.note, /patches one block output of the clean run into the corrupted run/);
  assert.equal(found.provenance.layers, found.layers);
  assert.equal(found.artifacts, ["patch-sweep.npz"]);
  const arrays = readNpz(readFileSync(join(harness.lab.folder, id, "patch-sweep.npz")));
  assert.equal(arrays.get("logit_difference")?.shape, [1, 8, 6]);
  assert.equal(
    [...(arrays.get("logit_difference")?.data ?? [])],
    found.sites.map(({ logit_difference }) => logit_difference),
  );
});

test("pairs: figures are means, recovery is the share of the mean gap, within intervals", async () => {
  const pairs = [
    capitals,
    { clean: "The capital of Italy is", corrupted: "The capital of Spain is" },
    { clean: "The capital of Germany is", corrupted: "The capital of Egypt is" },
  ];
  const settings = { layers: [1, 6], positions: [-2, -1], controls: false };
  const alone: Awaited<ReturnType<typeof result>>[] = [];
  for (const pair of pairs) alone.push(await result({ ...settings, ...pair }));
  const together = await result({ ...settings, pairs, direction: "denoise" });
  const mean = (of: (one: (typeof alone)[number]) => number) =>
    alone.reduce((sum, one) => sum + of(one), 0) / alone.length;
  assert.ok(Math.abs(together.clean - mean(({ clean }) => clean)) < 1e-9);
  for (const [index, site] of together.sites.entries()) {
    const change = mean(({ sites }) => sites[index]?.change as number);
    assert.ok(Math.abs(site.change - change) < 1e-9);
    const way = mean(({ clean, corrupted }) => clean - corrupted);
    assert.ok(Math.abs((site.recovery as number) - change / way) < 1e-9);
    const { change_interval: interval } = site;
    assert.ok((interval?.low as number) <= change && change <= (interval?.high as number));
    assert.is(site.control, undefined);
  }
  assert.is(together.control_seed, undefined);
});

test("noising goes the other way: the clean run is broken", async () => {
  const found = await result({ ...capitals, direction: "noise", layers: [6], positions: [-1] });
  const [site] = found.sites as [PatchSite];
  assert.ok((site.recovery as number) > 0.8);
  assert.ok(site.change < 0);
  assert.ok(Math.abs(found.restored - found.clean) < 1e-3);
});

test("runs that do not differ have nothing to recover", async () => {
  const same = {
    clean: capitals.clean,
    corrupted: capitals.clean,
    target_token: " Paris",
    foil_token: " Tokyo",
  };
  const found = await result({ ...same, controls: false });
  assert.ok(found.sites.every(({ change, recovery }) => change === 0 && recovery === null));
  assert.match(found.note, /The two runs of the pair have the same logit difference/);
});

// When {object} and {subject} went to the store, {who} gave a drink to
const gift = (object: string, subject: string, who: string) =>
  `When ${object} and ${subject} went to the store, ${who} gave a drink to`;

test("heads are separate sites, and one of block 6 names the recipient", async () => {
  const names = [
    ["Mary", "John"],
    ["Tom", "Lucy"],
    ["Peter", "Anna"],
  ] as const;
  const pairs = names.map(([object, subject]) => ({
    clean: gift(object, subject, subject),
    corrupted: gift(object, subject, object),
    target_token: ` ${object}`,
    foil_token: ` ${subject}`,
  }));
  const asked = { operation: "patch_sweep", model: "demo", pairs, points: ["head_out"], positions: [-1] };
  const { id } = await harness.submit(asked);
  const job = await harness.finished(id);
  assert.is(job.status, "completed", job.error);
  const found = job.result as PatchSweepResult;
  assert.equal([found.points, found.heads, found.positions], [["head_out"], [0, 1, 2, 3], [-1]]);
  assert.equal(
    found.sites.slice(0, 5).map(({ layer, point, head, position }) => [layer, point, head, position]),
    [
      [0, "head_out", 0, -1],
      [0, "head_out", 1, -1],
      [0, "head_out", 2, -1],
      [0, "head_out", 3, -1],
      [1, "head_out", 0, -1],
    ],
  );
  const ranked = found.sites.toSorted((a, b) => (b.recovery as number) - (a.recovery as number));
  const [best, next] = ranked as [PatchSite, PatchSite];
  assert.equal([best.layer, best.head], [6, 2]);
  assert.ok((best.recovery as number) > 0.3, `head 6.2: ${best.recovery}`);
  assert.ok((next.recovery as number) < 0.2, `head ${next.layer}.${next.head}: ${next.recovery}`);
  // The card's name mover looks at the name in block 0, and moves nothing from there.
  const mover = found.sites.find(({ layer, head }) => layer === 0 && head === 2) as PatchSite;
  assert.ok(Math.abs(mover.recovery as number) < 0.02, `head 0.2: ${mover.recovery}`);
  assert.match(found.note, /^Each site patches one head's output \(head_out\) of the clean run/);
  const arrays = readNpz(readFileSync(join(harness.lab.folder, id, "patch-sweep.npz")));
  assert.equal(arrays.get("logit_difference_head_out")?.shape, [3, 8, 4, 1]);
  assert.equal(arrays.get("control_head_out")?.shape, [3, 8, 4, 1]);
  assert.equal([...(arrays.get("heads")?.data ?? [])], [0, 1, 2, 3]);
  const each = arrays.get("logit_difference_head_out")?.data as Float64Array;
  const mean = ([0, 1, 2].reduce((sum, pair) => sum + (each[pair * 32 + 26] as number), 0) as number) / 3;
  assert.ok(Math.abs(mean - best.logit_difference) < 1e-9);
});

test("spans marked in both texts are patched into the matching span, whatever is around", async () => {
  const marked = {
    clean: "The capital of [[France]] [[is]]",
    corrupted: "I think the capital of [[the United Kingdom]] [[is]]",
    target_token: " Paris",
    foil_token: " London",
    positions: "aligned",
  };
  const found = await result({ ...marked, layers: [1, 6] });
  const [pair] = found.pairs;
  assert.equal(pair?.clean.tokens.slice(1), ["The", " capital", " of", " France", " is"]);
  assert.equal(pair?.clean.spans, [
    { text: "France", position: 4 },
    { text: "is", position: 5 },
  ]);
  const there = pair?.corrupted;
  assert.equal(
    there?.spans?.map(({ text }) => text),
    ["the United Kingdom", "is"],
  );
  const ends = there?.spans?.map(({ position }) => there.tokens[position]);
  assert.equal([ends?.[1], there?.spans?.[1]?.position], [" is", (there?.tokens.length as number) - 1]);
  assert.is(there?.spans?.[0]?.position, (there?.tokens.length as number) - 2);
  assert.equal(found.positions, [0, 1]);
  assert.equal(
    found.sites.map(({ layer, position }) => [layer, position]),
    [
      [1, 0],
      [1, 1],
      [6, 0],
      [6, 1],
    ],
  );
  const recovery = found.sites.map((site) => site.recovery as number);
  assert.ok((recovery[0] as number) > 0.5 && (recovery[3] as number) > 0.5, `${recovery}`);
  assert.match(found.note, /at the last token of one span/);
  // Without marks the brackets are text.
  const { positions: _positions, ...raw } = marked;
  assert.match(await refusal(raw), /clean has \d+ tokens and corrupted \d+/);
});

test("mismatched marks are reported in one sentence", async () => {
  const told = (clean: string, corrupted = "The capital of [[Japan]] is") =>
    refusal({ clean, corrupted, positions: "aligned" });
  assert.is(
    await told("The capital of France is"),
    "clean contains no span: with aligned positions, mark each span to patch with [[ and ]].",
  );
  assert.is(await told("The [[capital of [[France]] is"), "clean opens a span with [[ inside another span.");
  assert.is(await told("The capital of France]] is"), "clean has ]] without a matching [[.");
  assert.is(await told("The capital of [[France is"), "clean opens a span with [[ but does not close it.");
  assert.is(await told("The [[]]capital is"), "clean contains an empty span: [[]].");
  assert.is(
    await told("The [[capital]] of [[France]] is"),
    "clean marks 2 spans and corrupted 1; both must mark the same number.",
  );
  assert.is(
    await told("The capital of [[Fran]]ce is"),
    'clean: span 0, "Fran", does not end at a token boundary. End it after a whole word, before the space of the next one.',
  );
  assert.match(await told("The capital of [[France ]]is"), /^clean: span 0, "France ", does not end/);
  assert.is(await told("[[a]] ".repeat(65)), "clean contains 65 spans; the limit is 64.");
  const one = { clean: "The capital of [[France]] is", corrupted: "The capital of [[Japan]] is" };
  const two = { clean: "The capital of [[France]] [[is]]", corrupted: "The capital of [[Japan]] [[is]]" };
  assert.is(
    await refusal({ pairs: [one, two], positions: "aligned" }),
    "pairs[0] marks 1 span and pairs[1] 2; all pairs must mark the same number, because results are means over the pairs.",
  );
});

test("errors that only the model can detect fail the job with one sentence", async () => {
  assert.match(
    await refusal({ ...capitals, corrupted: "The capital of the country of Japan is" }),
    /^clean has 6 tokens and corrupted 9; both must have the same number of tokens: .*" France".* vs\. .*" country"/,
  );
  assert.match(
    await refusal({ ...capitals, positions: [6] }),
    /^positions: 6 does not exist; clean has 6 tokens, 0 to 5 or -6 to -1\.$/,
  );
  assert.match(
    await refusal({ ...capitals, positions: [5, -1] }),
    /^positions: 5 and -1 are the same token of 6\.$/,
  );
  assert.match(
    await refusal({ ...capitals, layers: [8] }),
    /^layers: 8 does not exist; the model has 8 blocks/,
  );
  assert.match(
    await refusal({ ...capitals, foil_token: " two words" }),
    /^foil_token must encode to exactly one token/,
  );
  assert.is(
    await refusal({ ...capitals, points: ["head_out"], heads: [4, 7] }),
    "heads: 4, 7 do not exist; block 0 has 4 heads, 0 to 3.",
  );
  assert.is(await refusal({ ...capitals, heads: [0] }), "heads: requires point head_out.");
  const longer = { clean: "The capital city of Italy is", corrupted: "The capital city of Spain is" };
  assert.match(
    await refusal({ pairs: [capitals, longer] }),
    /^pairs\[0\] has 6 tokens and pairs\[1\] 7; .*Use negative positions/,
  );
});

test.run();
