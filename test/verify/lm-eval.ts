/**
 * Runs lm-evaluation-harness with its defaults against a model and its profiles: `npm run verify:lm-eval`.
 * Its environment is prepared in the cache on first use (test/support/real).
 */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer, type TestServer } from "../inference/support/serving.js";
import { runProgram } from "../support/real/cache.js";
import { environment } from "../support/real/environments.js";
import { holds, printFigure } from "./figures.js";
import type { Figure } from "./numerics/check.js";

const tasks = fileURLToPath(new URL("./lm-eval/", import.meta.url));
const known = {
  France: "Paris",
  Spain: "Madrid",
  Italy: "Rome",
  Japan: "Tokyo",
  Norway: "Oslo",
  Sweden: "Stockholm",
};
const invented = ["Brovia", "Quenland", "Tarsovia", "Melgria", "Zondia", "Plavenia", "Urdania", "Fenroy"];
const capital = (country: string) => `The capital of ${country} is`;
const interventions = [{ kind: "steer", vector: "unknown", layer: 5, strength: 2, strength_unit: "vector" }];

interface Sample {
  doc_id: number;
  /** Of a loglikelihood: its value and whether it is the greedy text, as text; of a generation: the answer. */
  filtered_resps: [string, string][] | string[];
  arguments: Record<string, { arg_0: string; arg_1: string | object }>;
}

