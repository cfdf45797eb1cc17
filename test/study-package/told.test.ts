/** Entries of a study's jobs: sentences of each operation, models by public names, requests by their job. */
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Job } from "../../src/contracts/index.js";
import {
  assemble,
  executionEvidence,
  isPublicModel,
  jobEvidence,
  liveEvidence,
  requestsIn,
} from "../../src/study/index.js";
import { cut, publicName } from "../../src/text/words.js";
import { compareJob, inspectJob } from "../report/jobs.js";
import { execution, labJob, words } from "./evidence.js";
import { asked, evidence, note } from "./parts.js";

test("names of models and folders lose only their local path", () => {
  for (const [name, shown] of [
    ["demo", "demo"],
    ["owner/name", "owner/name"],
    ["owner/name:Q8_0", "owner/name:Q8_0"],
    ["/home/ada/m.gguf", "m.gguf"],
    ["/home/ada/models/", "models"],
    ["C:\\models\\m.gguf", "m.gguf"],
    ["./m.gguf", "m.gguf"],
    [".\\a\\m.gguf", "m.gguf"],
    ["../up/m.gguf", "m.gguf"],
    ["~/m.gguf", "m.gguf"],
    ["~ada/models/m.gguf", "m.gguf"],
    [".cache/m.gguf", "m.gguf"],
    ["\\\\host\\share\\m.gguf", "m.gguf"],
    ["/", "a model"],
  ])
    assert.is(publicName(name as string), shown, name);
  assert.equal(
    [cut("abc", 3), cut("abcd", 3), cut("😀😀😀", 3), cut("😀😀😀😀", 3)],
    ["abc", "ab…", "😀😀😀", "😀😀…"],
  );
  for (const [name, is] of [
    ["demo", true],
    ["demo2", false],
    ["a/b", true],
    ["a/b:Q4_K_M", true],
    ["a/b:", false],
    ["a/.b", true],
    [".a/b", false],
    ["a/b.", false],
  ] as const)
    assert.is(isPublicModel(name), is, name);
});

