/** A server and a Lab that cost nothing: answers at a fixed rate, with everything that the page asks for, and one large lens. */
import type { ServerResponse } from "node:http";
import { type Seen, scripted, sendJson } from "../client/scripted.js";
import { provenance } from "../report/jobs.js";

export const blocks = 24;
export const jobId = "0123456789abcdef0123456789abcdef";
const watched = [0, 3, 7, 10, 13, 16, 20, 23];
const words = [
  "The",
  " answer",
  " is",
  " not",
  " what",
  " one",
  " would",
  " think",
  ".",
  "\n\n",
  " It",
  " depends",
];

/** The form of the next answer; the bench sets it. */
export interface Stream {
  tokens: number;
  /** Per second; 0 sends everything immediately. */
  rate: number;
  /** When each token was written, in milliseconds since 1970. */
  sent: number[];
  /** The text, again and again; prose by default. */
  words?: readonly string[];
}

export const clock = () => performance.timeOrigin + performance.now();

export async function fakeServices(stream: Stream) {
  const job = lensJob(256);
  const { result: _, config: __, ...summary } = job;
  const told: Record<string, unknown> = {
    "GET /lab/capabilities": {
      model: "bench",
      n_layer: blocks,
      n_embd: 896,
      architecture: "qwen3",
      backend: "cpu",
    },
    "GET /props": { model_path: "/models/bench.gguf" },
    "GET /lab/vectors": { vectors: [] },
    "GET /lab/probes": { probes: [] },
    "GET /lab/dictionaries": { dictionaries: [] },
    "GET /lab/v1/health": { api_version: 1, active_job: null, queued: 0 },
    "GET /lab/v1/jobs": { jobs: [summary] },
    [`GET /lab/v1/jobs/${jobId}`]: job,
  };
  return scripted(({ path, method }: Seen, response: ServerResponse) => {
    const body = told[`${method} ${path}`];
    if (path === "/v1/chat/completions") void answer(stream, response);
    else sendJson(response, body === undefined ? 404 : 200, body ?? { error: "There is nothing here." });
  });
}

/** Writes each token when it is due, as a separate event. */
async function answer(stream: Stream, response: ServerResponse): Promise<void> {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  const { tokens, rate } = stream;
  stream.sent = [];
  const begun = performance.now();
  for (let at = 0; at < tokens; ) {
    const due =
      rate === 0 ? tokens : Math.min(tokens, Math.floor(((performance.now() - begun) / 1000) * rate) + 1);
    for (; at < due; at += 1) {
      stream.sent[at] = clock();
      response.write(`data: ${event(at, stream.words ?? words)}\n\n`);
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const last = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
  response.end(`data: ${JSON.stringify(last)}\n\ndata: [DONE]\n\n`);
}

function event(at: number, words: readonly string[]): string {
  const token = words[at % words.length] as string;
  const candidates = Array.from({ length: 5 }, (_, rank) => ({
    id: rank,
    token: words[(at + rank) % words.length],
    logprob: -0.2 - rank,
  }));
  const lens = Array.from({ length: 5 }, (_, rank) => ({
    token_id: rank,
    token: ` word${rank}`,
    probability: 0.4 / (rank + 1),
  }));
  const each = <T>(value: T) => Object.fromEntries(watched.map((layer) => [layer, value]));
  const told = { index: at, token_id: at % 1000, token, norms: each(12.5 + (at % 7)), lens: each(lens) };
  const content = [{ id: at % 1000, token, logprob: -0.2, top_logprobs: candidates }];
  const choice = {
    index: 0,
    delta: { content: token },
    finish_reason: null,
    tapline: { tokens: [told] },
    logprobs: { content },
  };
  return JSON.stringify({ choices: [choice] });
}

/** An inspection of every block of a long text. */
function lensJob(length: number) {
  const tokens = Array.from({ length }, (_, at) => words[at % words.length] as string);
  const cell = (layer: number, at: number) => (Math.sin(layer * 1.7 + at * 0.31) + 1) / 2;
  return {
    id: jobId,
    operation: "inspect",
    model: "/models/bench.gguf",
    config: { operation: "inspect", model: "/models/bench.gguf", prompt: tokens.join("") },
    status: "completed",
    progress: { stage: "done", done: 1, total: 1 },
    created: 1,
    started: 2,
    ended: 3,
    result: {
      tokens,
      token_ids: tokens.map((_, at) => at),
      layers: Array.from({ length: blocks }, (_, layer) => ({
        layer,
        norms: tokens.map((_, at) => 1 + layer * cell(layer, at)),
        predictions: tokens.map((_, at) =>
          [0.8, 0.15, 0.05].map((share, rank) => ({
            token_id: rank,
            token: words[(at + layer + rank) % words.length] as string,
            probability: share * cell(layer, at),
          })),
        ),
      })),
      next_tokens: [{ token_id: 1, token: " is", probability: 0.9 }],
      note: "",
      artifacts: [],
      provenance,
    },
  };
}
