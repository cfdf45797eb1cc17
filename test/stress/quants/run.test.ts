/** `tapline quants` on tiny models: its figures, its files, and that a killed run continues. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { validate } from "../../../src/contracts/index.js";
import { StudyPackage } from "../../../src/contracts/studies/index.js";
import { encodeSafetensors } from "../../../src/formats/safetensors.js";
import { Dictionaries, modelFingerprint, Probes, Vectors } from "../../../src/library/index.js";
import { Model } from "../../../src/native/index.js";
import type { Quants } from "../../../src/quants/result.js";
import { measurementsIn } from "../../../src/studies/text/measurements.js";
import { tapline } from "../../cli/run.js";
import { randomMatrix, tensor, writeTinyModel } from "../../inference/support/tiny-models.js";
import { program } from "../../support/program.js";
import { TestRandom } from "../../support/random.js";
import { temporaryFolder } from "../../support/temporary.js";
import { until } from "../../support/until.js";

const hidden = 32;
const folder = temporaryFolder("quants");
const at = (name: string) => join(folder, name);
const env = { TAPLINE_HOME: at("home") };
const [reference, rounded, copy] = [at("reference.gguf"), at("rounded.gguf"), at("copy.gguf")];
const texts = ["The capital of France", "is Paris, of course", "and that of Spain is Madrid"];

/** Two blocks; the form has one matrix rounded to sixteenths. */
async function writeModels(): Promise<void> {
  await writeTinyModel(reference);
  copyFileSync(reference, copy);
  const name = "blk.0.ffn_down.weight";
  const numbers = randomMatrix(name, hidden * hidden).map((value) => Math.round(value * 16) / 16);
  await writeTinyModel(rounded, { tensors: [tensor(name, [hidden, hidden], numbers)] });
}

/** Features are the signs of the hidden dimensions: i is active where h_i > 0, hidden + i where h_i < 0. */
async function saveArtefacts(): Promise<void> {
  const encoder = new Float32Array(2 * hidden * hidden);
  const decoder = new Float32Array(2 * hidden * hidden);
  for (let i = 0; i < hidden; i++) {
    encoder[i * 2 * hidden + i] = decoder[i * hidden + i] = 1;
    encoder[i * 2 * hidden + hidden + i] = decoder[(hidden + i) * hidden + i] = -1;
  }
  const place = at("dictionary");
  mkdirSync(place);
  const zeros = (length: number) => ({ shape: [length], data: new Float32Array(length) });
  const tensors = {
    W_enc: { shape: [hidden, 2 * hidden], data: encoder },
    W_dec: { shape: [2 * hidden, hidden], data: decoder },
    ...{ b_enc: zeros(2 * hidden), b_dec: zeros(hidden) },
  };
  writeFileSync(join(place, "sae_weights.safetensors"), encodeSafetensors(tensors));
  const metadata = { hook_name: "blocks.1.hook_resid_post" };
  writeFileSync(join(place, "cfg.json"), JSON.stringify({ architecture: "standard", metadata }));
  for (const name of ["signs", "signs-again"]) await new Dictionaries(env.TAPLINE_HOME).add(name, place);
  const direction = new TestRandom(4).normals(hidden);
  const identity = { id: "r", fingerprint: await modelFingerprint(reference), nEmbd: hidden, nLayer: 2 };
  const ones = new Float32Array(hidden).fill(1);
  const probe = { weight: direction, mean: new Float32Array(hidden), std: ones, bias: 0 };
  await new Probes(env.TAPLINE_HOME).put("judge", 1, probe, identity, { note: "" });
  await new Vectors(env.TAPLINE_HOME).put("leads", new Map([[1, direction]]), identity, { note: "" });
}

test.before(async () => {
  await writeModels();
  await saveArtefacts();
  writeFileSync(at("texts.txt"), texts.join("\n"));
  const examples = ["good day", "a bad one", "rather good", "it was bad"].map((text) =>
    JSON.stringify({ text, label: text.includes("good") ? 1 : 0 }),
  );
  writeFileSync(at("examples.jsonl"), examples.join("\n"));
});

const words = (out: string, ...forms: string[]) => [
  ...["quants", reference, ...forms, "--texts", at("texts.txt"), "--out", at(out), "--quiet"],
  ...["--rounds", "2", "--prompt-tokens", "8", "--generated-tokens", "4"],
];
const read = (out: string) => JSON.parse(readFileSync(join(at(out), "quants.json"), "utf8")) as Quants;

const near = (found: number, wanted: number, what: string, bound = 1e-5) =>
  assert.ok(Math.abs(found - wanted) <= bound, `${what}: ${found} instead of ${wanted}`);

interface Reading {
  tokens: Int32Array;
  /** Log-probabilities after each token, from a pass of its own for each. */
  rows: number[][];
  /** Block 1's outputs. */
  states: Float32Array;
}

