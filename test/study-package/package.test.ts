/** What jobs and requests become, judged by the studies service's own check. */

import { test } from "uvu";
import * as assert from "uvu/assert";
import type { Entry, StudyPackage } from "../../src/contracts/studies/index.js";
import { studyLimits } from "../../src/contracts/studies/index.js";
import { checkPackage } from "../../src/studies/text/check-package.js";
import { parseStrictJson } from "../../src/studies/text/strict-json.js";
import {
  assemble,
  emptyWords,
  executionEvidence,
  faultsOf,
  jobEvidence,
  methodText,
  readWords,
  writeWords,
} from "../../src/study/index.js";
import { compareJob, hostile, hostileJobs, inspectJob, probeJob, saeJob } from "../report/jobs.js";
import { fc } from "../support/fc.js";
import { saying } from "../support/saying.js";
import { execution, labJob, words } from "./evidence.js";

const example = (text: string, index: number) => ({ text, label: index % 2, split: "train" });
const jobs = () => [
  labJob(inspectJob(), { prompt: "The capital of France is" }),
  labJob(compareJob(), { prompt: "a", prompts: ["a", "b"], intervention: "ablate", strengths: [0, 0.5, 1] }),
  labJob(probeJob(), { examples: ["x", "y"].map(example) }),
  labJob(saeJob(), { examples: ["x", "y"].map(example), features: 64, steps: 100 }),
];

/** The package as the service would take it. */
function accepted({ bytes }: { bytes: Buffer }): StudyPackage {
  assert.ok(bytes.length <= studyLimits.package_bytes);
  return checkPackage(parseStrictJson(bytes));
}

const titled = ({ entries }: StudyPackage, part: string) =>
  entries.find(({ title }) => title.includes(part)) as Entry;

test("jobs of every kind and a request become a package that the service accepts", () => {
  const made = assemble(words, [...jobs().map(jobEvidence), executionEvidence(execution(), "tapline")]);
  assert.equal(faultsOf(made), []);
  const study = accepted(made);
  assert.is(study.title, words.title);
  assert.equal(study.model, {
    name: "small.gguf (qwen3, F16)",
    revision: "main",
    runtime: "tapline 0.2.0, llama.cpp 0.5.0, cpu",
  });
  assert.is(titled(study, "inspect: ").prompt, "The capital of France is");
  assert.match(titled(study, "Result of inspect").answer as string, /layer 0 \| layer 3\nThe \| The 50\.0 %/);
  assert.equal(titled(study, "compare: ").settings, {
    temperature: 0,
    seed: 0,
    maxTokens: 32,
    thinking: "default",
  });
  const trial = titled(study, "ablate at layer 3: The capital of Italy is");
  assert.is(trial.answer, "one two three");
  assert.match(trial.note as string, /Strength 0\.5: probability 0\.5 \(change -0\.3\)/);
  for (const job of jobs()) {
    const { provenance: _, artifacts: __, ...figures } = job.result as Record<string, unknown>;
    const whole = titled(study, `Result of ${job.operation} 01234567 as JSON`).note as string;
    const [, json = ""] = /^```tapline-result\n(.+)\n```$/.exec(whole) ?? [];
    assert.equal(
      JSON.parse(json),
      { schemaVersion: 1, operation: job.operation, job: job.id, result: figures },
      "nothing of the result is lost",
    );
    const asked = titled(study, `${job.operation}: `).note as string;
    const [, request = ""] = /```tapline-request\n(.+)\n```$/.exec(asked) ?? [];
    assert.equal(JSON.parse(request), {
      schemaVersion: 1,
      job: job.id,
      request: { ...job.config, model: "small.gguf" },
    });
    assert.ok(
      study.omissions.some((line) => job.result?.artifacts.every((name) => line.includes(name))) ||
        job.result?.artifacts.length === 0,
    );
  }
  assert.is(
    titled(study, "Examples of probe").note,
    '{"text":"x","label":0,"split":"train"}\n{"text":"y","label":1,"split":"train"}',
  );
  assert.ok(study.omissions.includes("Earlier tries."));
  const answer = study.entries.at(-1) as Entry;
  assert.is(answer.model, "tapline-demo");
  assert.is(answer.system, "Be brief.");
  assert.equal(answer.context, [
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Hello." },
  ]);
  assert.is(answer.prompt, "What is the capital of France?");
  assert.is(answer.answer, "Paris.");
  assert.is(answer.thinking, "Hm. France.");
  assert.equal(answer.settings, { temperature: 0, seed: 4, maxTokens: 64, thinking: "on" });
  assert.is(answer.finishReason, "stop");
});

