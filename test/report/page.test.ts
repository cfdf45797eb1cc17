/** The file that a report is, read as text. */
import { createHash } from "node:crypto";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { CompareResult, ExplainResult, InspectResult, ProbeResult } from "../../src/contracts/index.js";
import type { Figure } from "../../src/findings/figure.js";
import { probePicture } from "../../src/operations/probe/picture.js";
import { findingsOf, readJob, renderReport } from "../../src/report/index.js";
import { saying } from "../support/saying.js";
import { compareJob, explainJob, hostileJobs, inspectJob, probeJob, provenance, saeJob } from "./jobs.js";

const withoutScripts = (page: string) =>
  page.replace(/<script[^>]*>[\s\S]*?<\/script>/g, "").replace(/<style>[\s\S]*?<\/style>/g, "");

const textOf = (page: string) =>
  withoutScripts(page)
    .replace(/<[^>]*>/g, " ")
    .replace(
      /&(lt|gt|amp|quot|#39);/g,
      (_, name) => ({ lt: "<", gt: ">", amp: "&", quot: '"', "#39": "'" })[name as string] ?? "",
    )
    .replace(/\s+/g, " ");

test("every kind of report shows every field of the provenance", async () => {
  const leaves = (value: unknown): string[] =>
    typeof value === "object" && value !== null ? Object.values(value).flatMap(leaves) : [String(value)];
  // A number as people write it; a file without the folder that it lies in.
  const shown: Record<string, string> = { "1234": "1,234", "/models/small.gguf": "small.gguf" };
  for (const job of [inspectJob(), compareJob(), probeJob(), saeJob()]) {
    const text = textOf(await renderReport(job));
    for (const leaf of leaves(provenance)) {
      assert.ok(text.includes(shown[leaf] ?? leaf), `${job.operation}: ${leaf}`);
    }
    assert.ok(
      text.includes("is not causal evidence") || text.includes("does not show that the model normally"),
    );
    assert.ok(text.includes(job.id as string));
  }
});

test("rows in words: the descriptions of each, of shuffled values, and of none", async () => {
  const job = explainJob();
  const page = await renderReport(job);
  const text = textOf(page);
  for (const words of [
    "In words: The <capital> of France is",
    "av (Q8_0) describes 2 activations of layer 5; token 4: “a <b>capital</b> of Europe”.",
    "Without an activation it says: “nothing at all …”.",
    'Token 3, " France"',
    "The activation at layer 5 has norm 12.5 and was scaled to 150.",
    "a country of words …",
  ]) {
    assert.ok(text.includes(words), words);
  }
  assert.not.ok(page.includes("<b>capital"), "a model's words are text");
  assert.not.ok(page.includes("/home/me"), "no folder of a verbaliser");
  assert.is(readJob({ ...job.result }).operation, "explain", "a result alone is known by itself");
  const bare = { ...job.result, unfilled: undefined } as ExplainResult;
  assert.not.match(textOf(await renderReport({ ...job, result: bare })), "Without an activation");
});

test("results without token text have a page, and feature pages shade tokens", async () => {
  const whole = { value: 1, low: 1, high: 1 };
  const layer = { layer: 5, cosine: whole, relative_length: whole, relative_difference: whole };
  const model = { name: "one", quantization: "F16", bytes: 1 };
  const drift = {
    models: [model, { ...model, name: "other" }],
    texts: 3,
    tokens: 9,
    layers: [layer],
    note: "",
  };
  const extracted = {
    ...{
      folder: null,
      index: "index.json",
      data: { name: "texts.txt", sha256: "0" },
      layers: [5],
      hidden: 4,
      rows: "all",
    },
    ...{ dtype: "f32", shard: [0, 1], texts: 3, cut_texts: 0, tokens: 9, row_count: 9, bytes: 100, files: 1 },
    ...{ kept_files: 0, tokens_per_second: 10, note: "" },
  };
  const example = { text: 0, token: 1, activation: 2, from: 0, activations: [0, 2] };
  const page = {
    ...{ feature: 7, label: "cities <of> France", active_tokens: 1, histogram: [{ least: 0, tokens: 1 }] },
    groups: [{ name: "top", examples: [example] }],
    raised: [{ token_id: 1, token: " Paris", effect: 3 }],
    ...{ lowered: null, neighbours: [{ feature: 8, cosine: 0.5, label: "rivers" }] },
  };
  const features = {
    dictionary: {
      name: "d",
      sha256: "0",
      layout: "SAELens",
      activation: "relu",
      features: 9,
      trained_on: null,
    },
    ...{
      layer: 5,
      texts: [{ tokens: ["The", " city"], token_ids: [1, 2], top: [[], []] }],
      features: [],
      note: "",
    },
    fidelity: {
      tokens: 2,
      l0: 1,
      explained_variance: 0.5,
      cosine: 0.9,
      cross_entropy: null,
      loss_recovered: null,
    },
    pages: [page],
  };
  const shown = async (operation: string, result: object) => {
    const whole = {
      id: "1",
      operation,
      status: "completed",
      result: { ...result, artifacts: [], provenance },
    };
    return renderReport(readJob(whole));
  };
  assert.ok(textOf(await shown("drift", drift)).includes("Drift between one F16 and other F16"));
  assert.ok(textOf(await shown("extract", extracted)).includes("Block outputs of texts.txt"));
  const inputs = { ...extracted, point: "ffn_in" };
  assert.ok(textOf(await shown("extract", inputs)).includes("ffn_in of texts.txt"));
  const read = await shown("features", features);
  assert.match(
    read,
    /<span class="shaded" style="--share:0\.000">The<\/span><span class="shaded" style="--share:1\.000"> city/,
  );
  for (const words of ["cities <of> France", "Paris", "feature 8: rivers", "no logit lens"]) {
    assert.ok(textOf(read).includes(words), words);
  }
});

test("the curves of many layers are in separate panels", () => {
  const job = probeJob();
  const [report] = (job.result as ProbeResult).reports as [ProbeResult["reports"][number]];
  const panelOf = (layers: number) => {
    const reports = Array.from({ length: layers }, (_, layer) => ({ ...report, layer }));
    const { parts } = findingsOf({ ...job, result: { ...job.result, reports } as ProbeResult });
    const roc = parts.find(({ id }) => id === "roc") as Figure;
    return roc.chart.kind === "lines" ? roc.chart.panel : undefined;
  };
  assert.is(panelOf(3), undefined);
  assert.equal(panelOf(4), { column: "layer", label: "" });
});

/** What probes of shuffled labels came to. */
const shuffled = {
  permutations: 100,
  accuracy: { low: 0.25, high: 0.7, mean: 0.48, std: 0.1 },
  auc: { low: 0.2, high: 0.8, mean: 0.5, std: 0.15 },
  p_accuracy: 0.02,
  p_auc: 0.03,
};

test("report and terminal name the same best layer, with intervals and shuffles", () => {
  const job = probeJob();
  const [report] = (job.result as ProbeResult).reports as [ProbeResult["reports"][number]];
  const more = {
    accuracy_interval: { low: 0.5, high: 0.9 },
    auc_interval: { low: 0.6, high: 0.95 },
    shuffled_labels: shuffled,
  };
  const reports = [
    { ...report, ...more, layer: 1, accuracy: 1, auc: 0.8 },
    { ...report, ...more, layer: 2, accuracy: 0.75, auc: 0.9, brier: 0.2 },
    { ...report, ...more, layer: 4, accuracy: 0.5, auc: 0.9, brier: 0.1 },
  ];
  const { summary } = findingsOf({ ...job, result: { ...job.result, reports } as ProbeResult });
  assert.match(
    summary[2] as string,
    "Layer 4, with the highest AUROC, the smallest Brier score of 2 tied layers, classifies 50.0 %",
  );
  assert.match(
    summary[2] as string,
    "95 % interval 50.0 % to 90.0 % (AUROC 0.900, 95 % interval 0.600 to 0.950",
  );
  assert.match(summary[2] as string, "100 probes trained on shuffled labels 48.0 % on average");
  assert.match(summary[2] as string, "0.600 to 0.950, p = 0.030, Brier");
  assert.match(summary[2] as string, /25\.0 % to 70\.0 %\)\.$/);
  const drawn = probePicture({ reports }, { width: 120, colors: "none" }).join("\n");
  assert.match(drawn, "layer 4, with the highest AUROC, the smallest Brier score of 2 tied layers");
  assert.match(drawn, /4 +0\.500 +0\.50–0\.90 +0\.500 +0\.480 +0\.25–0\.70 +0\.900 +0\.60–0\.95 +0\.030/);
});

