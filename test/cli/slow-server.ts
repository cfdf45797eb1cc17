import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface SlowServer {
  url: string;
  /** Bodies of the chat requests so far. */
  requests: Array<{ messages: Array<{ role: string; content: string }>; [field: string]: unknown }>;
  /** How many clients went away before their answer was complete. */
  abandoned(): number;
  close(): void;
}

/**
 * An OpenAI-style server that thinks, then counts: "one two three …", a word every `everyMs`. A message with
 * "forever" is answered until the client goes; one with "fail" with an error. A watched probe's score of a word is a tenth
 * of its characters.
 */
export async function slowServer(everyMs = 15): Promise<SlowServer> {
  const requests: SlowServer["requests"] = [];
  let abandoned = 0;
  const server = createServer(async (request, response) => {
    if (request.url === "/v1/models") return json(response, 200, { data: [{ id: "slow" }] });
    let body = "";
    for await (const chunk of request) body += chunk;
    const parsed = JSON.parse(body);
    requests.push(parsed);
    const asked: string = parsed.messages.at(-1).content;
    if (asked.includes("fail"))
      return json(response, 400, { error: { message: "The server does not like it." } });
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    const [probe] = parsed.tapline?.watch?.probes ?? [];
    const send = (delta: { content?: string }, finish_reason: string | null = null) => {
      const { content: token } = delta;
      const tokens = token === undefined ? [] : [{ token, probes: { [probe]: token.length / 10 } }];
      const choice = { delta, finish_reason, ...(probe !== undefined && { tapline: { tokens } }) };
      response.write(`data: ${JSON.stringify({ choices: [choice] })}\n\n`);
    };
    const words = ["one ", "two ", "three"];
    send({ reasoning_content: "let me count" } as object);
    for (let index = 0; asked.includes("forever") || index < words.length; index++) {
      await new Promise((resolve) => setTimeout(resolve, everyMs));
      if (response.destroyed || response.writableEnded || request.socket.destroyed) {
        abandoned++;
        return;
      }
      send({ content: words[index] ?? "more " });
    }
    send({}, "stop");
    response.end("data: [DONE]\n\n");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    abandoned: () => abandoned,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "Content-Type": "application/json" });
  response.end(JSON.stringify(body));
}
