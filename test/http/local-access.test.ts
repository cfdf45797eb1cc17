import { networkInterfaces } from "node:os";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  createApp,
  createRouter,
  isLoopback,
  type Listening,
  listen,
  localAccess,
  underPath,
} from "../../src/http/index.js";
import { exchange, rawGet } from "./raw.js";

let server: Listening;

test.before(async () => {
  const router = createRouter();
  router.get("/lab/thing", (ctx) => {
    ctx.body = { ok: true };
  });
  router.get("/v1/models", (ctx) => {
    ctx.body = { ok: true };
  });
  const rule = localAccess(underPath("/lab", "/executions"));
  server = await listen(createApp({ before: [rule], routers: [router] }), { port: 0, host: "0.0.0.0" });
});

test.after(() => server.close());

test("every local name with the right port is accepted, in any case", async () => {
  for (const name of ["localhost", "127.0.0.1", "[::1]", "LOCALHOST"]) {
    const { status } = await rawGet(server.port, "/lab/thing", [`Host: ${name}:${server.port}`]);
    assert.is(status, 200, name);
  }
});

test("hostile and malformed Host values are refused", async () => {
  const { port } = server;
  const hosts = [
    "evil.example",
    `evil.example:${port}`,
    `localhost.evil.example:${port}`,
    `evil.example#localhost:${port}`,
    `user@localhost:${port}`,
    `localhost:${port}@evil.example`,
    `localhost.:${port}`,
    `localhost:${port + 1}`,
    `localhost:0${port}`,
    "localhost",
    "localhost:",
    `localhost :${port}`,
    `localhost:${port},evil.example`,
    `localhost:${port} evil.example`,
    `127.0.0.2:${port}`,
    `127.1:${port}`,
    `2130706433:${port}`,
    `0.0.0.0:${port}`,
    `[::ffff:127.0.0.1]:${port}`,
    `[::]:${port}`,
    `::1:${port}`,
    "",
  ];
  for (const host of hosts) {
    const { status, body } = await rawGet(port, "/lab/thing", [`Host: ${host}`]);
    assert.is(status, 403, JSON.stringify(host));
    assert.type(JSON.parse(body).error, "string");
  }
});

test("no Host, two Hosts, equal or not", async () => {
  const good = `Host: localhost:${server.port}`;
  assert.is((await rawGet(server.port, "/lab/thing", [])).status, 403);
  assert.is((await rawGet(server.port, "/lab/thing", [good, good])).status, 403);
  assert.is((await rawGet(server.port, "/lab/thing", [good, "Host: evil.example"])).status, 403);
  assert.is((await rawGet(server.port, "/lab/thing", ["host: evil.example", good])).status, 403);
});

test("absolute-form targets are refused, whatever they name", async () => {
  const good = `Host: localhost:${server.port}`;
  for (const origin of [`http://localhost:${server.port}`, "http://evil.example"]) {
    const { status } = await rawGet(server.port, `${origin}/lab/thing`, [good]);
    assert.is(status, 403, origin);
  }
  const options = `OPTIONS * HTTP/1.1\r\n${good}\r\nConnection: close\r\n\r\n`;
  assert.match(await exchange(server.port, options), /^HTTP\/1\.1 40[34]/);
});

test("headers that only browsers send are refused, even empty", async () => {
  const good = `Host: localhost:${server.port}`;
  const headers = [
    "Origin: null",
    `Origin: http://localhost:${server.port}`,
    "Origin:",
    "Cookie: a=b",
    "cookie:",
  ];
  for (const site of ["none", "same-origin", "same-site", "cross-site"])
    headers.push(`Sec-Fetch-Site: ${site}`);
  headers.push("SEC-FETCH-SITE: same-origin");
  for (const header of headers) {
    const { status } = await rawGet(server.port, "/lab/thing", [good, header]);
    assert.is(status, 403, header);
  }
});

test("headers that proxies add are refused, even empty, and no others", async () => {
  const good = `Host: localhost:${server.port}`;
  for (const header of [
    "Via: 1.1 proxy",
    "via:",
    "Forwarded: for=192.0.2.1",
    "X-Real-IP: 127.0.0.1",
    "X-Forwarded: for=192.0.2.1",
    "X-Forwarded-For: 127.0.0.1",
    "x-forwarded-proto: https",
    "X-FORWARDED-SERVER:",
    "X-Forwarded-Any: 1",
  ]) {
    const { status, body } = await rawGet(server.port, "/lab/thing", [good, header]);
    assert.equal(
      [status, JSON.parse(body).error],
      [
        403,
        "Only programs on this machine may use this address; " +
          `the header ${header.split(":")[0]} shows that a proxy forwarded the request.`,
      ],
    );
    assert.is((await rawGet(server.port, "/v1/models", [good, header])).status, 200);
  }
  for (const header of ["X-Forwardedness: 1", "Viaduct: 1", "X-Real: 1", "Connection: close"]) {
    assert.is((await rawGet(server.port, "/lab/thing", [good, header])).status, 200, header);
  }
});

test("Node's own fetch is no browser: Sec-Fetch-Mode alone passes", async () => {
  const good = `Host: localhost:${server.port}`;
  assert.is((await rawGet(server.port, "/lab/thing", [good, "Sec-Fetch-Mode: cors"])).status, 200);
  const answer = await fetch(`http://localhost:${server.port}/lab/thing`);
  assert.equal([answer.status, await answer.json()], [200, { ok: true }]);
});

test("the rule covers its prefixes in any spelling, and no other paths", async () => {
  const evil = ["Host: evil.example"];
  for (const path of [
    "/lab",
    "/lab/none",
    "/LAB/thing",
    "/%6cab/thing",
    "//lab/thing",
    "/lab?x",
    "/executions/1",
  ]) {
    assert.is((await rawGet(server.port, path, evil)).status, 403, path);
  }
  assert.is((await rawGet(server.port, "/v1/models", evil)).status, 200);
  assert.is((await rawGet(server.port, "/labyrinth", evil)).status, 404);
});

test("a peer that is not loopback is refused", async () => {
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((face) => face?.family === "IPv4" && !face.internal);
  if (outside !== undefined) {
    const text = await exchange(
      server.port,
      `GET /lab/thing HTTP/1.1\r\nHost: localhost:${server.port}\r\nConnection: close\r\n\r\n`,
      outside.address,
    );
    assert.match(text, "HTTP/1.1 403");
  }
  const addresses: [string | undefined, boolean][] = [
    ["127.0.0.1", true],
    ["127.8.9.10", true],
    ["::1", true],
    ["::ffff:127.0.0.1", true],
    ["::ffff:7f00:1", true],
    ["::ffff:192.168.0.1", false],
    ["192.168.0.1", false],
    ["128.0.0.1", false],
    ["fe80::1%eth0", false],
    ["::", false],
    [undefined, false],
  ];
  for (const [address, expected] of addresses) assert.is(isLoopback(address), expected, String(address));
});

test.run();