test("report and terminal show per-row figures next to those of texts", () => {
  const job = probeJob();
  const by_row = {
    ...{ accuracy: 0.625, auc: 0.7125, brier: 0.21, majority_accuracy: 0.55, shuffled_label_accuracy: 0.4 },
    ...{ train_size: 31, test_size: 40, shared_rows: 7, shuffled_labels: shuffled },
    ...{ accuracy_interval: { low: 0.5, high: 0.75 }, auc_interval: { low: 0.6, high: 0.8 } },
  };
  const plain = (job.result as ProbeResult).reports;
  const result = { ...job.result, rows: "all", reports: plain.map((report) => ({ ...report, by_row })) };
  const { summary, parts } = findingsOf({ ...job, result: result as ProbeResult });
  assert.is(
    summary[3],
    "A text's score is the mean over its activations. Per activation, the probe classifies 62.5 % of 40 held-out activations correctly, " +
      "95 % interval 50.0 % to 75.0 % (AUROC 0.713, 95 % interval 0.600 to 0.800); with labels shuffled between texts, 48.0 % " +
      "on average. 7 of these activations also occur in a training text with the same beginning.",
  );
  const figure = (id: string) => parts.find((part) => part.id === id) as Figure | undefined;
  const values = figure("rows-by-layer")!.rows.map(([layer, measure, value]) => [layer, measure, value]);
  assert.equal(
    values.filter(([layer]) => layer === 3),
    [
      [3, "held-out accuracy", 0.625],
      [3, "AUROC", 0.7125],
      [3, "majority class", 0.55],
      [3, "shuffled labels", 0.48],
    ],
  );
  assert.equal(
    figure("accuracy-by-layer")!.rows.find(([layer]) => layer === 3)?.[2],
    0.75,
    "of texts as they were",
  );
  const drawn = probePicture(result as ProbeResult, { width: 120, colors: "none" }).join("\n");
  assert.match(drawn, /Activations .*individually, each labelled like its text/);
  assert.match(
    drawn,
    /7\s+of\s+these\s+activations\s+also\s+occur\s+in\s+a\s+training\s+text\s+with\s+the\s+same\s+beginning\./,
  );
  assert.match(drawn, /3 +0\.750 [\s\S]*3 +0\.625 +0\.50–0\.75 +0\.550 +0\.480/);
  const without = findingsOf(job);
  assert.is(
    without.parts.find(({ id }) => id === "rows-by-layer"),
    undefined,
  );
});

