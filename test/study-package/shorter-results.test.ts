/** Results that are too long for a field: in fewer digits, then with ever less of what matters least. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Entry } from "../../src/contracts/studies/index.js";
import { jobEvidence } from "../../src/study/index.js";
import { resultBlock } from "../../src/study/result-block.js";
import { compareJob, inspectJob, patchJob, probeJob, saeJob } from "../report/jobs.js";
import { labJob } from "./evidence.js";
import { block } from "./parts.js";

test("a result keeps its main tables and drops the finer-grained ones", () => {
  const titles = (job: Parameters<typeof labJob>[0]) => {
    const { entries } = jobEvidence(
      labJob(job, { prompt: "a", strengths: [], examples: [], clean: "a", corrupted: "b" }),
    );
    const { answer = "" } = entries.find(({ kind }) => kind === "result") as Entry;
    return [...answer.matchAll(/\n\n(.+)\n```\n.+ \| /g)].map(([, title]) => title);
  };
  assert.equal(titles(inspectJob()), ["Logit lens", "Norms", "Next token"]);
  assert.equal(titles(compareJob()), ["Dose-response"]);
  assert.equal(titles(probeJob()), ["Accuracy by layer"]);
  assert.equal(titles(saeJob()), ["Explained variance and dead features", "Features"]);
  assert.equal(titles(patchJob()), ["Recovery by layer and token"]);
});

const digits = "Numbers are rounded to 5 digits here; other entries contain the full result";

test("a long result gets fewer digits, then fewer of its less needed parts", () => {
  const tokens = (count: number, length = 1) =>
    Array.from({ length: count }, (_, at) => `${"t".repeat(length)}${at}`);
  assert.equal([block(inspectJob())?.left_out, block(inspectJob())?.result.layers.length], [undefined, 2]);
  const precise = inspectJob(tokens(150));
  for (const layer of (precise.result as { layers: { norms: number[] }[] }).layers)
    layer.norms = layer.norms.map(() => 1 / 3 + 1e5);
  const most = block(inspectJob(tokens(400)));
  assert.is(most?.left_out, `${digits}, including all but the most probable token of each prediction.`);
  assert.equal([most?.result.layers.length, most?.result.layers[0].predictions[0].length], [2, 1]);
  assert.is(most?.result.layers[1].norms[0], 10);
  // One block of two: the last one is always told.
  const fewer = block(inspectJob(tokens(400, 130)));
  assert.is(fewer, null);
  const probe = (length: number) => block(probeJob((index) => `${index}${"p".repeat(length)}`));
  assert.is(probe(10)?.left_out, undefined);
  const texts = probe(60_000);
  assert.is(texts?.left_out, `${digits}, including texts beyond 200 characters.`);
  assert.ok(texts?.result.reports[0].scores.every(({ text }: { text: string }) => [...text].length === 200));
  const compare = (length: number, prompts = 2) => {
    const job = compareJob(Array.from({ length: prompts }, (_, at) => `prompt ${at}`));
    for (const trial of (job.result as { trials: { output: string; baseline: string }[] }).trials) {
      trial.output = "o".repeat(length);
      trial.baseline = "b".repeat(length);
    }
    return block(job);
  };
  assert.is(compare(100)?.left_out, undefined);
  const long = compare(20_000);
  assert.is(long?.left_out, `${digits}, including continuations beyond 400 characters.`);
  assert.equal([long?.result.trials[0].output.length, long?.result.trials[0].baseline.length], [400, 400]);
  const longer = compare(500, 60);
  assert.is(longer?.left_out, `${digits}, including continuations beyond 80 characters.`);
  assert.equal([longer?.result.trials[7].output.length, longer?.result.trials.length], [80, 180]);
  const rounded = compare(600, 29);
  assert.ok(rounded !== null);
  const sae = saeJob();
  const [report] = (
    sae.result as unknown as {
      reports: { losses: unknown[]; features: { examples: { text: string }[] }[] }[];
    }
  ).reports;
  const [loss] = report!.losses;
  report!.losses = Array.from({ length: 250 }, (_, at) => ({ ...(loss as object), step: at }));
  const [feature] = report!.features;
  const [example] = feature!.examples;
  feature!.examples = Array.from({ length: 5 }, () => ({ ...example!, text: "e".repeat(30_000) }));
  const trained = block(sae as never);
  assert.is(
    trained?.left_out,
    `${digits}, including most steps of the loss and all but 3 examples per feature, 200 characters of each.`,
  );
  const [told] = trained?.result.reports ?? [];
  // Every third of 250, and the last one, which is one of them.
  assert.equal([told.losses.length, told.losses[1].step, told.losses.at(-1).step], [84, 3, 249]);
  assert.equal(
    told.features[0].examples.map(({ text }: { text: string }) => text.length),
    [200, 200, 200],
  );
  const sweep = block(patchJob(tokens(300)) as never);
  assert.is(sweep?.left_out, `${digits}, including the controls and intervals of each site.`);
  assert.ok(sweep?.result.sites.every((site: object) => !("control" in site) && "recovery" in site));
  const half = block(patchJob(tokens(480)) as never);
  assert.is(
    half?.left_out,
    `${digits}, including the controls and intervals of each site and all but 1 of 2 layers.`,
  );
  assert.equal(
    [half?.result.layers, new Set(half?.result.sites.map(({ layer }: { layer: number }) => layer))],
    [[0], new Set([0])],
  );
});

test("blocks are thinned to every second, then fourth; the last one stays", () => {
  const tokens = Array.from({ length: 400 }, (_, at) => `t${at}`);
  const layersOf = (count: number) => {
    const job = inspectJob(tokens);
    const [layer] = (job.result as unknown as { layers: object[] }).layers;
    Object.assign(job.result, {
      layers: Array.from({ length: count }, (_, at) => ({ ...layer, layer: at })),
    });
    const told = block(job);
    return [
      told?.result.layers.map((each: { layer: number }) => each.layer),
      told?.left_out?.slice(digits.length),
    ];
  };
  const less = ", including all but the most probable token of each prediction";
  const [two, six, twelve] = [layersOf(2), layersOf(6), layersOf(12)];
  assert.equal(two, [[0, 1], `${less}.`]);
  assert.equal(six, [[0, 2, 4, 5], `${less} and all but 4 of 6 layers.`]);
  assert.equal(twelve, [[0, 4, 8, 11], `${less} and all but 4 of 12 layers.`]);
  const top = (count: number) =>
    Array.from({ length: count }, (_, feature) => ({ feature, activation: 1 / (feature + 3) }));
  const features = (texts: number, tokenCount: number, each: number) => {
    const result = {
      texts: Array.from({ length: texts }, (_, at) => ({
        tokens: [`t${at}`],
        token_ids: [at],
        top: Array.from({ length: tokenCount }, () => top(each)),
      })),
      features: Array.from({ length: texts }, (_, text) => ({ text, feature: text })),
      ...{ artifacts: [], provenance: inspectJob().result.provenance },
    };
    return block({ operation: "features", result, id: "f", config: {} } as never);
  };
  assert.is(features(2, 10, 3).left_out, undefined);
  const strongest = features(20, 50, 10);
  assert.is(strongest.left_out, `${digits}, including all but the strongest feature of each token.`);
  assert.equal([strongest.result.texts.length, strongest.result.texts[0].top[0].length], [20, 1]);
  const fewer = features(40, 150, 3);
  assert.is(
    fewer.left_out,
    `${digits}, including all but the strongest feature of each token and all but the first 16 of 40 texts.`,
  );
  assert.equal(
    [
      fewer.result.texts.length,
      fewer.result.texts[15].tokens,
      fewer.result.features.length,
      fewer.result.features[15].text,
    ],
    [16, ["t15"], 16, 15],
  );
  assert.equal(features(40, 1500, 3).result.texts.length, 1);
});

test("a result stays whole, or in 5 digits, up to the exact limit", () => {
  const told = (length: number) => {
    const job = inspectJob(["t"]);
    const [layer] = (job.result as unknown as { layers: { norms: number[] }[] }).layers;
    layer!.norms = Array.from({ length: 400 }, () => 1 / 3);
    Object.assign(job.result, { note: "n".repeat(length) });
    const { text, leftOut } = resultBlock(labJob(job, {}))!;
    return { length: text.length, leftOut };
  };
  const most = 100_000 - told(0).length;
  assert.equal(told(most), { length: 100_000, leftOut: null });
  // Each of the 400 numbers is 0.33333 then, eleven digits less.
  const shorter = told(most + 1);
  assert.is(shorter.leftOut, `${digits}.`);
  const longest = most + 1 + (100_000 - shorter.length);
  assert.equal(told(longest), { length: 100_000, leftOut: `${digits}.` });
  assert.is.not(told(longest + 1).leftOut, `${digits}.`);
});

test("of four blocks the first and last stay; features keep one short example", () => {
  const inspect = inspectJob(Array.from({ length: 800 }, (_, at) => `t${at}`));
  const [layer] = (inspect.result as unknown as { layers: object[] }).layers;
  Object.assign(inspect.result, { layers: [0, 1, 2, 3].map((at) => ({ ...layer, layer: at })) });
  const blocks = block(inspect);
  assert.equal(
    blocks?.result.layers.map((each: { layer: number }) => each.layer),
    [0, 3],
  );
  assert.match(blocks?.left_out, / and all but 2 of 4 layers\.$/);
  const sae = saeJob();
  const [report] = (sae.result as unknown as { reports: { features: object[] }[] }).reports;
  const [feature] = report!.features;
  const examples = Array.from({ length: 3 }, (_, at) => ({ text: `${at}`.repeat(300), activation: 1 }));
  report!.features = Array.from({ length: 200 }, () => ({ ...feature, examples }));
  const trained = block(sae as never);
  assert.is(
    trained?.left_out,
    `${digits}, including most steps of the loss and all but 1 examples per feature, 60 characters of each.`,
  );
  assert.equal(trained?.result.reports[0].features[199].examples, [
    { text: `${"0".repeat(59)}…`, activation: 1 },
  ]);
});

test.run();
