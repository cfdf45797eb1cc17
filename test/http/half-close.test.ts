/** Clients that end their sending side get their answers; clients that are gone close their responses. */

import { once } from "node:events";
import { type IncomingMessage, type RequestListener, request, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type Listening, listen } from "../../src/http/index.js";
import { until } from "../support/until.js";

async function withServer(handler: RequestListener, use: (server: Listening) => Promise<void>) {
  const server = await listen({ callback: () => handler }, { port: 0 });
  try {
    await use(server);
  } finally {
    await server.close();
  }
}

/** A connection that can end one side alone, and what has come on it. */
function open(port: number): Socket & { got: string } {
  const socket = Object.assign(connect({ port, host: "127.0.0.1", allowHalfOpen: true }), { got: "" });
  socket.on("data", (part) => {
    socket.got += part.toString("latin1");
  });
  return socket;
}

/** Waits for something on a connection, which must stay open until then. */
const came = (socket: Socket & { got: string }, found: (got: string) => boolean) =>
  until(() => {
    if (found(socket.got)) return true;
    assert.not(socket.readableEnded, `the connection ended after ${JSON.stringify(socket.got)}`);
    return false;
  });

const get = (version = "1.1") => `GET / HTTP/${version}\r\nHost: x\r\n\r\n`;
const continues = "HTTP/1.1 100 Continue\r\n\r\n";
const zeros = /\r\n0+$/;

test("a half-closed client gets an answer that takes long", async () => {
  const answers: ServerResponse[] = [];
  await withServer(
    (_request, response) => answers.push(response),
    async ({ port }) => {
      const socket = open(port);
      socket.end(get());
      await came(socket, (got) => got.startsWith(continues.repeat(3)));
      answers[0]!.setHeader("Content-Length", 5).end("whole");
      await once(socket, "close");
      const final = socket.got.replaceAll(continues, "");
      assert.match(final, /^HTTP\/1\.1 200 OK\r\n/);
      assert.ok(final.endsWith("\r\n\r\nwhole"));
    },
  );
});

test("a half-closed client gets a quick answer without interim responses", () =>
  withServer(
    (_request, response) => response.end("quick"),
    async ({ port }) => {
      const socket = open(port);
      socket.end(get());
      await once(socket, "close");
      assert.match(socket.got, /^HTTP\/1\.1 200 OK\r\n/);
      assert.ok(socket.got.endsWith("\r\n\r\nquick"));
    },
  ));

test("a half-closed client gets a stream with pauses, whole for HTTP parsers", async () => {
  let stream: ServerResponse | undefined;
  await withServer(
    (_request, response) => {
      stream = response;
      // The head alone, still in this process.
      response.writeHead(200, { "Content-Type": "text/plain" });
    },
    async ({ port }) => {
      const socket = open(port);
      const outgoing = request({ createConnection: () => socket, headers: { Connection: "close" } });
      const answered = once(outgoing, "response");
      outgoing.end();
      outgoing.once("finish", () => socket.end());
      const [answer] = (await answered) as [IncomingMessage];
      const body = text(answer);
      await came(socket, (got) => zeros.test(got));
      for (const part of ["first", "second, which is longer than sixteen bytes"]) {
        stream!.write(part);
        await came(socket, (got) => got.includes(part) && zeros.test(got));
      }
      stream!.end();
      assert.is(await body, "firstsecond, which is longer than sixteen bytes");
    },
  );
});

test("a half-closed client gets the answers of all its pipelined requests in order", async () => {
  const answers: ServerResponse[] = [];
  await withServer(
    (_request, response) => answers.push(response),
    async ({ port }) => {
      const socket = open(port);
      socket.end(get().repeat(3));
      await came(socket, (got) => answers.length === 3 && got.includes(continues));
      for (const index of [2, 0, 1]) answers[index]!.end(`answer ${index}`);
      await once(socket, "close");
      assert.equal(socket.got.match(/answer \d/g), ["answer 0", "answer 1", "answer 2"]);
    },
  );
});

test("a client that is gone closes its response, silent, streaming or between chunks", async () => {
  for (const begin of [
    () => {},
    (response: ServerResponse) => response.write("begun"),
    (response: ServerResponse) => response.flushHeaders(),
  ]) {
    let closed = 0;
    let here = 0;
    await withServer(
      (_request, response) => {
        here++;
        response.once("close", () => closed++);
        begin(response);
      },
      async ({ port }) => {
        // At once, and after the client had ended its sending side.
        const left = open(port);
        const later = open(port);
        left.write(get());
        later.end(get());
        await came(later, (got) => here === 2 && (got.includes(continues) || zeros.test(got)));
        left.destroy();
        later.destroy();
        await until(() => closed === 2);
      },
    );
  }
});

test("a client of HTTP/1.0 that ends its sending side counts as gone", async () => {
  let closed = false;
  await withServer(
    (_request, response) => response.once("close", () => (closed = true)),
    async ({ port }) => {
      const socket = open(port);
      socket.end(get("1.0"));
      await until(() => closed);
      if (!socket.destroyed) await once(socket, "close");
      assert.is(socket.got, "");
    },
  );
});

test.run();