test("report and terminal choose the same of equal layers, in any order", () => {
  const job = probeJob();
  const [report] = (job.result as ProbeResult).reports as [ProbeResult["reports"][number]];
  const at = (layer: number, auc: number, brier: number) => ({ ...report, layer, auc, brier });
  const cases: [reports: ProbeResult["reports"], layer: number, tie: string][] = [
    [[at(9, 0.9, 0.1), at(3, 0.9, 0.1), at(6, 0.9, 0.1)], 3, ", the earliest of 3 tied layers"],
    [[at(1, 0.9, 0.2), at(7, 0.9, 0.1), at(5, 0.9, 0.1)], 5, ", the earliest of 3 tied layers"],
    [[at(1, 0.8, 0), at(7, 0.9, 0.3)], 7, ""],
  ];
  for (const [reports, layer, tie] of cases) {
    for (const order of [reports, [...reports].reverse()]) {
      const { summary } = findingsOf({ ...job, result: { ...job.result, reports: order } as ProbeResult });
      const told = `Layer ${layer}, with the highest AUROC${tie}, classifies`;
      assert.ok((summary[2] as string).startsWith(told), summary[2]);
      const drawn = probePicture({ reports: order }, { width: 120, colors: "none" }).join("\n");
      assert.match(drawn, `layer ${layer}, with the highest AUROC${tie}`);
    }
  }
});

