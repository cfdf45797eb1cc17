import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startServer, user } from "../../inference/support/serving.js";
import type { Figure, NumericCheck } from "./check.js";
import { runPython } from "./python.js";

interface Entry {
  id: number;
  logprob: number;
  top_logprobs: Entry[];
}

const chats = ["What is the capital of France?", "Where is Kyoto?", "Hello!"];
const texts = [
  "The capital of Japan is",
  "John and Mary went to the shop. John gave a book to",
  "one two three",
];
/** More than one batch. */
const passage = `${"The capital of Japan is Tokyo. John gave a book to Mary. one two three four five. ".repeat(14)}`;

/** What `logprobs` says, of greedy and of sampled answers and of prompts, against numpy's pass of the same tokens. */
async function run(python: string, folder: string): Promise<Figure[]> {
  const server = await startServer({ parallel: 1 });
  const answers: unknown[] = [];
  const keep = (prompt: number[], entries: Entry[]) => {
    const plain = ({ id, logprob }: Entry) => ({ id, logprob });
    const steps = entries.map((entry) => ({ ...plain(entry), top: entry.top_logprobs.map(plain) }));
    answers.push({ prompt, steps });
  };
  const tokenize = async (content: string, special: boolean): Promise<number[]> =>
    (await server.post("/tokenize", { content, add_special: special, parse_special: true })).body.tokens;
  try {
    for (const temperature of [0, 1]) {
      const sampling = { temperature, seed: 7 };
      for (const content of chats) {
        const messages = user(content);
        const { body } = await server.post("/v1/chat/completions", {
          ...{ messages, ...sampling, max_tokens: 24, logprobs: true, top_logprobs: 5 },
        });
        const { prompt } = (await server.post("/apply-template", { messages })).body;
        keep(await tokenize(prompt, true), body.choices[0].logprobs.content);
      }
      for (const prompt of texts) {
        // llama-server's own form: OpenAI's legacy one names texts, and two tokens may have the same.
        const { body } = await server.post("/completion", {
          ...{ prompt, ...sampling, n_predict: 16, n_probs: 5 },
        });
        keep(await tokenize(prompt, true), body.completion_probabilities);
      }
    }
    const prompts = await Promise.all(
      [...texts, passage].map(async (content) => {
        const tokens = Int32Array.from(await tokenize(content, true));
        const { logProbabilities, topIds, topLogProbabilities } = await server.service.engine.score({
          tokens,
          top: 5,
        });
        const lists = { tokens, logProbabilities, topIds, topLogProbabilities };
        return Object.fromEntries(Object.entries(lists).map(([name, list]) => [name, [...list]]));
      }),
    );
    await writeFile(
      join(folder, "answers.json"),
      JSON.stringify({ model: server.service.resolved.path, answers, prompts }),
    );
  } finally {
    await server.close();
  }
  const script = new URL("./logprobs.py", import.meta.url);
  const results = (await runPython(python, script, [folder])) as Record<string, number>;
  return [
    { what: "logprobs of answers: greatest difference", value: results.worst ?? Number.NaN, bound: 0.02 },
    {
      what: "steps whose most probable token is another",
      value: results.wrong_order ?? Number.NaN,
      bound: 0,
    },
    {
      what: "logprobs of prompts' tokens: greatest difference",
      value: results.prompts ?? Number.NaN,
      bound: 0.02,
    },
    { what: "probabilities of prompts compared", value: results.scored ?? 0, bound: 200, atLeast: true },
    { what: "probabilities compared", value: results.compared ?? 0, bound: 300, atLeast: true },
  ];
}

export default {
  title: "Log-probabilities that the server answers with, against numpy",
  modules: ["numpy"],
  run,
} satisfies NumericCheck;
