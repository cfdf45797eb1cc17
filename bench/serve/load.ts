/**
 * The load program, a separate process: this many streams, each sending its chat requests one after the other and
 * reading the answers as they come. The same for every server. Argument: a LoadOrder as JSON; prints a LoadReport.
 */
import http from "node:http";
import { TestRandom } from "../../test/support/random.js";

export interface LoadOrder {
  url: string;
  model: string;
  streams: number;
  /** In all, shared evenly among the streams. */
  requests: number;
  promptWords: number;
  maxTokens: number;
  /** Other prompts in every round, so that no server answers from its prompt cache. */
  seed: number;
}

export interface LoadReport {
  seconds: number;
  requests: number;
  tokens: number;
  /** Milliseconds from sending a request to its first piece of text. */
  firstToken: number[];
  /** Milliseconds between pieces of text. */
  between: number[];
}

const words =
  "river stone window garden letter winter morning silver forest music paper bridge island candle market planet " +
  "copper meadow harbour thunder ribbon orchard lantern village compass feather marble canyon pepper saddle";

async function run(order: LoadOrder): Promise<LoadReport> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: order.streams });
  const report: LoadReport = { seconds: 0, requests: 0, tokens: 0, firstToken: [], between: [] };
  const random = new TestRandom(order.seed);
  const vocabulary = words.split(" ");
  const prompts = Array.from({ length: order.requests }, () =>
    Array.from({ length: order.promptWords }, () => vocabulary[random.below(vocabulary.length)]).join(" "),
  );
  const start = performance.now();
  await Promise.all(
    Array.from({ length: order.streams }, async () => {
      for (let prompt = prompts.pop(); prompt !== undefined; prompt = prompts.pop()) {
        await chat(agent, order, prompt, report);
      }
    }),
  );
  report.seconds = (performance.now() - start) / 1000;
  agent.destroy();
  return report;
}

function chat(
  agent: http.Agent,
  order: LoadOrder,
  prompt: string,
  report: LoadReport,
  retries = 20,
): Promise<void> {
  const body = JSON.stringify({
    model: order.model,
    messages: [{ role: "user", content: prompt }],
    max_tokens: order.maxTokens,
    ignore_eos: true,
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
  });
  return new Promise((resolve, reject) => {
    const sent = performance.now();
    let last = 0;
    let tail = "";
    const request = http.request(
      `${order.url}/v1/chat/completions`,
      {
        method: "POST",
        agent,
        headers: { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) },
      },
      (response) => {
        response.setEncoding("utf8");
        response.on("data", (text: string) => {
          const now = performance.now();
          tail = (tail + text).slice(-4000);
          // The first event names the role only and comes before anything is computed.
          if (!/"(?:reasoning_)?content":"/.test(text)) return;
          if (last === 0) report.firstToken.push(now - sent);
          else report.between.push(now - last);
          last = now;
        });
        response.on("end", () => {
          const tokens = Number(/"completion_tokens":(\d+)/.exec(tail)?.[1]);
          if (response.statusCode !== 200 || tokens !== order.maxTokens || last === 0) {
            reject(
              new Error(`An answer of ${tokens} tokens, status ${response.statusCode}: ${tail.slice(-500)}`),
            );
            return;
          }
          report.requests++;
          report.tokens += tokens;
          resolve();
        });
        response.on("error", reject);
      },
    );
    request.on("error", (error: NodeJS.ErrnoException) => {
      // A server may close a kept connection while the next request is on its way; clients send it once more.
      if (error.code === "ECONNRESET" && last === 0 && retries > 0) {
        chat(agent, order, prompt, report, retries - 1).then(resolve, reject);
      } else {
        reject(error);
      }
    });
    request.end(body);
  });
}

process.stdout.write(JSON.stringify(await run(JSON.parse(process.argv[2] ?? "{}") as LoadOrder)));