test("a lens reports how many tokens a result stores for each cell", async () => {
  assert.match(textOf(await renderReport(inspectJob())), /its top 3 tokens/);
});

test("the answer's path shows where the lens looked, also for a tracked token", () => {
  const job = inspectJob();
  const result = job.result as InspectResult;
  const said = (target_token_id?: number) => {
    const { parts } = findingsOf({
      ...job,
      result: { ...result, ...(target_token_id !== undefined && { target_token_id }) },
    });
    return (parts.find(({ id }) => id === "answer-by-layer") as Figure).description;
  };
  const answer = (result.next_tokens[0] as { token_id: number }).token_id;
  assert.match(said(), /top three\.$/);
  assert.match(said(answer), /at any rank\.$/);
  assert.match(said(answer + 1), /top three, because this result tracks another token\.$/);
});

test("the page links nowhere outside, and its policy allows its own scripts only", async () => {
  for (const job of [...hostileJobs(), inspectJob()]) {
    const page = await renderReport(job);
    assert.not.match(withoutScripts(page), /\s(?:src|href)\s*=\s*"(?!#)/);
    assert.not.match(withoutScripts(page), /<(?:link|iframe|object|embed|base|form|img)\b/);
    const [, policy] = /Content-Security-Policy" content="([^"]*)"/.exec(page) as RegExpExecArray;
    const allowed = policy!.replaceAll("&#39;", "'");
    assert.ok(allowed.startsWith("default-src 'none'; script-src 'sha256-"));
    const scripts = [...page.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, code]) => code as string);
    assert.is(scripts.length, 3);
    for (const code of scripts) {
      assert.ok(allowed.includes(`'sha256-${createHash("sha256").update(code).digest("base64")}'`));
    }
  }
});

test("hostile texts stay texts: no markup, no hidden characters, no end of a script", async () => {
  for (const job of hostileJobs()) {
    const page = await renderReport(job);
    assert.is(page.match(/<\/script>/g)?.length, 4, "three scripts and the data");
    assert.not.match(page, /<script>window|<img/);
    assert.not.match(
      withoutScripts(page),
      /(?![\n\t])[\p{Cc}\p{Cf}\p{Surrogate}\u2028\u2029]/u,
      "nothing hides in the markup",
    );
    const [, json] = /<script type="application\/json" id="data">([\s\S]*?)<\/script>/.exec(
      page,
    ) as RegExpExecArray;
    assert.not.match(json as string, /[<>&\u2028\u2029]/);
    const expected = JSON.parse(JSON.stringify(job).replace("/models/small.gguf", "small.gguf"));
    assert.equal(JSON.parse(json as string).job, expected, "the job is there as it was, but for a folder");
  }
});

test("no folder of the machine is in a report", async () => {
  for (const model of [
    "/home/lovelace/models/secret.gguf",
    "C:\\Users\\lovelace\\secret.gguf",
    "./lovelace/secret.gguf",
  ]) {
    const job = inspectJob();
    const at = {
      ...job.result.provenance,
      requested_model: model,
      resolved_model: { path: model, repository: null, commit: null },
    };
    const page = await renderReport({
      ...job,
      // Every field that may name a place on this machine.
      config: Object.fromEntries(
        ["model", "other", "verbaliser", "data", "from", "out", "labels"].map((field) => [field, model]),
      ),
      result: { ...job.result, provenance: at } as typeof job.result,
    });
    assert.match(page, "secret.gguf");
    assert.not.match(page, /lovelace/);
  }
  const hub = { ...inspectJob().result.provenance, requested_model: "owner/name:Q4_K_M" };
  const { result } = inspectJob();
  const page = await renderReport({
    ...inspectJob(),
    result: { ...result, provenance: hub } as typeof result,
  });
  assert.match(textOf(page), "owner/name:Q4_K_M");
});

test("a report of several prompts is not named after the first alone", async () => {
  const job = compareJob();
  const [trial] = (job.result as CompareResult).trials as [CompareResult["trials"][number]];
  const titled = async (prompts: string[]) => {
    const trials = prompts.map((prompt) => ({ ...trial, prompt }));
    const page = await renderReport({ ...job, result: { ...job.result, trials } as CompareResult });
    return /<h1>[^<]*<bdi>([^<]*)/.exec(page)?.[1];
  };
  assert.is(await titled(["One", "One"]), "One");
  assert.is(await titled(["One", "Two", "Two", "Three"]), "3 prompts: One, …");
});

test("bars of top features are on one scale, whatever the width of their texts", async () => {
  const page = await renderReport(saeJob());
  const bars = [...page.matchAll(/<span class="bar" style="--share:([\d.]+)"><\/span><span>([\d.]+)</g)];
  assert.ok(bars.length > 1);
  const largest = Math.max(...bars.map(([, , value]) => Number(value)));
  for (const [, share, value] of bars) assert.ok(Math.abs(Number(share) - Number(value) / largest) < 0.01);
  assert.match(page, /\.bar \{ display: inline-block; width: \d+rem;/);
});

test("a report is made from a job, a result, --json output, or the demo", async () => {
  const job = inspectJob();
  const whole = { ...job, status: "completed", model: "small.gguf" };
  assert.is(readJob(whole).id, job.id);
  assert.is(readJob({ job: whole, folder: null }).operation, "inspect");
  for (const each of [inspectJob(), compareJob(), probeJob(), saeJob()]) {
    const alone = readJob(each.result);
    assert.is(alone.operation, each.operation);
    assert.ok((await renderReport(alone)).includes("came without its configuration"));
  }
  assert.throws(
    () => readJob({ ...whole, result: undefined, status: "failed", error: "No such layer." }),
    /its status is failed \(No such layer\.\)/,
  );
  assert.throws(() => readJob({ status: "running", operation: "sae" }), saying("its status is running."));
  assert.throws(() => readJob([]), saying("a JSON object"));
  assert.throws(() => readJob({ hello: 1 }), saying("neither a job nor the result"));
  assert.throws(
    () => readJob({ ...whole, result: { ...job.result, tokens: [1] } }),
    /contract of inspect: tokens/,
  );
});

test("degenerate results: no prompts, one token, one strength, no lens", async () => {
  const inspect = inspectJob(["x"]);
  const { result } = inspect;
  if (!("next_tokens" in result)) throw new Error("inspect");
  for (const layer of result.layers) {
    delete layer.predictions;
    layer.note = "This architecture has no usable head.";
    layer.norms = [0];
  }
  const page = await renderReport(inspect);
  assert.ok(textOf(page).includes("This architecture has no usable head."));
  const compare = compareJob(["one"]);
  if ("trials" in compare.result) compare.result.trials.length = 1;
  assert.ok((await renderReport(compare)).includes("dose-response"));
});

test.run();
