/**
 * The change of a layer that the workbench begins with, on the embedded model and on SmolLM2-135M-Instruct in F16, over ten
 * questions: `npm run verify:first-change`. It has to change what is said to most of them, and most of what is said then
 * has to be language: to the unchanged model at most twice as perplexing as its own answer.
 *   --all           every change that was considered, at every layer: how the first one was chosen
 *   --only PATTERN  those whose words match, as "ablate 0.5 of prompt at layer 3 of demo"
 *   --texts         what was said, too
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ServingModel } from "../../src/client/index.js";
import type { LiveIntervention } from "../../src/contracts/live.js";
import { firstChange } from "../../src/workbench/page/first-change.js";
import { startServer, type TestServer } from "../inference/support/serving.js";
import { smolLm2Model } from "../support/real/models.js";

const questions = [
  "The capital of France is",
  "What is the capital of Japan?",
  "Which continent is Kenya in?",
  "What language do people speak in Brazil?",
  "Which country is Milan in?",
  "What is the opposite of hot?",
  "What comes after Monday?",
  "Is this review positive or negative? The film was wonderful.",
  "What is the capital of Atlantis?",
  "Hello!",
];
const mostTokens = 32;
const mostPerplexing = 2;

const considered = {
  ablate: [0.5, 0.7, 0.8, 0.9],
  scale: [2, 5],
} as const;

interface Said {
  /** Without thoughts. */
  text: string;
  /** To the unchanged model, thoughts among it. */
  perplexity: number;
}

/** A served model, and what it says to the questions by itself. */
class Asked {
  readonly #server: TestServer;
  readonly #own: Said[] = [];

  constructor(server: TestServer) {
    this.#server = server;
  }

  async askUnchanged(): Promise<void> {
    for (const question of questions) this.#own.push(await this.#ask(question, []));
  }

  /** How many of the answers a change alters, and how many of those are language. */
  async measure(change: LiveIntervention, printed: boolean): Promise<{ others: number; language: number }> {
    const said = await Promise.all(questions.map((question) => this.#ask(question, [change])));
    let [others, language] = [0, 0];
    for (const [at, { text, perplexity }] of said.entries()) {
      const own = this.#own[at] as Said;
      const ratio = perplexity / own.perplexity;
      if (printed) {
        const words = [own.text, text].map((one) => JSON.stringify(one)).join(" -> ");
        console.log(`    ${words}, ${ratio.toFixed(1)} times as perplexing`);
      }
      if (text === own.text) continue;
      others += 1;
      if (ratio <= mostPerplexing) language += 1;
    }
    return { others, language };
  }

  async #ask(question: string, interventions: LiveIntervention[]): Promise<Said> {
    const messages = [{ role: "user" as const, content: question }];
    const request = {
      ...{ max_tokens: mostTokens, temperature: 0 },
      tapline: { interventions, watch: { layers: [0], norms: true } },
    };
    const [answer] = await new ServingModel(this.#server.url).answers(messages, { request });
    if (answer === undefined) throw new Error(`There is no answer to ${question}`);
    const ids = (answer.tapline?.tokens ?? []).flatMap(({ token_id }) => token_id ?? []);
    return { text: answer.text, perplexity: await this.#perplexity(messages, ids) };
  }

  /** Of an answer's tokens after their question, by the model as it is. */
  async #perplexity(messages: object[], answer: number[]): Promise<number> {
    const { prompt } = await this.#post<{ prompt: string }>("/apply-template", { messages });
    const asked = { content: prompt, add_special: true, parse_special: true };
    const { tokens } = await this.#post<{ tokens: number[] }>("/tokenize", asked);
    const body = { prompt: [...tokens, ...answer], echo: true, logprobs: 0, max_tokens: 0 };
    const { choices } = await this.#post<Echoed>("/v1/completions", body);
    const told = (choices[0]?.logprobs.token_logprobs ?? []).slice(tokens.length) as number[];
    if (answer.length === 0 || told.length !== answer.length) {
      throw new Error(`Of an answer of ${answer.length} tokens ${told.length} are scored.`);
    }
    return Math.exp(-told.reduce((sum, one) => sum + one, 0) / told.length);
  }

  async #post<T>(path: string, body: object): Promise<T> {
    const answer = await this.#server.post(path, body);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.bytes.toString()}`);
    return answer.body as T;
  }
}

interface Echoed {
  choices: { logprobs: { token_logprobs: (number | null)[] } }[];
}

function everyChange(layers: number): LiveIntervention[] {
  return (["prompt", "all"] as const).flatMap((positions) =>
    Array.from({ length: layers }, (_, layer) => layer).flatMap((layer) =>
      (["ablate", "scale"] as const).flatMap((kind) =>
        considered[kind].map((strength): LiveIntervention => ({ kind, layer, strength, positions })),
      ),
    ),
  );
}

const { values } = parseArgs({
  options: {
    all: { type: "boolean", default: false },
    only: { type: "string", default: "" },
    texts: { type: "boolean", default: false },
  },
});

/** @returns whether each change does what a first one has to */
async function check(name: string, server: TestServer): Promise<boolean> {
  const { nLayer, nEmbd } = server.service.engine.info;
  const asked = new Asked(server);
  await asked.askUnchanged();
  let holds = true;
  for (const change of values.all ? everyChange(nLayer) : [firstChange(nEmbd)]) {
    const words = `${change.kind} ${change.strength} of ${change.positions} at layer ${change.layer} of ${name}`;
    if (!new RegExp(values.only).test(words)) continue;
    const { others, language } = await asked.measure(change, values.texts);
    console.log(`${words}: ${others} of ${questions.length} answers differ, ${language} of them language`);
    holds &&= others > questions.length / 2 && language > others / 2;
  }
  return holds;
}

const home = mkdtempSync(join(tmpdir(), "tapline-first-change-"));
const models = { demo: "demo", "SmolLM2-135M-Instruct": (await smolLm2Model()).f16 };
let holds = true;
try {
  for (const [name, model] of Object.entries(models)) {
    const server = await startServer({ home, model, parallel: questions.length });
    try {
      holds = (await check(name, server)) && holds;
    } finally {
      await server.close();
    }
  }
} finally {
  rmSync(home, { recursive: true, force: true });
}
// Most of the candidates are not first changes.
if (!values.all && !holds) {
  console.log("The first change has to change most answers and leave most of those language.");
  process.exitCode = 1;
}
