import { type ChildProcess, spawn } from "node:child_process";
import { openSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { buildTools } from "../../../scripts/build/tools.js";
import { startServer, type TestServer } from "../../inference/support/serving.js";
import { freePort } from "../../stress/router/backends.js";
import { send } from "../../support/request.js";
import type { Figure, NumericCheck } from "./check.js";

const strength = 1.5;
const layers = [4, 5];
const question = (country: string) => `The capital of ${country} is`;
const invented = ["Brovia", "Quenland", "Tarsovia", "Melgria", "Zondia", "Plavenia", "Urdania", "Fenroy"];
const real = ["France", "Germany", "Spain", "Italy", "Portugal", "Poland", "Norway", "Japan"];
const prompts = [
  ...["Sweden", "Austria", "Greece", "Drovenia"].map(question),
  "I think the film was",
  "one two three",
];

/** A generated token, and the log-probabilities of the five most probable ones in its place. */
interface Step {
  token: string;
  top: Map<string, number>;
}
interface Answer {
  text: string;
  steps: Step[];
}

const common = { temperature: 0, cache_prompt: false };

/**
 * The same direction in llama.cpp's own server (`--control-vector`) and in a live request: greedy text and
 * log-probabilities of the same prompts.
 */
async function run(_python: string, folder: string): Promise<Figure[]> {
  const { "llama-server": tool } = (await buildTools(["llama-server"])) as Record<string, string>;
  const server = await startServer({ parallel: 1, home: join(folder, "home") });
  try {
    const texts = { positive: invented.map(question), negative: real.map(question) };
    await server.post("/lab/vectors", { name: "unknown", ...texts, layers });
    const file = join(folder, "unknown.gguf");
    const { bytes } = await server.get("/lab/vectors/unknown?format=gguf");
    await writeFile(file, bytes);

    const ours = await answers(server, (layer) => layers.includes(layer));
    const plain = await answers(server, () => false);
    const theirs = await withControlVector(
      tool as string,
      server.service.resolved.path,
      `${file}:${strength}`,
      folder,
    );

    // The same numbers one block later and one earlier, to see that the comparison would notice.
    const { vectors, model } = server.service.library;
    const shifted: Answer[][] = [];
    for (const step of [-1, 1]) {
      const moved = new Map<number, Float32Array>();
      for (const layer of layers)
        moved.set(layer + step, (await vectors.layer("unknown", layer, model)).vector);
      await vectors.put("moved", moved, model, { note: "" });
      shifted.push(await answers(server, (layer) => moved.has(layer), "moved"));
    }
    // llama.cpp leaves out a file that holds direction.0, says so in its log, and serves without it.
    const zero = join(folder, "zero.gguf");
    const renamed = Buffer.from(bytes);
    renamed.write("direction.0", bytes.indexOf(`direction.${layers[0]}`), "latin1");
    await writeFile(zero, renamed);
    const path = server.service.resolved.path;
    const unchanged = await withControlVector(tool as string, path, `${zero}:${strength}`, folder);

    const off = Math.min(...shifted.map((answer) => distance(theirs, answer)));
    return [
      { what: "prompts whose greedy text differs", value: differing(ours, theirs), bound: 0 },
      { what: "log-probabilities: greatest difference", value: distance(ours, theirs), bound: 0.02 },
      {
        what: "steps compared",
        value: theirs.flatMap(({ steps }) => steps).length,
        bound: 30,
        atLeast: true,
      },
      { what: "steering: texts that it changes", value: differing(plain, theirs), bound: 3, atLeast: true },
      { what: "one block off: greatest difference, at least", value: off, bound: 0.2, atLeast: true },
      { what: "direction.0: difference to no vector at all", value: distance(plain, unchanged), bound: 0.02 },
    ];
  } finally {
    await server.close();
  }
}

async function answers(
  server: TestServer,
  wears: (layer: number) => boolean,
  vector = "unknown",
): Promise<Answer[]> {
  const own = Array.from({ length: server.service.engine.info.nLayer }, (_, layer) => layer).filter(wears);
  const tapline = {
    interventions: [
      { kind: "steer", vector, layers: own, strength, strength_unit: "vector", positions: "all" },
    ],
  };
  return Promise.all(
    prompts.map(async (prompt) => {
      const request = { ...common, prompt, max_tokens: 12, logprobs: 5, ...(own.length > 0 && { tapline }) };
      const { status, body } = await server.post("/v1/completions", request);
      if (status !== 200) throw new Error(`${prompt}: ${JSON.stringify(body)}`);
      const [{ text, logprobs }] = body.choices;
      const steps = logprobs.tokens.map((token: string, place: number) => ({
        token,
        top: new Map(Object.entries(logprobs.top_logprobs[place])),
      }));
      return { text, steps };
    }),
  );
}

/** What llama.cpp's own server answers, in its own form. */
async function theirAnswers(url: string): Promise<Answer[]> {
  const found: Answer[] = [];
  for (const prompt of prompts) {
    const request = { ...common, prompt, n_predict: 12, n_probs: 5 };
    const { status, body } = await send(`${url}/completion`, "POST", request, {
      "Content-Type": "application/json",
    });
    if (status !== 200) throw new Error(`${prompt}: ${status} ${JSON.stringify(body)}`);
    const steps = body.completion_probabilities.map(({ token, top_logprobs: top }: Entry) => ({
      token,
      top: new Map(top.map((entry) => [entry.token, entry.logprob])),
    }));
    found.push({ text: body.content, steps });
  }
  return found;
}

interface Entry {
  token: string;
  logprob: number;
  top_logprobs: Entry[];
}

async function withControlVector(
  tool: string,
  model: string,
  vector: string,
  folder: string,
): Promise<Answer[]> {
  const port = await freePort();
  const { child, log } = launch(tool, model, port, ["--control-vector-scaled", vector], folder);
  try {
    const url = `http://127.0.0.1:${port}`;
    await untilServing(child, url, log);
    return await theirAnswers(url);
  } finally {
    child.kill("SIGKILL");
  }
}

function launch(tool: string, model: string, port: number, words: string[], folder: string) {
  const log = join(folder, `llama-server-${port}.log`);
  const out = openSync(log, "w");
  const child = spawn(
    tool,
    [
      "-m",
      model,
      "--port",
      String(port),
      "-np",
      "1",
      "-c",
      "1024",
      "-t",
      "1",
      "-ngl",
      "0",
      "-fit",
      "off",
      ...words,
    ],
    { stdio: ["ignore", out, out] },
  );
  return { child, log };
}

async function untilServing(child: ChildProcess, url: string, log: string): Promise<void> {
  // Two minutes: longer than a server of three megabytes takes on any machine.
  for (let tries = 0; tries < 2400 && child.exitCode === null && child.signalCode === null; tries++) {
    const { status } = await send(`${url}/health`, "GET").catch(() => ({ status: 0 }));
    if (status === 200) return;
    await sleep(50);
  }
  throw new Error(`llama-server does not serve: ${(await readFile(log, "utf8")).slice(-500)}`);
}

function differing(some: Answer[], others: Answer[]): number {
  return some.filter(({ text }, index) => text !== others[index]?.text).length;
}

/** The greatest difference between log-probabilities of a token in the same place, as far as both texts are the same. */
function distance(some: Answer[], others: Answer[]): number {
  let worst = 0;
  for (const [index, { steps }] of some.entries()) {
    for (const [place, { token, top }] of steps.entries()) {
      const other = others[index]?.steps[place];
      if (other === undefined) break;
      for (const [each, logprob] of top) {
        // One that is among the five on one side alone is compared with the last of the other's.
        const theirs = other.top.get(each) ?? Math.min(logprob, ...other.top.values());
        worst = Math.max(worst, Math.abs(logprob - theirs));
      }
      if (token !== other.token) break;
    }
  }
  return worst;
}

export default {
  title: "A direction as llama.cpp's control vector and in a live request",
  modules: [],
  run,
} satisfies NumericCheck;