/** Every text token by token: none of the command's own passes. */
async function readModel(path: string): Promise<Reading[]> {
  const model = await Model.open(path);
  const context = await model.createContext({ threads: 1 });
  const found: Reading[] = [];
  for (const text of texts) {
    const tokens = await model.tokenize(text);
    const rows: number[][] = [];
    const states: number[] = [];
    await context.reset();
    for (const token of tokens) {
      const { logits, layers } = await context.advance({
        ...{ tokens: Int32Array.of(token), layers: [1], logits: true },
      });
      const whole = Math.log(logits!.reduce((sum, value) => sum + Math.exp(value), 0));
      rows.push(Array.from(logits!, (value) => value - whole));
      states.push(...layers[0]!.states!.data);
    }
    found.push({ tokens, rows, states: Float32Array.from(states) });
  }
  await model.close();
  return found;
}

test("a changed form's figures are those of passes token by token", async () => {
  const { code, stderr } = await tapline(
    [
      ...words("one", rounded, "--dictionary", "signs"),
      ...["--examples", at("examples.jsonl"), "--probe", "judge", "--vector", "leads"],
    ],
    { env },
  );
  assert.is(code, 0, stderr);
  const quants = read("one");
  const [form] = quants.forms as [Quants["forms"][0]];
  const [one, two] = [await readModel(reference), await readModel(rounded)];
  let [count, kl, same] = [0, 0, 0];
  const loss = [0, 0];
  one.forEach(({ tokens, rows }, text) => {
    const other = two[text]!.rows;
    for (let at = 0; at + 1 < tokens.length; at++) {
      const [p, q] = [rows[at]!, other[at]!];
      count++;
      kl += p.reduce((sum, value, i) => sum + Math.exp(value) * (value - q[i]!), 0);
      same += p.indexOf(Math.max(...p)) === q.indexOf(Math.max(...q)) ? 1 : 0;
      loss[0]! -= p[tokens[at + 1]!]!;
      loss[1]! -= q[tokens[at + 1]!]!;
    }
  });
  assert.is(quants.settings.tokens, count);
  assert.ok(kl / count > 1e-5, `the form differs: ${kl / count}`);
  near(form.divergence.value, kl / count, "KL", 1e-6);
  near(form.agreement.value, same / count, "agreement");
  near(form.perplexity.value, Math.exp(loss[1]! / count), "perplexity", 1e-2);
  near(form.perplexity_ratio.value, Math.exp((loss[1]! - loss[0]!) / count), "ratio");
  near(quants.reference.perplexity.value, Math.exp(loss[0]! / count), "reference", 1e-2);
  assert.ok(form.divergence.low <= form.divergence.value && form.divergence.value <= form.divergence.high);
  // Drift at block 1.
  let [apart, tokens] = [0, 0];
  const active = Array.from({ length: 2 * hidden }, () => ({ reference: 0, both: 0 }));
  one.forEach(({ states }, text) => {
    for (let start = 0; start < states.length; start += hidden, tokens++) {
      const [a, b] = [states, two[text]!.states].map((rows) => [...rows.slice(start, start + hidden)]) as [
        number[],
        number[],
      ];
      apart += Math.hypot(...a.map((value, i) => value - b[i]!)) / Math.hypot(...a);
      a.forEach((value, i) => {
        const feature = active[value > 0 ? i : hidden + i]!;
        feature.reference++;
        feature.both += value > 0 === b[i]! > 0 ? 1 : 0;
      });
    }
  });
  near(form.drift[1]!.relative_difference.value, apart / tokens, "drift");
  const recalls = active.filter((each) => each.reference >= 3).map((each) => each.both / each.reference);
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  assert.is(form.survival!.features, recalls.length);
  near(form.survival!.recall.value, mean(recalls), "recall");
  near(form.survival!.surviving.value, mean(recalls.map((recall) => Number(recall >= 0.5))), "surviving");
  assert.ok(form.survival!.recall.value < 1, "a rounded matrix turns some signs");
  assert.equal([form.probe!.layer, form.vector!.layer], [1, 1]);
  assert.ok(form.probe!.reference.value >= 0 && form.vector!.form.value <= 1);
  assert.ok(form.speed.prompt.value > 0 && form.memory > form.bytes / 2);
});