test("local model paths are left out, and the omissions say so", () => {
  const failed = labJob(
    inspectJob(),
    { prompt: "x" },
    {
      status: "failed",
      result: undefined,
      error: "No model found at /home/ada/private folder/small.gguf.",
    },
  );
  for (const job of [...jobs(), failed]) {
    const made = assemble(words, [jobEvidence(job)]);
    assert.not.match(made.bytes.toString(), /private folder|home.ada/);
    assert.ok(accepted(made).omissions.some((line) => line.startsWith("The folder of the model file")));
  }
  const entry = accepted(assemble(words, [jobEvidence(failed)])).entries[1] as Entry;
  assert.equal([entry.kind, entry.note], ["error", "No model found at small.gguf."]);
});

test("what does not fit is left out, the largest first, and stated", () => {
  const big = (length: number) => labJob(inspectJob(), { prompt: "x".repeat(length) });
  // A result of 600,000 bytes fits; two do not.
  const long = labJob(
    probeJob((index) => `${index} ${"é".repeat(45_000)}`),
    {
      examples: Array.from({ length: 4 }, (_, index) => example("y".repeat(1000), index)),
    },
  );
  const one = accepted(assemble(words, [jobEvidence(big(150_000))]));
  assert.is([...(one.entries[0] as Entry).prompt!].length, studyLimits.long_text);
  assert.ok(one.omissions.some((line) => /is truncated to 100000 of its 150000 characters/.test(line)));

  const made = accepted(assemble(words, [jobEvidence(long), ...jobs().map(jobEvidence)]));
  assert.ok(
    made.omissions.some((line) =>
      /^The whole result of probe 01234567 as JSON \(\d+ bytes\): .* 1000000 bytes\.$/.test(line),
    ),
    made.omissions.join("\n"),
  );
  assert.ok(titled(made, "Result of inspect 01234567 as JSON"), "smaller ones stay");
  assert.ok(titled(made, "Examples of probe"));

  const prompts = Array.from({ length: 32 }, (_, index) => `prompt ${index}`);
  const many = Array.from({ length: 8 }, () =>
    jobEvidence(
      labJob(compareJob(prompts), { prompt: "a", prompts, intervention: "ablate", strengths: [0, 0.5, 1] }),
    ),
  );
  const packed = accepted(assemble(words, many));
  assert.ok(packed.entries.length <= studyLimits.entries);
  assert.ok(packed.omissions.some((line) => line.includes("the limit of a package is 200 entries")));

  const hopeless = Array.from({ length: 12 }, () => jobEvidence(big(100_000)));
  assert.throws(() => assemble(words, hopeless), /does not fit into a package: \d+ bytes of at most 1000000/);
  assert.throws(() => assemble(words, []), saying("at least one job"));
});

test("a long result is cut into notes that are the result again when joined", () => {
  const evidence = jobEvidence(
    labJob(
      probeJob((index) => `${index} 𝄞${"a".repeat(20_000)}`),
      { examples: ["x"].map(example) },
    ),
  );
  const parts = accepted(assemble(words, [evidence])).entries.filter(({ title }) =>
    title.includes("as JSON, part"),
  );
  assert.ok(parts.length > 1);
  const whole = JSON.parse(parts.map(({ note }) => note).join(""));
  assert.is(whole.reports.length, 2);
});

