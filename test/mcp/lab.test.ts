import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { contracts } from "../../src/contracts/index.js";
import { encodeSafetensors } from "../../src/formats/safetensors.js";
import { SubmissionInput } from "../../src/mcp/lab-submission.js";
import { startServer, type TestServer } from "../inference/support/serving.js";
import { type Harness, openHarness } from "../lab/harness.js";
import { type ClientKind, clients, open, type Session, type ToolResult, unfence } from "./session.js";

let lab: Harness;
let serving: TestServer;
const folder = mkdtempSync(join(tmpdir(), "tapline-mcp-"));
// Each is a process, so tests share them: one for each client, and one that may download nothing.
const downloading = {} as Record<ClientKind, Session>;
let mcp: Session;
test.before(async () => {
  [lab, serving] = await Promise.all([
    openHarness({ queueCapacity: 4 }),
    startServer({ home: join(folder, "home") }),
  ]);
  const start = (kind: ClientKind, ...words: string[]) =>
    open(kind, ["lab", "--lab", lab.lab.url, "--url", serving.url, ...words]);
  await Promise.all([
    ...clients.map(async (kind) => {
      downloading[kind] = await start(kind, "--artifacts", folder);
    }),
    start("current, 2025").then((one) => {
      mcp = one;
    }),
  ]);
});
test.after(async () => {
  const opened = [...Object.values(downloading), mcp];
  await Promise.all(opened.map((one) => one.close()));
  await Promise.all([lab.close(), serving.close()]);
  rmSync(folder, { recursive: true, force: true });
  assert.equal(
    opened.map((one) => one.stderr()),
    ["", "", "", ""],
  );
});

/** The job once it has ended, however often one has to wait for that. */
async function ended(mcp: Session, id: string) {
  for (;;) {
    const seen = marked(await mcp.call("lab_job", { id, wait_seconds: 20 }));
    if (seen.job.ended !== null) return seen;
  }
}

function marked(result: ToolResult) {
  assert.not(result.isError, result.content[0]?.text);
  const { untrusted, notice, hidden_characters, ...data } = result.structuredContent;
  assert.is(untrusted, true);
  assert.ok(hidden_characters >= 0);
  assert.equal(unfence(result.content[0]!.text).data, data);
  assert.is(unfence(result.content[0]!.text).preface, notice);
  return result.structuredContent;
}

const refusal = (result: ToolResult) => {
  assert.ok(result.isError);
  return result.content[0]!.text;
};

for (const kind of clients) {
  test(`${kind} client: an experiment from submission to files, and the served model`, async () => {
    const mcp = downloading[kind];
    assert.equal((await mcp.tools()).map(({ name }) => name).sort(), [
      "lab_add_dictionary",
      "lab_add_lens",
      "lab_artifacts",
      "lab_cancel",
      "lab_dictionaries",
      "lab_forget",
      "lab_health",
      "lab_job",
      "lab_jobs",
      "lab_lenses",
      "lab_operation",
      "lab_submit",
      "serving_capabilities",
      "serving_forget",
      "serving_generate",
      "serving_inspect",
      "serving_library",
      "serving_make_probe",
      "serving_make_vector",
      "serving_save_profile",
    ]);
    const { health } = marked(await mcp.call("lab_health"));
    assert.equal(health.operations, [
      "inspect",
      "compare",
      "probe",
      "sae",
      "features",
      "extract",
      "drift",
      "patch_sweep",
      "explain",
      "graph",
    ]);
    const prompt = "The capital of France is";
    const submission = { operation: "inspect", model: "demo", prompt, layers: [0, 7] };
    const { job } = marked(await mcp.call("lab_submit", submission));
    const seen = await ended(mcp, job.id);
    assert.is(seen.job.status, "completed", seen.job.error);
    assert.equal(seen.cut, []);
    assert.equal(
      seen.job.result.layers.map(({ layer }: { layer: number }) => layer),
      [0, 7],
    );
    const { piece } = marked(await mcp.call("lab_job", { id: job.id, pointer: "/result/tokens", offset: 1 }));
    assert.equal(piece.value, seen.job.result.tokens.slice(1));
    const listed = marked(await mcp.call("lab_jobs"));
    assert.is(listed.jobs[0].id, job.id);
    const files = marked(await mcp.call("lab_artifacts", { id: job.id, name: "activations.npz" }));
    const [{ name, url }] = files.artifacts;
    assert.is(url, `${lab.lab.url}/lab/v1/jobs/${job.id}/artifacts/${name}`);
    assert.is(files.path, join(folder, job.id, "activations.npz"));
    assert.is(readFileSync(files.path).subarray(0, 2).toString(), "PK");
    const { capabilities } = marked(await mcp.call("serving_capabilities"));
    assert.is(capabilities.model, "tapline-demo");
    const { capture } = marked(await mcp.call("serving_inspect", { prompt, layers: [7] }));
    assert.equal(capture.token_ids, seen.job.result.token_ids);
    assert.is(capture.layers[0].norms.length, capture.tokens.length);
    const cancelled = marked(await mcp.call("lab_cancel", { id: job.id }));
    assert.is(cancelled.job.status, "completed", "a job that has ended stays as it is");
  });
}