test("graphs and rounded forms: equal circuits in a copy, others in a rounded one", async () => {
  writeFileSync(at("prompts.txt"), texts.slice(0, 2).join("\n"));
  const asked = ["--prompts", at("prompts.txt"), "--dictionary", "signs", "--control", "signs-again"];
  const all = [...words("circuits", copy), "--round", "2,8", ...asked];
  const { code, stderr } = await tapline(all, { env });
  assert.is(code, 0, stderr);
  const { forms, reference: file, settings } = read("circuits");
  const [same, two, eight] = forms as [Quants["forms"][0], Quants["forms"][0], Quants["forms"][0]];
  assert.equal([settings.prompts, same.name, two.name, eight.name], [2, "F32", "RTN2", "RTN8"]);
  assert.equal(
    same.circuits!.prompts.map(({ prompt, overlap, rank }) => [prompt, overlap, rank]),
    texts.slice(0, 2).map((prompt) => [prompt, 1, 1]),
  );
  assert.ok(same.circuits!.nodes[0] > 0, "there are nodes to overlap");
  assert.ok(two.circuits!.overlap!.value < eight.circuits!.overlap!.value);
  assert.ok(two.circuits!.overlap!.low <= two.circuits!.overlap!.value);
  assert.ok(two.divergence.value > eight.divergence.value && eight.divergence.value > 0);
  assert.ok(two.bytes < eight.bytes && eight.bytes < file.bytes / 2);
  // The target is the most probable token that a text names; some of this vocabulary are single bytes.
  const [{ tokens, rows }] = (await readModel(reference)) as [Reading];
  const model = await Model.open(reference);
  const last = rows[tokens.length - 1]!;
  const named: string[] = [];
  for (const token of [...last.keys()].sort((a, b) => last[b]! - last[a]!)) {
    const [piece] = await model.pieces(Int32Array.of(token));
    const back = await model.tokenize(piece!, { special: false });
    if (back.length === 1 && back[0] === token) named.push(piece!);
  }
  await model.close();
  assert.is(same.circuits!.prompts[0]!.target, named[0]);
  // The control has the same features, so that it survives equally.
  const { surviving, correlated, control } = two.survival!;
  assert.equal([control!.surviving, control!.correlated], [surviving, correlated]);
  assert.is(control!.dictionary, "signs-again");
  const page = readFileSync(join(at("circuits"), "quants.html"), "utf8");
  for (const id of ["circuits-by-bytes", "circuits-by-prompt", "correlated-by-bytes"])
    assert.match(page, new RegExp(`<figure id="${id}">[^]*?<svg`), id);
  assert.match(readFileSync(join(at("circuits"), "quants.md"), "utf8"), /\| Circuit overlap \|/);
  const study = JSON.parse(readFileSync(join(at("circuits"), "study.json"), "utf8")) as StudyPackage;
  assert.match(JSON.stringify(study), /circuits/);
  // Finished graphs are not made again.
  const work = join(at("circuits"), "work");
  const graphs = () =>
    readdirSync(work, { recursive: true, encoding: "utf8" })
      .filter((name) => /(graph-\d+\.json|targets\.jsonl)$/.test(name))
      .map((name) => [name, statSync(join(work, name)).mtimeMs]);
  const before = graphs();
  assert.is(before.length, 4 * 2 + 1);
  const again = await tapline(all, { env });
  assert.is(again.code, 0, again.stderr);
  assert.equal(graphs(), before);
  assert.equal(
    read("circuits").forms.map(({ circuits }) => circuits),
    forms.map(({ circuits }) => circuits),
  );
});

test("writes a page with pictures, a table, and a study package", async () => {
  const page = readFileSync(join(at("one"), "quants.html"), "utf8");
  for (const id of [
    "divergence-by-bytes",
    "changes-by-bytes",
    "drift-by-layer",
    "features-by-bytes",
    "features-died",
  ])
    assert.match(page, new RegExp(`<figure id="${id}">[^]*?<svg`), id);
  assert.not.match(page, /<script/);
  const table = readFileSync(join(at("one"), "quants.md"), "utf8").split("\n");
  const [head, rule, ...rows] = table.slice(0, 4).map((line) => line.split(" | ").length);
  assert.equal([rule, ...rows], [head, head, head]);
  assert.match(table[3]!, /^\| F32 \| /);
  const study = validate(StudyPackage, JSON.parse(readFileSync(join(at("one"), "study.json"), "utf8")));
  assert.match(study.title, /reference\.gguf$/);
  assert.ok(study.entries.some(({ title }) => /^drift: /.test(title)));
  const { reference: model, forms } = read("one");
  const found = measurementsIn(Buffer.from(JSON.stringify(study)));
  assert.equal([found?.model, found?.result], [model.fingerprint, read("one").sha256]);
  assert.equal(
    found?.forms.map(({ form, survival }) => [form, survival?.value]),
    forms.map(({ fingerprint, survival }) => [fingerprint, survival?.surviving.value]),
  );
  assert.not.match(JSON.stringify([page, study]), new RegExp(folder), "no path of this machine");
});