test("hostile texts, odd requests and failures are packaged, not trusted", () => {
  const settings = {
    prompt: "a",
    prompts: hostile,
    clean: hostile.join(" "),
    corrupted: "b",
    intervention: "ablate",
    strengths: [0, 0.5, 1],
    examples: [],
    features: 8,
    steps: 1,
  };
  for (const job of hostileJobs()) accepted(assemble(words, [jobEvidence(labJob(job, settings))]));
  const odd = [
    execution({ input: { prompt: ["a", "b"] }, endpoint: "/v1/completions" }),
    execution({
      input: null,
      status: "failed",
      events: [{ id: 1, kind: "error", text: "It broke.", time: 1, updated: 1, choice: 0 }],
    }),
    execution({
      input: {
        messages: [
          { role: "tool", content: "x" },
          { role: "user", content: [{ type: "image_url" }] },
        ],
      },
      truncated: true,
    }),
    execution({
      input: {
        messages: Array.from({ length: 300 }, () => ({ role: "user", content: "again" })),
        temperature: 99,
        seed: 1,
        max_tokens: 1,
      },
    }),
    execution({ input: "x".repeat(200_000), model: "" }),
  ];
  const made = accepted(
    assemble(
      words,
      odd.map((one) => executionEvidence(one, "tapline")),
    ),
  );
  assert.equal(
    made.entries.map(({ kind }) => kind),
    ["result", "error", "result", "result", "result"],
  );
  assert.match(made.entries[1]?.note as string, /Error: It broke\./);
  assert.ok(made.omissions.some((line) => /not plain text .*: 2\.$/.test(line)));
  assert.ok(made.omissions.some((line) => line.includes("beyond the execution inspector's limit")));
  assert.is(made.entries[3]?.settings, undefined);
  assert.is(made.entries[3]?.context?.length, studyLimits.context_messages);
});

test("faults are sentences, all blanks at once", () => {
  const evidence = [jobEvidence(jobs()[0]!)];
  assert.equal(faultsOf(assemble(emptyWords, evidence)), [
    "title must not be blank.",
    "question must not be blank.",
    "method must not be blank.",
    "limitations must not be blank.",
    "license must be CC-BY-4.0 or CC0-1.0.",
  ]);
  assert.equal(faultsOf(assemble({ ...words, title: "x".repeat(161) }, evidence)), [
    "title: at most 160 characters, got 161.",
  ]);
  assert.match(methodText(evidence), /^Model: small\.gguf \(qwen3, F16\)\. .*\n- inspect: norms, logit lens/);
});

test("words come back from their file as they were, whatever the editor's line ends", () => {
  const line = fc
    .string({ unit: "grapheme", maxLength: 40 })
    .map((text) => text.replace(/[\p{C}\p{Z}]/gu, " ").trim())
    .filter((text) => !/^#|^<!--/.test(text));
  const paragraph = fc.array(line, { maxLength: 6 }).map((lines) => lines.join("\n").trim());
  const anyWords = fc.record(
    {
      title: line,
      question: paragraph,
      hypothesis: paragraph,
      method: paragraph,
      finding: paragraph,
      limitations: paragraph,
      license: line,
      omissions: fc.array(
        line.filter((text) => text !== ""),
        { maxLength: 4 },
      ),
    },
    { noNullPrototype: true },
  );
  fc.assert(
    fc.property(anyWords, fc.boolean(), fc.array(paragraph, { maxLength: 3 }), (given, windows, faults) => {
      const file = writeWords(given, faults);
      assert.equal(readWords(windows ? `\ufeff${file.replaceAll("\n", "\r\n")}` : file), given);
    }),
  );
  const file = writeWords({ ...emptyWords, question: "# A heading of mine\n## Method 2" }, [
    "bad --> comment",
  ]);
  assert.is(readWords(file).question, "# A heading of mine\n## Method 2");
});

test.run();