test("a refusal is one sentence with the numbers", async () => {
  const nothing = "0".repeat(32);
  assert.match(
    refusal(
      await mcp.call("lab_submit", {
        operation: "compare",
        model: "demo",
        prompt: "a",
        intervention: "patch",
      }),
    ),
    "donor_prompt is required for patch.",
  );
  // Each operation has its positions.
  const patched = { operation: "compare", model: "demo", prompt: "a", intervention: "patch" };
  for (const positions of ["generated", [[0, -1]]]) {
    assert.match(
      refusal(await mcp.call("lab_submit", { ...patched, positions })),
      "donor_prompt is required",
    );
  }
  const aligned = { operation: "patch_sweep", model: "demo", clean: "a", positions: "aligned" };
  assert.match(refusal(await mcp.call("lab_submit", aligned)), "corrupted is required with clean");
  const explained = {
    operation: "explain",
    model: "demo",
    prompt: "a",
    layer: 3,
    positions: [-1],
    marker: "X",
  };
  const twice = await mcp.call("lab_submit", { ...explained, template: "X X" });
  assert.match(refusal(twice), 'template: must contain the marker "X" exactly once, got 2 times.');
  const misplaced = { operation: "inspect", model: "demo", prompt: "a", steps: 3 };
  assert.match(refusal(await mcp.call("lab_submit", misplaced)), /unknown field "steps"/);
  assert.match(refusal(await mcp.call("lab_job", { id: nothing })), /There is no job|no job/i);
  assert.match(refusal(await mcp.call("serving_inspect", { prompt: "a", layers: [200] })), /layer/);
  const { job } = marked(await mcp.call("lab_submit", { operation: "inspect", model: "demo", prompt: "a" }));
  await ended(mcp, job.id);
  const name = "../../job.json";
  assert.match(
    refusal(await mcp.call("lab_artifacts", { id: job.id, name })),
    /has no artifact "\.\.\/\.\.\/job/,
  );
  const undone = await mcp.call("lab_artifacts", { id: job.id, name: "activations.npz" });
  assert.match(refusal(undone), /--artifacts <folder>/);
  assert.match(
    refusal(await mcp.call("lab_job", { id: job.id, pointer: "/nothing" })),
    /no value at "\/nothing"/,
  );
});