test("each operation has its own sentence, with the chosen settings", () => {
  const layer = { layers: [3], seed: 7 };
  const where = "block output of layer 3, seed 7";
  const examples = [
    { text: "a", label: 0, split: "train" },
    { text: "b", label: 1, split: "test" },
  ];
  const compare = { ...layer, prompt: "a", intervention: "scale", strengths: [0.5, 2], max_tokens: 4 };
  const tail = "; greedy continuations of at most 4 tokens.";
  const sae = { ...layer, examples, features: 8, steps: 9 };
  const explain = { layer: 3, positions: [1, 2], temperature: 0, prompt: "a", layers: undefined };
  const patch = { direction: "noise", clean: "c", corrupted: "d", layers: undefined };
  for (const [operation, config, sentence] of [
    [
      "inspect",
      { ...layer, prompt: "a" },
      `inspect: norms, logit lens and next tokens of a raw prompt (${where}).`,
    ],
    ["compare", compare, `compare: scale at strengths 0.5, 2 on the last token's ${where}${tail}`],
    [
      "compare",
      { ...compare, strength_unit: "norm", point: "mid" },
      `compare: scale at strengths 0.5, 2 (norm) on the last token's mid instead of the ${where}${tail}`,
    ],
    [
      "compare",
      { ...compare, point: "head_out", heads: [0, 2] },
      `compare: scale at strengths 0.5, 2 on the last token's head_out (heads 0, 2) instead of the ${where}${tail}`,
    ],
    [
      "probe",
      { ...layer, examples, rows: "mean" },
      `probe: L2-regularised logistic regression on the mean ${where}, with majority and shuffled-label controls.`,
    ],
    [
      "probe",
      { ...layer, examples },
      `probe: L2-regularised logistic regression on the last token's ${where}, with majority and shuffled-label controls.`,
    ],
    [
      "probe",
      { ...layer, examples, point: "mid" },
      "probe: L2-regularised logistic regression on the last token's mid of layer 3, seed 7, with majority and shuffled-label controls.",
    ],
    [
      "drift",
      { ...layer, examples, other: "/x/other.gguf" },
      `drift: block outputs of small.gguf and of other.gguf on the same texts (${where}), with bootstrap intervals over texts.`,
    ],
    [
      "extract",
      { ...layer, examples, rows: "all", dtype: "f16" },
      `extract: every token's ${where}, written to files as f16.`,
    ],
    [
      "extract",
      { ...layer, examples, rows: "all", dtype: "f32", point: "ffn_in", target: "ffn_out" },
      "extract: every token's ffn_in of layer 3, seed 7, and its ffn_out, written to files as f32.",
    ],
    [
      "sae",
      sae,
      `sae: ReLU autoencoder with an L1 penalty with 8 features, 9 steps, on the last token's ${where}.`,
    ],
    [
      "sae",
      { ...sae, architecture: "jumprelu" },
      `sae: JumpReLU autoencoder with 8 features, 9 steps, on the last token's ${where}.`,
    ],
    [
      "sae",
      { ...sae, architecture: "topk", k: 4, rows: "response" },
      `sae: autoencoder (topk, k 4) with 8 features, 9 steps, on the response's mean ${where}.`,
    ],
    [
      "sae",
      { ...sae, architecture: "topk", k: 4, rows: "all", target: "ffn_out", skip: true },
      "sae: skip transcoder from ffn_in to ffn_out (topk, k 4) with 8 features, 9 steps, on every token's ffn_in of layer 3, seed 7.",
    ],
    [
      "features",
      { dictionary: "words", prompt: "a", layers: undefined },
      "features: the block output of each token encoded with the sparse dictionary words; explained variance, L0 and loss recovered on these texts.",
    ],
    [
      "patch_sweep",
      patch,
      "patch_sweep (noise): single block outputs of every layer at every token patched from one prompt's run into the other's; logit difference of two tokens.",
    ],
    [
      "patch_sweep",
      { ...patch, layers: [1, 2], positions: [0, 3], points: ["mid", "ffn_out"], controls: true, seed: 5 },
      "patch_sweep (noise): single activations (mid, ffn_out) of layers 1, 2 at tokens 0, 3 patched from one prompt's run into the other's; logit difference of two tokens, with norm-matched random controls (seed 5).",
    ],
    [
      "patch_sweep",
      { ...patch, positions: "spans" },
      "patch_sweep (noise): single block outputs of every layer at the last tokens of marked spans patched from one prompt's run into the other's; logit difference of two tokens.",
    ],
    [
      "explain",
      explain,
      "explain: block outputs of layer 3 at tokens 1, 2, unscaled, each replacing a token embedding in a prompt of the same model (greedy).",
    ],
    [
      "graph",
      {
        ...{ prompt: "a", position: -1, nodes: 9, node_threshold: 0.8, edge_threshold: 0.98 },
        ...{ measured: 0, seed: 0 },
      },
      "graph: attribution graph (RelP) of the logits of the most probable tokens at token -1, up to 9 neurons and heads, pruned to 0.8 of the influence of nodes and 0.98 of that of edges.",
    ],
    [
      "explain",
      { ...explain, verbaliser: "/x/v.gguf", temperature: 0.5, seed: 2, length: 3, controls: true },
      "explain: block outputs of layer 3 at tokens 1, 2, scaled to norm 3, each replacing a token embedding in a prompt of v.gguf (temperature 0.5, seed 2); controls: shuffled activations, and no activation.",
    ],
  ] as const)
    assert.is(asked(operation, config).method, sentence, operation);
});

