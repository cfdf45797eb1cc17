/** The load: chats as streams, on kept connections. */
import { Agent, request as open } from "node:http";

export interface Streamed {
  firstMs: number;
  /** Events that the answer came in: one for each token, and a few around them. */
  events: number;
}

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

/** One streamed chat; `tokens` are generated whatever the model thinks of it. */
export function streamChat(url: string, content: string, tokens: number): Promise<Streamed> {
  const body = JSON.stringify({
    messages: [{ role: "user", content }],
    max_tokens: tokens,
    ignore_eos: true,
    temperature: 0,
    stream: true,
  });
  const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
  return new Promise((resolve, reject) => {
    const start = performance.now();
    let firstMs = Number.NaN;
    let events = 0;
    const request = open(`${url}/v1/chat/completions`, { method: "POST", headers, agent }, (response) => {
      if (response.statusCode !== 200) {
        reject(new Error(`${url} answers ${response.statusCode}.`));
        response.resume();
        return;
      }
      response.on("data", (chunk: Buffer) => {
        if (Number.isNaN(firstMs)) firstMs = performance.now() - start;
        for (let at = chunk.indexOf("data:"); at !== -1; at = chunk.indexOf("data:", at + 5)) events++;
      });
      response.on("end", () => resolve({ firstMs, events }));
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

/** So many streams at once until `count` are done; seconds, and events in all. */
export async function loadWith(
  url: string,
  options: { streams: number; count: number; tokens: number; prompt: (index: number) => string },
): Promise<{ seconds: number; events: number }> {
  let next = 0;
  let events = 0;
  const start = performance.now();
  const worker = async () => {
    while (next < options.count) {
      const index = next++;
      const streamed = await streamChat(url, options.prompt(index), options.tokens);
      events += streamed.events;
    }
  };
  await Promise.all(Array.from({ length: options.streams }, worker));
  return { seconds: (performance.now() - start) / 1000, events };
}

export function closeConnections(): void {
  agent.destroy();
}