test("an agent makes a direction, steers and watches with it, and deletes it", async () => {
  const question = (country: string) => `The capital of ${country} is`;
  const texts = {
    positive: ["Brovia", "Quenland", "Tarsovia", "Melgria", "Zondia", "Plavenia"].map(question),
    negative: ["France", "Germany", "Spain", "Italy", "Portugal", "Poland"].map(question),
  };
  assert.equal(marked(await mcp.call("serving_library")).vectors, []);
  const { vector } = marked(
    await mcp.call("serving_make_vector", { name: "unknown", ...texts, layers: [5] }),
  );
  assert.is(vector.layers[0].layer, 5);
  const { probe } = marked(await mcp.call("serving_make_probe", { name: "invented", ...texts, layer: 5 }));
  assert.is(probe.n_embd, vector.n_embd);
  const steer = { kind: "steer", vector: "unknown", layer: 5, strength: 2, strength_unit: "vector" };
  const { answers, cut } = marked(
    await mcp.call("serving_generate", {
      prompt: question("Sweden"),
      max_tokens: 4,
      temperature: 0,
      tapline: {
        interventions: [steer],
        pair: true,
        watch: { layers: [4], norms: true, probes: ["invented"] },
      },
    }),
  );
  assert.equal(cut, []);
  assert.is(answers.length, 2);
  assert.match(answers[0].text, /unknown/);
  assert.not.match(answers[1].text, /unknown/);
  assert.is(answers[1].tapline.pair_of, 0);
  const [told] = answers[0].tapline.interventions;
  assert.is(told.sha256, vector.sha256);
  assert.ok(told.rows > 0 && told.mean_change_length > 0);
  assert.ok(answers[0].tapline.tokens.every((token: { norms: object }) => "4" in token.norms));
  assert.is(typeof answers[0].tapline.tokens[0].probes.invented, "number");
  // A chat, whose readings do not fit into one result.
  const chat = marked(
    await mcp.call("serving_generate", {
      messages: [{ role: "user", content: "What is the capital of France?" }],
      thinking: false,
      max_tokens: 60,
      tapline: { watch: { layers: [0, 1, 2, 3, 4, 5, 6, 7], lens: 10, positions: "all" } },
    }),
  );
  assert.match(chat.answers[0].text, /Paris/);
  assert.ok(chat.cut.some(({ pointer }: { pointer: string }) => pointer.startsWith("/answers/0/tapline")));
  const shown = marked(await mcp.call("serving_library", { kind: "vector", name: "unknown" }));
  // Requested by name, it also returns the texts' projections.
  const [{ layers, ...rest }] = shown.vectors;
  const [{ projections, ...layer }] = layers;
  assert.equal([{ ...rest, layers: [layer] }], [vector]);
  assert.equal([projections.positive.length, projections.negative.length], [6, 6]);
  for (const [input, sentence] of [
    [{ prompt: "a", tapline: { interventions: [{ ...steer, layer: 4 }] } }, /no layer 4; it has 5/],
    [{ prompt: "a", tapline: { watching: {} } }, /watching/],
    [{ prompt: "a", messages: [{ role: "user", content: "b" }] }, /Pass either messages or prompt/],
    [{ prompt: "a", thinking: true }, /thinking requires messages/],
  ] as const) {
    assert.match(refusal(await mcp.call("serving_generate", input)), sentence);
  }
  assert.match(refusal(await mcp.call("serving_library", { name: "unknown" })), /name requires kind/);
  assert.match(
    refusal(await mcp.call("serving_forget", { kind: "probe", name: "nobody" })),
    /no probe named nobody/,
  );
  marked(await mcp.call("serving_forget", { kind: "probe", name: "invented" }));
  marked(await mcp.call("serving_forget", { kind: "vector", name: "unknown" }));
  const left = marked(await mcp.call("serving_library"));
  assert.equal([left.vectors, left.probes], [[], []]);
});

