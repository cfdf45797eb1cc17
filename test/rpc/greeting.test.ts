import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  lostRpcServers,
  nameOf,
  parseRpcServers,
  type RpcServer,
  reachRpcServers,
} from "../../src/models/rpc.js";
import { startRpcServer } from "./support/rpc-server.js";

async function fault(run: () => unknown): Promise<string> {
  try {
    await run();
  } catch (error) {
    assert.is((error as Error).name, "UserError", String((error as Error).stack));
    return (error as Error).message;
  }
  return assert.unreachable("it was accepted") as never;
}

/** Something else on a port. */
async function impostor<T>(
  answer: (socket: Socket) => void,
  use: (server: RpcServer) => Promise<T>,
): Promise<T> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    answer(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await use({ host: "127.0.0.1", port: (server.address() as AddressInfo).port });
  } finally {
    server.close();
  }
}

test("lists of servers", async () => {
  assert.equal(parseRpcServers("a:1, b.example:65535"), [
    { host: "a", port: 1 },
    { host: "b.example", port: 65535 },
  ]);
  for (const text of ["", "a", "a:0", "a:65536", "a:1,,b:2", "http://a:1", "a:1;b:2"]) {
    assert.match(await fault(() => parseRpcServers(text)), "is not a valid rpc-server: use host:port");
  }
  assert.match(await fault(() => parseRpcServers("a:1,a:1")), "given twice");
  const many = Array.from({ length: 17 }, (_, index) => `a:${index + 1}`).join();
  assert.match(await fault(() => parseRpcServers(many)), "At most 16 rpc-servers are supported, got 17.");
  assert.is(parseRpcServers(many.slice(0, many.lastIndexOf(","))).length, 16);
});

test("missing, busy, old or foreign servers are reported in one sentence", async () => {
  const server = await startRpcServer();
  const name = nameOf(server);
  assert.equal(await reachRpcServers([server]), [name]);
  assert.equal(await lostRpcServers([server]), []);

  // Whoever has been greeted back is being served: HELLO, 24 bytes of capabilities, none of them.
  const holder = connect(server.port, server.host);
  holder.write(Buffer.from([14, 24, ...Array(7 + 24).fill(0)]));
  await new Promise((resolve) => holder.once("data", resolve));
  assert.is(
    await fault(() => reachRpcServers([server])),
    `The rpc-server ${name} is busy: it serves one program at a time, and another one is using it.`,
  );
  holder.destroy();
  await server.kill();
  assert.is(
    await fault(() => reachRpcServers([server])),
    `The rpc-server ${name} is not running (connection refused).`,
  );
  assert.equal(await lostRpcServers([server]), [name]);

  const hello = Buffer.alloc(36);
  hello.writeBigUInt64LE(28n);
  hello[8] = 3;
  await impostor(
    (socket) => socket.end(hello),
    async (old) =>
      assert.match(
        await fault(() => reachRpcServers([old])),
        "speaks protocol version 3.0, but this build speaks 7.0",
      ),
  );
  await impostor(
    (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"),
    async (web) => assert.match(await fault(() => reachRpcServers([web])), "does not speak the protocol"),
  );
  // Whoever was found to be another is let go: it may serve one program at a time.
  const left: Promise<unknown>[] = [];
  await impostor(
    (socket) => {
      left.push(new Promise((resolve) => socket.resume().once("close", resolve)));
      socket.write(hello);
    },
    async (old) => assert.match(await fault(() => reachRpcServers([old])), "speaks protocol version 3.0"),
  );
  await Promise.all(left);
  await impostor(
    (socket) => socket.end(),
    async (mute) =>
      assert.match(await fault(() => reachRpcServers([mute])), "closed the connection during the handshake"),
  );
});

test.run();
