/** Requests that a reverse proxy on this machine forwards: its clients may be anywhere, and it connects from loopback. */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { type LabService, startLab } from "../../src/lab/index.js";
import { stand } from "../inference/support/stand.js";
import { cast } from "../router/support/cast.js";
import { messages } from "../router/support/routing.js";
import { send } from "../support/request.js";
import { exchange } from "./raw.js";

const { fake, routing, atEnd, endAll } = cast();
let home: string;
let lab: LabService;

test.before(async () => {
  home = await mkdtemp(join(tmpdir(), "tapline-proxies-"));
  lab = await startLab({ home, port: 0, backend: "cpu" });
});
test.after.each(endAll);
test.after(async () => {
  await lab.close();
  await rm(home, { recursive: true });
});

const client = "203.0.113.9";
const site = "models.example.org";

/** What proxies send to a backend of their defaults, beside the client's own headers. */
const proxies: Record<string, (backend: string) => Record<string, string>> = {
  // mod_proxy with ProxyAddHeaders On and ProxyPreserveHost Off, its defaults.
  Apache: (backend) => ({
    Host: backend,
    "X-Forwarded-For": client,
    "X-Forwarded-Host": site,
    "X-Forwarded-Server": site,
  }),
  // The header is the one line that nginx needs in addition to proxy_pass.
  "nginx with X-Forwarded-For": (backend) => ({ Host: backend, "X-Forwarded-For": client }),
  "nginx with X-Real-IP": (backend) => ({ Host: backend, "X-Real-IP": client }),
  "Caddy with header_up Host {upstream_hostport}": (backend) => ({
    Host: backend,
    Via: "2.0 Caddy",
    "X-Forwarded-For": client,
    "X-Forwarded-Host": site,
    "X-Forwarded-Proto": "https",
  }),
  "a proxy of RFC 7239": (backend) => ({ Host: backend, Forwarded: `for=${client};proto=https` }),
};

/** A proxy that forwards every path to a backend, with these headers in addition to its client's. */
async function proxy(url: string, added: Record<string, string>): Promise<string> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { host: _, ...own } = request.headers as IncomingHttpHeaders & Record<string, string>;
    const body = chunks.length === 0 ? undefined : Buffer.concat(chunks);
    const answer = await send(url + request.url, request.method as string, body, { ...own, ...added });
    response
      .writeHead(answer.status, { "Content-Type": String(answer.headers["content-type"]) })
      .end(answer.bytes);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const tapline = { watch: { layers: [0], norms: true } };
const chat = { model: "a", messages };

for (const [name, added] of Object.entries(proxies)) {
  test(`${name}: clients get /v1, and nothing that is for this machine`, async () => {
    const serving = await stand();
    const backend = await fake({ models: [{ id: "a", owned_by: "tapline" }] });
    const router = await routing([backend.url]);
    const through = async (url: string) => {
      const front = await proxy(url, added(new URL(url).host));
      return (method: string, path: string, body?: object) => send(front + path, method, body);
    };
    const [toServing, toRouter, toLab] = [
      await through(serving.url),
      await through(router.url),
      await through(lab.url),
    ];
    const refused: [to: typeof toLab, paths: string[]][] = [
      [toServing, ["/lab/capabilities", "/lab/captures", "/executions", "/stats", "/slots", "/"]],
      [toRouter, ["/executions", "/stats", "/health", "/props", "/"]],
      [toLab, ["/lab/v1/health", "/lab/v1/jobs", "/"]],
    ];
    for (const [to, paths] of refused) {
      for (const path of paths) assert.is((await to("GET", path)).status, 403, path);
    }
    const { body } = await toServing("GET", "/executions");
    assert.match(body.error, /the header \S+ shows that a proxy forwarded the request\.$/);
    for (const to of [toServing, toRouter]) {
      const opened = await to("POST", "/v1/chat/completions", { messages, tapline });
      assert.is(opened.status, 403);
      assert.match(opened.body.error.message, /^tapline: .* shows that a proxy forwarded the request\.$/);
    }
    assert.is((await toServing("POST", "/tokenize", { content: "a" })).status, 403);
    assert.is((await toRouter("POST", "/tokenize", { content: "a" })).status, 403);
    assert.equal([serving.asked.length, backend.got.length], [0, 0]);
    assert.is((await toServing("POST", "/v1/chat/completions", { messages })).status, 200);
    assert.is((await toRouter("POST", "/v1/chat/completions", chat)).status, 200);
    assert.is((await toServing("GET", "/health")).status, 200);
  });
}

test("nginx before 1.29.7 with nothing but proxy_pass: HTTP/1.0 is refused there", async () => {
  const serving = await stand();
  const router = await routing([(await fake({ models: [{ id: "a" }] })).url]);
  const ask = async (url: string, path: string, version = "1.0") => {
    const { host, port } = new URL(url);
    const text = await exchange(
      Number(port),
      `GET ${path} HTTP/${version}\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
    );
    return text.split("\r\n")[0];
  };
  for (const [url, path] of [
    [serving.url, "/lab/capabilities"],
    [serving.url, "/executions"],
    [router.url, "/executions"],
    [lab.url, "/lab/v1/jobs"],
  ] as const) {
    assert.is(await ask(url, path), "HTTP/1.1 403 Forbidden", path);
    assert.is(await ask(url, path, "1.1"), "HTTP/1.1 200 OK", path);
  }
  assert.is(await ask(serving.url, "/v1/models"), "HTTP/1.1 200 OK");
});

test("the router forwards as local only requests that it has checked", async () => {
  const backend = await fake({ models: [{ id: "a", owned_by: "tapline" }] });
  const router = await routing([backend.url]);
  const outer = await routing([router.url]);
  assert.is((await outer.chat({ ...chat, tapline })).status, 200);
  assert.is((await outer.chat(chat)).status, 200);
  assert.is((await send(`${router.url}/tokenize`, "POST", { content: "a" })).status, 200);
  const [opening, plain, own] = backend.got.map(({ headers }) => headers);
  assert.equal([opening?.via, own?.via], [undefined, undefined]);
  assert.match(plain?.via ?? "", /^1\.1 tapline-[0-9a-f]{16}, 1\.1 tapline-[0-9a-f]{16}$/);
  const serving = await stand();
  const front = await routing([serving.url]);
  const opened = await front.chat({ messages, tapline: {} });
  assert.is(opened.status, 200, opened.bytes.toString());
});

test.run();