test("an entry's title and prompt describe its subject", () => {
  const title = (operation: string, config: object) => asked(operation, config).title;
  const prompt = (operation: string, config: object) => asked(operation, config).prompt;
  assert.is(title("inspect", { prompt: "Hello\nthere" }), "inspect: Hello there");
  assert.is(
    title("compare", { prompt: "a", prompts: ["one", "two", "three"], strengths: [] }),
    "compare: one and 2 more",
  );
  assert.is(title("compare", { prompt: "a", prompts: ["one"], strengths: [] }), "compare: one");
  assert.is(title("features", { prompt: "x", texts: ["one", "two"] }), "features: one and 1 more");
  assert.is(title("features", { prompt: "x" }), "features: x");
  assert.is(title("probe", { examples: [{ text: "a" }, { text: "b" }] }), "probe: 2 examples, layer 3");
  assert.is(title("extract", { examples: [{ text: "a" }] }), "extract: 1 texts, layer 3");
  assert.is(
    title("extract", { data: "/home/me/texts.jsonl", layers: [1, 2] }),
    "extract: texts.jsonl, layer 1, 2",
  );
  assert.is(title("sae", { from: "/srv/rows/" }), "sae: rows, layer 3");
  assert.is(title("patch_sweep", { clean: "c", corrupted: "d", direction: "noise" }), "patch_sweep: c / d");
  assert.equal(
    [
      prompt("compare", { prompt: "a", prompts: ["one", "two"], strengths: [] }),
      prompt("compare", { prompt: "a", prompts: ["one\n", "two"], strengths: [] }),
    ],
    ["one\ntwo", '[\n  "one\\n",\n  "two"\n]'],
  );
  assert.equal(
    [prompt("inspect", { prompt: "a\nb" }), prompt("probe", { examples: [] })],
    ["a\nb", undefined],
  );
  assert.is(prompt("patch_sweep", { clean: "c", corrupted: "d", direction: "noise" }), "c\nd");
  assert.is(prompt("features", { prompt: "x", texts: ["one", "two"] }), "one\ntwo");
  assert.is(asked("inspect", { prompt: "a" }).error, "The job was cancelled.");
});

test("local paths in requests and results keep only their last part", () => {
  const at = (name: string) => `/home/ada/private/${name}`;
  const places = { data: at("texts.jsonl"), from: at("rows"), out: at("written"), labels: at("labels.json") };
  const config = { ...places, other: at("other.gguf"), verbaliser: at("v.gguf") };
  const whole = inspectJob();
  const made = jobEvidence(
    labJob({ ...whole, result: { ...whole.result, folder: at("written") } } as never, {
      prompt: "a",
      ...config,
    }),
  );
  const [question] = made.entries;
  const [, json = ""] = /```tapline-request\n(.*)\n```/.exec(question?.note ?? "") ?? [];
  const { request } = JSON.parse(json);
  assert.equal(
    [request.data, request.from, request.out, request.labels, request.other, request.verbaliser],
    ["texts.jsonl", "rows", "written", "labels.json", "other.gguf", "v.gguf"],
  );
  const result = made.entries.find(({ note }) => note?.includes("tapline-result"));
  assert.match(result?.note ?? "", '"folder":"written"');
  assert.not.match(JSON.stringify(made), "private");
  const explain = { layer: 3, positions: [1], temperature: 0, prompt: "a", layers: undefined };
  for (const [operation, more] of [
    ["explain", { ...explain, verbaliser: at("v.gguf") }],
    ["drift", { other: at("o.gguf"), examples: [] }],
  ] as const) {
    const job = labJob({ ...inspectJob(), operation } as never, more, { result: undefined });
    assert.not.match(JSON.stringify(jobEvidence(job)), "private", operation);
  }
});

test("a comparison's settings are greedy, of its seed and its length", () => {
  const job = labJob(compareJob(), { prompt: "a", strengths: [], seed: 7, max_tokens: 9 });
  assert.equal(jobEvidence(job).entries[0]?.settings, {
    temperature: 0,
    seed: 7,
    maxTokens: 9,
    thinking: "default",
  });
});