test("an identical file and Q8_0 made here, added to the folder", async () => {
  const before = readFileSync(linesOf("one"), "utf8");
  const extra = ["--dictionary", "signs", "--examples", at("examples.jsonl"), "--probe", "judge"];
  const all = [...words("one", rounded, copy), ...extra, "--vector", "leads", "--make", "Q8_0"];
  const { code, stderr } = await tapline(all, { env });
  assert.is(code, 0, stderr);
  assert.is(readFileSync(linesOf("one"), "utf8"), before, "what was measured is not measured again");
  const { forms } = read("one");
  assert.equal(
    forms.map(({ name }) => name),
    ["F32 (rounded.gguf)", "F32 (copy.gguf)", "Q8_0"],
  );
  const [, same, eight] = forms as [Quants["forms"][0], Quants["forms"][0], Quants["forms"][0]];
  assert.equal([same.divergence.value, same.agreement.value, same.perplexity_ratio.value], [0, 1, 1]);
  assert.equal([same.survival!.surviving.value, same.survival!.died.value], [1, 0]);
  assert.is(same.drift[1]!.relative_difference.value, 0);
  assert.ok(eight.divergence.value > 0);
  // Rows of 32 are Q8_0 at 8.5 bits; shorter ones become F16, and norms stay F32.
  const bitsOf: Record<string, number> = { Q8_0: 8.5, F16: 16, F32: 32 };
  const all8 = eight.types.reduce((sum, { weights }) => sum + weights, 0);
  const bits = eight.types.reduce((sum, { type, weights }) => sum + weights * bitsOf[type]!, 0);
  near(eight.bits_per_weight, bits / all8, "bits per weight", 0.01);
  assert.not.ok(readdirSync(join(at("one"), "work")).includes("forms"), "forms made here are removed");
});

/** The lines of the form with a rounded matrix, or of the only form. */
function linesOf(out: string): string {
  const work = join(at(out), "work");
  const parts = readdirSync(work).filter((name) => /^[0-9a-f]{16}$/.test(name));
  const found = parts.map((name) => join(work, name, "texts.jsonl")).find((path) => readable(path) !== "");
  return found ?? join(work, "none");
}

function readable(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

test("a run continues after kill -9, with the same figures", async () => {
  const many = Array.from({ length: 40 }, (_, text) => `${texts[text % 3]} and number ${text}`);
  writeFileSync(at("many.txt"), many.join("\n"));
  const all = [...words("killed", rounded), "--texts", at("many.txt")];
  // Nobody removes what a killed program leaves in the folder for temporary files.
  mkdirSync(at("temporary"));
  const child = spawn(process.execPath, [...program, ...all], {
    env: { ...process.env, ...env, TMPDIR: at("temporary") },
    stdio: "ignore",
  });
  await until(
    () => readable(join(at("killed"), "work", "request.json")) !== "" && linesOfKilled() > 3,
    "some lines",
  );
  child.kill("SIGSTOP");
  const second = await tapline(all, { env });
  assert.match(
    second.stderr,
    new RegExp(`killed is in use by process ${child.pid}; wait, or use another --out`),
  );
  child.kill("SIGKILL");
  await once(child, "close");
  const lines = linesOf("killed");
  // A line that the kill tore apart.
  appendFileSync(lines, '{"text":');
  const before = readFileSync(lines, "utf8").split("\n").slice(0, 3);
  const { code, stderr } = await tapline(all, { env });
  assert.is(code, 0, stderr);
  const after = readFileSync(lines, "utf8").trim().split("\n");
  assert.equal(after.slice(0, 3), before);
  assert.equal(
    after.map((line) => (JSON.parse(line) as { text: number }).text),
    many.map((_, text) => text),
  );
  const whole = await tapline([...words("whole", rounded), "--texts", at("many.txt")], { env });
  assert.is(whole.code, 0, whole.stderr);
  const figures = ({ forms: [form] }: Quants) => [
    form!.divergence,
    form!.agreement,
    form!.perplexity,
    form!.drift,
  ];
  assert.equal(figures(read("killed")), figures(read("whole")));
});

const linesOfKilled = () => readable(linesOf("killed")).split("\n").length;

test("refuses a folder of other settings, different vocabularies, and no forms", async () => {
  const other = await tapline([...words("one", rounded), "--seed", "1"], { env });
  assert.match(other.stderr, /has parts of a run with a different model or settings; use another --out/);
  const none = await tapline(words("none"), { env });
  assert.is(none.code, 2);
  assert.match(none.stderr, /Name at least one form of the model, or make one with --make or --round\./);
  const demo = await tapline(words("demo", "demo"), { env });
  assert.is(demo.code, 1);
  assert.match(demo.stderr, /The models tokenize text 1 differently \(different vocabularies\)\./);
  const bare = await tapline([...words("bare", rounded), "--probe", "judge"], { env });
  assert.match(bare.stderr, /--probe requires --examples with labels\./);
});

test.run();
