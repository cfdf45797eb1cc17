import { networkInterfaces } from "node:os";
import { test } from "uvu";
import * as assert from "uvu/assert";
import {
  createApp,
  createRouter,
  type Listening,
  listen,
  sharedAccess,
  underPath,
} from "../../src/http/index.js";
import { exchange } from "./raw.js";

let server: Listening;
const friend = "https://friend.example";

test.before(async () => {
  const router = createRouter();
  router.all("/v1/thing", (ctx) => {
    ctx.body = { ok: true };
  });
  router.all("/stats", (ctx) => {
    ctx.body = { ok: true };
  });
  server = await listen(
    createApp({ before: [sharedAccess([friend], underPath("/v1"))], routers: [router] }),
    { port: 0, host: "0.0.0.0" },
  );
});
test.after(() => server.close());

async function ask(method: string, headers: string[], path = "/v1/thing", address?: string): Promise<string> {
  const lines = headers.some((header) => /^host:/i.test(header))
    ? headers
    : [`Host: localhost:${server.port}`, ...headers];
  return exchange(
    server.port,
    `${method} ${path} HTTP/1.1\r\n${lines.join("\r\n")}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`,
    address,
  );
}
const status = (text: string) => Number(text.slice(9, 12));

test("on loopback the Host names loopback, with any port", async () => {
  for (const host of ["localhost:1", "127.0.0.1", "127.8.9.10:80", "[::1]:9", "LOCALHOST"]) {
    assert.is(status(await ask("POST", [`Host: ${host}`])), 200, host);
  }
  for (const host of [
    "evil.example",
    `localhost.evil.example:${server.port}`,
    "192.168.0.1",
    "0.0.0.0",
    "",
    "a@localhost",
  ]) {
    assert.is(status(await ask("GET", [`Host: ${host}`])), 403, host);
  }
  assert.is(status(await ask("GET", ["Host: localhost", "Host: evil.example"])), 403);
});

test("through another interface the Host may be any name", async () => {
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((face) => face?.family === "IPv4" && !face.internal);
  if (outside === undefined) return;
  assert.is(status(await ask("POST", ["Host: models.example"], "/v1/thing", outside.address)), 200);
});

test("other sites may send JSON only, programs whatever they like", async () => {
  const plain = "Content-Type: text/plain;charset=UTF-8";
  const json = "Content-Type: application/json; charset=utf-8";
  const foreign = [
    "Origin: https://evil.example",
    "Origin: null",
    "Sec-Fetch-Site: cross-site",
    "Sec-Fetch-Site: same-site",
  ];
  for (const header of foreign) {
    assert.is(status(await ask("POST", [header, plain])), 403, header);
    assert.is(status(await ask("POST", [header])), 403, header);
    assert.is(
      status(await ask("POST", [header, "Content-Type: multipart/form-data; boundary=a"])),
      403,
      header,
    );
    assert.is(status(await ask("POST", [header, json])), 200, header);
  }
  for (const header of [
    "X-Any: thing",
    `Origin: http://localhost:${server.port}`,
    `Origin: ${friend}`,
    "Sec-Fetch-Mode: cors",
  ]) {
    assert.is(status(await ask("POST", [header, plain])), 200, header);
  }
});

test("leave is given to the allowed origin, on /v1 alone", async () => {
  const preflight = [
    "Access-Control-Request-Method: POST",
    "Access-Control-Request-Headers: authorization,content-type",
  ];
  const given = await ask("OPTIONS", [`Origin: ${friend}`, ...preflight]);
  assert.is(status(given), 204);
  assert.match(given, `Access-Control-Allow-Origin: ${friend}\r\n`);
  assert.match(given, "Access-Control-Allow-Headers: authorization,content-type\r\n");
  assert.match(given, "Vary: Origin\r\n");
  assert.match(await ask("GET", [`Origin: ${friend}`]), `Access-Control-Allow-Origin: ${friend}\r\n`);
  for (const [origin, path] of [
    ["https://evil.example", "/v1/thing"],
    [friend, "/stats"],
    ["http://friend.example", "/v1/thing"],
  ]) {
    for (const method of ["OPTIONS", "GET"]) {
      assert.not.match(await ask(method, [`Origin: ${origin}`, ...preflight], path), /access-control-allow/i);
    }
  }
});

test("a page of another site gets no answer outside /v1, and no question about a key", async () => {
  const own = `Origin: http://localhost:${server.port}`;
  for (const path of ["/stats", "/nothing"]) {
    for (const method of ["GET", "HEAD", "POST", "OPTIONS"]) {
      for (const origin of [friend, "https://evil.example", "null"]) {
        const json = "Content-Type: application/json";
        assert.is(status(await ask(method, [`Origin: ${origin}`, json], path)), 403, `${method} ${origin}`);
      }
    }
  }
  assert.equal(
    [status(await ask("GET", [own], "/stats")), status(await ask("GET", [], "/stats"))],
    [200, 200],
  );
  // A link to it may be opened from anywhere.
  const opened = ["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate"];
  assert.is(status(await ask("GET", opened, "/stats")), 200);
  const asked = await ask("OPTIONS", ["Origin: https://evil.example", "Access-Control-Request-Method: POST"]);
  assert.match(asked, /^HTTP\/1\.1 403 .*Pages of https:\/\/evil\.example may not use this server/s);
  assert.is(status(await ask("GET", ["Origin: https://evil.example"])), 200);
});

test.run();
