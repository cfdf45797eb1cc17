import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request that a fake backend got. */
export interface Got {
  path: string;
  headers: IncomingMessage["headers"];
  body: string;
}

export interface FakeOptions {
  models?: Record<string, unknown>[];
  /** Answers to GET requests, by path; other paths are 404. /v1/models is made from `models`. */
  pages?: Record<string, (response: ServerResponse) => void>;
  /** Answers to POST requests. */
  post?: (got: Got, response: ServerResponse) => void;
}

export interface Fake {
  url: string;
  port: number;
  got: Got[];
  /** Paths of GET requests. */
  asked: string[];
  options: FakeOptions;
  /** Connections that are open now. */
  connections(): Promise<number>;
  /** Ends it, with everything that is open. */
  close(): Promise<void>;
}

export const json =
  (value: unknown, status = 200) =>
  (response: ServerResponse) => {
    response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(value));
  };

/** One server-sent event of a chat, as OpenAI-style servers write it. */
export function event(content: string, end = "\n\n"): string {
  return `data: ${JSON.stringify({ object: "chat.completion.chunk", choices: [{ index: 0, delta: { content } }] })}${end}`;
}

/** A stream of these words, then the terminator. */
export const stream = (words: string[]) => (_got: Got, response: ServerResponse) => {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  for (const word of words) response.write(event(word));
  response.end("data: [DONE]\n\n");
};

/** An OpenAI-style server that follows instructions. */
export async function startFake(options: FakeOptions = {}, port = 0): Promise<Fake> {
  const got: Got[] = [];
  const asked: string[] = [];
  const fake: { options: FakeOptions } = { options };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("error", () => {});
    response.on("error", () => {});
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      const { models = [{ id: "m" }], pages = { "/health": json({ status: "ok" }) }, post } = fake.options;
      const path = request.url as string;
      if (request.method === "GET") asked.push(path);
      if (request.method === "POST") {
        const one = { path, headers: request.headers, body: Buffer.concat(chunks).toString() };
        got.push(one);
        (post ?? stream(["a", "b"]))(one, response);
      } else if (pages[path] !== undefined) pages[path](response);
      else if (path === "/v1/models") json({ object: "list", data: models })(response);
      else json({ error: "not found" }, 404)(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const address = server.address() as AddressInfo;
  return Object.assign(fake, {
    url: `http://127.0.0.1:${address.port}`,
    port: address.port,
    got,
    asked,
    connections: () => new Promise<number>((resolve) => server.getConnections((_, count) => resolve(count))),
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}
