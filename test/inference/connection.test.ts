/** Reports of a connection to the parent: which request still waits for the first byte of its answer. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect, Socket } from "node:net";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { Connection, type Reports } from "../../src/inference/process/connection.js";
import { until } from "../support/until.js";

/** Sends bytes to a server whose responses the test writes. */
async function following(
  run: (client: Socket, told: string[], responses: ServerResponse[]) => Promise<void>,
) {
  const told: string[] = [];
  const responses: ServerResponse[] = [];
  const connections = new WeakMap<object, Connection>();
  const server = createServer((request, response) => {
    connections.get(request.socket)?.asked(request, response);
    responses.push(response);
  });
  server.prependListener("connection", (socket) => {
    const reports: Reports = {
      waits: (request) => void told.push(request === undefined ? "answering" : `asked ${request.path}`),
      closed: () => void told.push("closed"),
    };
    connections.set(socket, new Connection(socket, reports));
    // What reaches the client is in the list, too, so that their order can be seen.
    const write = socket.write;
    socket.write = ((...given: Parameters<Socket["write"]>) => {
      const done = write.apply(socket, given);
      told.push("bytes");
      return done;
    }) as Socket["write"];
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1").resume();
  try {
    await run(client, told, responses);
  } finally {
    client.destroy();
    server.close();
    server.closeAllConnections();
  }
}

const get = (path: string, method = "GET") => `${method} ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
/** Without repetitions: Node writes an answer in one piece or in several. */
const distinct = (told: string[]) => told.filter((entry, index) => entry !== told[index - 1]);

test("a request waits until the first byte of its answer is about to be written", () =>
  following(async (client, told, responses) => {
    client.write(get("/a"));
    await until(() => responses.length === 1);
    assert.equal(told, ["asked /a"]);
    responses[0]!.write("x");
    await until(() => told.includes("bytes"));
    responses[0]!.end("y");
    client.write(get("/b"));
    await until(() => responses.length === 2);
    assert.equal(distinct(told), ["asked /a", "answering", "bytes", "asked /b"]);
    client.destroy();
    await until(() => told.includes("closed"));
    assert.equal(distinct(told).slice(-2), ["asked /b", "closed"]);
  }));

test("of several pipelined requests, the first unanswered one waits", () =>
  following(async (client, told, responses) => {
    client.write(get("/a") + get("/b") + get("/c"));
    await until(() => responses.length === 3);
    assert.equal(told, ["asked /a"]);
    // Held back by Node until the answer before it has ended.
    responses[1]!.end("b");
    assert.equal(told, ["asked /a"]);
    responses[0]!.end("a");
    await until(() => told.includes("asked /c"));
    assert.equal(
      told.filter((entry) => entry !== "bytes"),
      ["asked /a", "answering", "asked /b", "answering", "asked /c"],
    );
    assert.ok(told.lastIndexOf("answering") < told.lastIndexOf("bytes"), "the report precedes the bytes");
  }));

test("100 Continue is not an answer, and a HEAD request gets no body", () =>
  following(async (client, told, responses) => {
    client.write("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n");
    await until(() => responses.length === 1);
    assert.equal(
      told.filter((entry) => entry !== "bytes"),
      ["asked /a"],
    );
    client.write("x");
    responses[0]!.end();
    client.write(get("/b", "HEAD"));
    await until(() => responses.length === 2);
    responses[1]!.end();
    client.write(get("/c"));
    await until(() => responses.length === 3);
    assert.equal(
      told.filter((entry) => entry !== "bytes"),
      ["asked /a", "answering", "asked /c"],
    );
  }));

test("reports the origin of the page that asks, for the parent's CORS headers", async () => {
  const told: unknown[] = [];
  const waits: Reports["waits"] = (request) => void told.push(request);
  const connection = new Connection(new Socket(), { waits, closed() {} });
  const asks = (headers: object) =>
    connection.asked({ url: "/v1/models?a=b", method: "GET", headers } as IncomingMessage, response);
  const response = { prependOnceListener() {} } as unknown as ServerResponse;
  asks({ origin: "https://page.example" });
  assert.equal(told, [{ path: "/v1/models?a=b", origin: "https://page.example" }]);
});

test.run();