test("a result too large for one answer is cut, says so, and can be paged", async () => {
  const prompt = "The capital of France is Paris. ".repeat(30);
  const submission = {
    operation: "inspect",
    model: "demo",
    prompt,
    layers: [0, 1, 2, 3, 4, 5, 6, 7],
    max_input_tokens: 1024,
  };
  const { job } = marked(await mcp.call("lab_submit", submission));
  const seen = await ended(mcp, job.id);
  assert.is(seen.job.status, "completed", seen.job.error);
  assert.ok(seen.cut.length > 0);
  const whole = await lab.finished(job.id);
  const { pointer, total } = seen.cut.find((cut: { pointer: string }) => cut.pointer.endsWith("/0/norms"));
  const norms: number[] = [];
  for (let offset: number | null = 0; offset !== null; ) {
    const { piece } = marked(await mcp.call("lab_job", { id: job.id, pointer, offset }));
    norms.push(...piece.value);
    offset = piece.next_offset;
  }
  const { result } = whole as unknown as { result: { layers: { norms: number[] }[] } };
  assert.is(norms.length, total);
  assert.equal(norms, result.layers[0]!.norms);
});

test("a missing Lab is reported as a result, and the next call finds it again", async () => {
  const lost = await open("current, 2025", ["lab", "--lab", "9", "--url", serving.url]);
  assert.match(refusal(await lost.call("lab_health")), /^Nothing listens at http:\/\/127\.0\.0\.1:9/);
  assert.is(marked(await lost.call("serving_capabilities")).capabilities.model, "tapline-demo");
  await lost.close();
});

test("arguments are refused by field with the allowed values; lab_jobs has a limit", async () => {
  const cases: Array<[string, object, string]> = [
    ["lab_submit", { operation: "guess", model: "demo" }, "operation: must be inspect, compare"],
    [
      "lab_submit",
      { operation: "inspect", model: "demo", layers: "0-3" },
      'layers: must be an array, got "0-3".',
    ],
    ["lab_job", {}, "id is required."],
    ["lab_jobs", { limit: 0 }, "limit: at least 1, got 0."],
    ["lab_jobs", { count: 3 }, 'unknown field "count"; accepted is limit.'],
  ];
  for (const [tool, input, sentence] of cases) {
    assert.match(refusal(await mcp.call(tool, input as Record<string, unknown>)), sentence);
  }
  const { jobs, total } = marked(await mcp.call("lab_jobs", { limit: 1 }));
  assert.is(jobs.length, Math.min(1, total));
});

test("a dictionary is added, listed, used on a prompt, and removed", async () => {
  const place = mkdtempSync(join(folder, "dictionary-"));
  const numbers = (...shape: [number, number?]) => ({
    shape: shape as number[],
    data: new Float32Array(shape[0] * (shape[1] ?? 1)).fill(0.1),
  });
  const tensors = { W_enc: numbers(128, 3), W_dec: numbers(3, 128), b_enc: numbers(3), b_dec: numbers(128) };
  writeFileSync(join(place, "sae_weights.safetensors"), encodeSafetensors(tensors));
  const metadata = { hook_name: "blocks.5.hook_mlp_out" };
  writeFileSync(join(place, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  const added = marked(await mcp.call("lab_add_dictionary", { name: "three", from: place }));
  assert.equal([added.dictionary.layer, added.dictionary.point], [5, "ffn_out"]);
  assert.is(marked(await mcp.call("lab_dictionaries")).dictionaries[0].name, "three");
  const asked = { operation: "features", model: "demo", dictionary: "three", prompt: "Paris is big" };
  const { job } = marked(await mcp.call("lab_submit", asked));
  const seen = await ended(mcp, job.id);
  assert.is(seen.job.result.point, "ffn_out", seen.job.error);
  const gone = marked(await mcp.call("lab_forget", { kind: "dictionary", name: "three" }));
  assert.is(gone.forgotten, "three");
  assert.match(refusal(await mcp.call("lab_forget", { kind: "dictionary", name: "three" })), /three/);
  assert.is(marked(await mcp.call("lab_dictionaries")).total, 0);
});

test("the submission's tool knows every field of every operation", () => {
  const { properties, required } = SubmissionInput as unknown as { properties: object; required: string[] };
  const all = new Set(
    Object.values(contracts).flatMap(({ submission }) => Object.keys(submission.properties)),
  );
  assert.equal(Object.keys(properties).sort(), [...all].sort());
  assert.equal(required, ["operation", "model"]);
});

test.run();