test("a model has its hub name; a job without result its requested one", () => {
  const job = labJob(inspectJob(), { prompt: "x" });
  const provenance = {
    ...job.result!.provenance,
    resolved_model: { path: "/x/m.gguf", repository: "someone/small", commit: "c0ffee" },
  };
  const found = { ...job, result: { ...job.result, provenance } } as Job;
  assert.equal(jobEvidence(found).model, {
    name: "someone/small (qwen3, F16)",
    revision: "c0ffee",
    runtime: "tapline 0.2.0, llama.cpp 0.5.0, cpu",
  });
  assert.equal(jobEvidence(job).model.revision, "main");
  // 300 characters of a name and 200 of its device, from any source.
  const versions = { ...provenance.versions, backend: "b".repeat(200) };
  const longest = { ...provenance, versions, architecture: "a".repeat(300) };
  const long = jobEvidence({ ...job, result: { ...job.result, provenance: longest } } as Job).model;
  const live = liveEvidence(
    { id: "i", what: "w", method: "m", request: {}, exchanges: [], result: {} },
    "m".repeat(301),
    "r".repeat(201),
  ).model;
  const asked = executionEvidence(execution({ model: "m".repeat(301) }), "run").model;
  assert.equal(
    [long, live].map(({ name, runtime }) => [name.length, name.at(-1), runtime.length, runtime.at(-1)]),
    [
      [300, "…", 200, "…"],
      [300, "…", 200, "…"],
    ],
  );
  assert.equal([asked.name.length, asked.name.at(-1)], [300, "…"]);
  assert.equal(jobEvidence({ ...job, result: undefined } as Job).model, {
    name: "small.gguf",
    revision: null,
    runtime: "tapline",
  });
});

test("a request that names a path on its author's machine is refused", () => {
  const request = { operation: "extract", model: "demo", layers: [3], examples: [{ text: "a" }] };
  const of = (more: object) => {
    const text = `\`\`\`tapline-request\n${JSON.stringify({ schemaVersion: 1, request: { ...request, ...more } })}\n\`\`\``;
    const { study } = assemble(words, [evidence({ entries: [note(1, 1)] })]);
    const { asked: taken, refused } = requestsIn({ ...study, finding: text });
    return [taken.length, ...refused];
  };
  assert.equal(of({}), [1]);
  assert.equal(of({ out: "/home/me/rows" }), [0, "extract with out, which refers to the author's machine."]);
  assert.equal(of({ examples: undefined, data: "/home/me/texts.jsonl" }), [
    0,
    "extract with data, which refers to the author's machine.",
  ]);
  const drift = (other: string) =>
    of({ operation: "drift", other, examples: Array.from({ length: 20 }, (_, at) => ({ text: `t${at}` })) });
  assert.equal([drift("demo"), drift("owner/name")], [[1], [1]]);
  assert.equal(drift("/x/m.gguf"), [0, "drift with other, which refers to the author's machine."]);
});

test("requests and results of a study belong together by their job", () => {
  const text = (label: string, value: object) => `\`\`\`${label}\n${JSON.stringify(value)}\n\`\`\``;
  const inspect = { operation: "inspect", model: "demo", prompt: "a", layers: [1] };
  const request = (job: unknown, asked: object = inspect, schemaVersion = 1) =>
    text("tapline-request", { schemaVersion, job, request: asked });
  const result = (job: unknown, operation = "inspect") =>
    text("tapline-result", { schemaVersion: 1, job, operation, result: { of: job } });
  const of = (...blocks: string[]) =>
    requestsIn({
      ...assemble(words, [evidence({ entries: [note(1, 1)] })]).study,
      finding: blocks.join("\n\n"),
    });
  const told = of(
    request("one"),
    result("two"),
    request("two"),
    result("three", "compare"),
    request("three"),
    request(7),
  );
  assert.equal(told.refused, []);
  assert.equal(
    told.asked.map(({ job, original }) => [job, original]),
    [
      ["one", null],
      ["two", { operation: "inspect", result: { of: "two" } }],
      ["three", null],
      [undefined, null],
    ],
  );
  assert.equal(of(request("one", inspect, 2)).refused, ["The block's schemaVersion must be 1."]);
  assert.is(of(request("one", { ...inspect, prompt: 5 })).asked.length, 0);
});

test.run();