async function main(): Promise<void> {
  const python = await environment("lm-eval");
  const folder = await mkdtemp(join(tmpdir(), "tapline-lm-eval-"));
  const server = await startServer({ home: join(folder, "home"), parallel: 4 });
  try {
    await prepare(server, folder);
    const run = (profile: string | undefined, kind: Kind) => evaluate(python, server, folder, profile, kind);
    const plain = await run(undefined, "completions");
    const zero = await run("zero", "completions");
    const edited = await run("unknown", "completions");
    const chats = {
      plain: await run(undefined, "chat-completions"),
      zero: await run("zero", "chat-completions"),
      edited: await run("unknown", "chat-completions"),
    };
    const figures: Figure[] = [
      { what: "loglikelihoods compared", value: plain.length * 3, bound: 18, atLeast: true },
      { what: "samples that strength zero changes", value: differing(plain, zero), bound: 0 },
      {
        what: "samples that the edit changes",
        value: differing(plain, edited),
        bound: plain.length,
        atLeast: true,
      },
      { what: "loglikelihood, base against forward", value: await worst(server, plain, []), bound: 1e-3 },
      {
        what: "loglikelihood, edited against forward",
        value: await worst(server, edited, interventions),
        bound: 1e-3,
      },
      { what: "chats that strength zero changes", value: differing(chats.plain, chats.zero), bound: 0 },
      {
        what: "chats that the edit changes",
        value: differing(chats.plain, chats.edited),
        bound: 1,
        atLeast: true,
      },
    ];
    figures.forEach(printFigure);
    const failed = figures.filter((figure) => !holds(figure)).length;
    console.log(failed === 0 ? "\nAll hold." : `\n${failed} failed.`);
    if (failed > 0) process.exitCode = 1;
  } finally {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** The direction, the profiles and the tasks. */
async function prepare(server: TestServer, folder: string): Promise<void> {
  const made = await server.post("/lab/vectors", {
    ...{ name: "unknown", layers: [5] },
    positive: invented.map(capital),
    negative: Object.keys(known).map(capital),
  });
  if (made.status !== 201) throw new Error(JSON.stringify(made.body));
  for (const [name, strength] of [
    ["unknown", 2],
    ["zero", 0],
  ] as const) {
    const tapline = { interventions: interventions.map((one) => ({ ...one, strength })) };
    const { status, body } = await server.put(`/lab/profiles/${name}`, { tapline });
    if (status !== 200) throw new Error(JSON.stringify(body));
  }
  const cities = Object.values(known);
  const lines = (rows: object[]) => `${rows.map((row) => JSON.stringify(row)).join("\n")}\n`;
  const choices = Object.entries(known).map(([country, city], index) => ({
    text: capital(country),
    choices: [city, cities[(index + 1) % cities.length], "unknown"],
    answer: 0,
  }));
  const answers = Object.entries(known).map(([country, answer]) => ({
    question: `What is the capital of ${country}?`,
    answer,
  }));
  await mkdir(join(folder, "tasks"), { recursive: true });
  await writeFile(join(folder, "choices.jsonl"), lines(choices));
  await writeFile(join(folder, "answers.jsonl"), lines(answers));
  for (const name of ["choices.yaml", "answers.yaml"]) {
    const text = await readFile(join(tasks, name), "utf8");
    await writeFile(join(folder, "tasks", name), text.replaceAll("DATA", folder));
  }
}

type Kind = "completions" | "chat-completions";

/** The samples of a run, in order. */
async function evaluate(
  python: string,
  server: TestServer,
  folder: string,
  profile: string | undefined,
  kind: Kind,
): Promise<Sample[]> {
  const model = `tapline-demo${profile === undefined ? "" : `@${profile}`}`;
  const path = kind === "completions" ? "/v1/completions" : "/v1/chat/completions";
  const out = join(folder, `${kind}-${profile ?? "plain"}`);
  const task = kind === "completions" ? "tapline_choices" : "tapline_answers";
  await runProgram(
    python,
    [
      ...[
        "-m",
        "lm_eval",
        "run",
        "--model",
        `local-${kind}`,
        "--tasks",
        task,
        "--include_path",
        join(folder, "tasks"),
      ],
      ...["--model_args", `model=${model},base_url=${server.url}${path},num_concurrent=2`],
      ...[
        "--output_path",
        out,
        "--log_samples",
        ...(kind === "completions" ? [] : ["--apply_chat_template"]),
      ],
    ],
    { HF_HUB_OFFLINE: "1", HF_DATASETS_OFFLINE: "1", HF_HOME: join(folder, "hf"), OPENAI_API_KEY: "none" },
  );
  const found = (await readdir(out, { recursive: true })).filter((name) => /samples_.*\.jsonl$/.test(name));
  if (found.length !== 1) throw new Error(`Expected one file of samples, got ${found.join(", ")}.`);
  const text = await readFile(join(out, found[0] as string), "utf8");
  const samples = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Sample);
  return samples.sort((a, b) => a.doc_id - b.doc_id);
}

function differing(one: Sample[], other: Sample[]): number {
  if (one.length !== other.length) throw new Error(`${one.length} and ${other.length} samples.`);
  const text = ({ filtered_resps }: Sample) => JSON.stringify(filtered_resps);
  return one.filter((sample, index) => text(sample) !== text(other[index] as Sample)).length;
}

/** The greatest distance of a loglikelihood from the one in the logits of a forward call with the same edits. */
async function worst(server: TestServer, samples: Sample[], edits: object[]): Promise<number> {
  let most = 0;
  for (const { filtered_resps: answers, arguments: asked } of samples) {
    for (const [index, { arg_0: context, arg_1: continuation }] of Object.values(asked).entries()) {
      const expected = await fromLogits(server, context, String(continuation), edits);
      most = Math.max(most, Math.abs(Number((answers as [string, string][])[index]?.[0]) - expected));
    }
  }
  return most;
}

async function fromLogits(
  server: TestServer,
  context: string,
  rest: string,
  edits: object[],
): Promise<number> {
  const { bytes } = await server.post("/lab/forward", {
    sequences: [context, context + rest],
    edits,
    logits: "all",
    add_special_tokens: false, // as the harness does
  });
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.subarray(8, 8 + length).toString());
  const part = (name: string) => {
    const [from, to] = header[name].data_offsets;
    const data = bytes.subarray(8 + length + from, 8 + length + to);
    return data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
  };
  const [start, whole] = new Int32Array(part("lengths")) as unknown as [number, number];
  const tokens = new Int32Array(part("tokens"));
  const logits = new Float32Array(part("logits"));
  const width = logits.length / tokens.length;
  let sum = 0;
  for (let at = start; at < whole; at++) {
    const row = start + at - 1;
    const values = logits.subarray(row * width, (row + 1) * width);
    const top = values.reduce((a, b) => Math.max(a, b));
    const total = values.reduce((so, value) => so + Math.exp(value - top), 0);
    sum += (values[tokens[start + at] as number] as number) - top - Math.log(total);
  }
  return sum;
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
