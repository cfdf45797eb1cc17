/** What the workbench answers to whom, byte for byte: no browser between. The services behind it are not there. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import type { HttpError } from "../../src/http/index.js";
import { workbenchAccess } from "../../src/workbench/access.js";
import { keyPath, startWorkbench, type WorkbenchService } from "../../src/workbench/index.js";
import { Sessions } from "../../src/workbench/sessions.js";
import { exchange } from "../http/raw.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-workbench-"));
const page = join(folder, "page");
let bench: WorkbenchService;
let now = Date.now();
const log: string[] = [];

test.before(async () => {
  mkdirSync(page);
  writeFileSync(join(page, "index.html"), "<!doctype html><title>shell</title>");
  writeFileSync(join(page, "main.js"), "// the page");
  writeFileSync(join(folder, "secret.txt"), "not of the page");
  // Nobody listens at port 1.
  const nowhere = "http://127.0.0.1:1";
  bench = await startWorkbench({
    port: 0,
    home: folder,
    server: nowhere,
    lab: nowhere,
    models: { layOut: async () => [] },
    page,
    now: () => now,
    log: (line) => log.push(line),
  });
});
test.after(async () => {
  await bench.close();
  rmSync(folder, { recursive: true, force: true });
  assert.equal(log, [], "faults");
});

interface Raw {
  status: number;
  head: string;
  body: string;
}

/** Exactly these lines. */
async function raw(method: string, target: string, lines: string[], body = ""): Promise<Raw> {
  const length = body === "" ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  const head = [`${method} ${target} HTTP/1.1`, ...lines, ...length, "Connection: close"].join("\r\n");
  const text = await exchange(bench.port, `${head}\r\n\r\n${body}`);
  const end = text.indexOf("\r\n\r\n");
  return {
    status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]),
    head: text.slice(0, end),
    body: text.slice(end + 4),
  };
}

const own = () => `127.0.0.1:${bench.port}`;
const asPage = () => [
  `Host: ${own()}`,
  `Origin: http://${own()}`,
  "Sec-Fetch-Site: same-origin",
  "Content-Type: application/json",
];

/** Signs in as the page does. */
async function signIn(): Promise<{ cookie: string; secret: string }> {
  const token = bench.link().split("#")[1] as string;
  const answer = await raw("POST", "/api/session", asPage(), JSON.stringify({ token }));
  assert.is(answer.status, 200, answer.body);
  const cookie = /^set-cookie: (tapline_\d+=[^;]+); HttpOnly; SameSite=Strict; Path=\/\r?$/im.exec(
    answer.head,
  )?.[1];
  return { cookie: cookie as string, secret: /"secret":"([^"]+)"/.exec(answer.body)?.[1] as string };
}

test("one address: any other Host is refused, on files as on the API", async () => {
  assert.is((await raw("GET", "/", [`Host: ${own()}`])).status, 200);
  assert.is((await raw("GET", "/page/main.js", [`Host: ${own()}`])).status, 200);
  const { port } = bench;
  for (const hosts of [
    [],
    [""],
    [`:${port}`],
    ["127.0.0.1"],
    [`127.0.0.1.:${port}`],
    [`127.0.0.1:${port}.`],
    [`localhost:${port}`],
    [`[::1]:${port}`],
    [`0.0.0.0:${port}`],
    [`rebound.example:${port}`],
    [own(), own()],
    [own(), "rebound.example"],
    [`127.0.0.1:${port + 1}`],
    [`127.1:${port}`],
  ]) {
    for (const target of ["/", "/page/main.js", "/chat/1", "/api/state", "/health"]) {
      const { status } = await raw(
        "GET",
        target,
        hosts.map((host) => `Host: ${host}`),
      );
      assert.is(status, 403, `${hosts.join(", ")} ${target}`);
    }
  }
  const told = await raw("GET", "/", [`Host: localhost:${port}`]);
  assert.ok(told.body.includes(`http://127.0.0.1:${port}/`), "the right address is told");
  assert.is((await raw("GET", `http://${own()}/`, [`Host: ${own()}`])).status, 403, "absolute form");
  assert.is((await raw("GET", `//${own()}/`, [`Host: ${own()}`])).status, 403);
});

test("a connection is local only if both ends are on this machine", () => {
  const check = workbenchAccess(new Sessions());
  const asked = (remoteAddress: string, localAddress: string) => {
    const socket = { remoteAddress, localAddress, localPort: 8000 };
    const req = { socket, url: "/", method: "GET", headers: {}, rawHeaders: ["Host", "127.0.0.1:8000"] };
    return () => check({ req, socket, path: "/", method: "GET", headers: {} } as never, async () => {});
  };
  assert.not.throws(asked("127.0.0.1", "127.0.0.1"));
  const refused = (error: HttpError) => error.status === 403;
  assert.throws(asked("192.0.2.1", "127.0.0.1"), refused);
  assert.throws(asked("127.0.0.1", "192.0.2.1"), refused);
});

test("requests must come from this origin, as JSON", async () => {
  const { cookie, secret } = await signIn();
  const held = [`Cookie: ${cookie}`, `X-Tapline-Workbench: ${secret}`];
  const json = "Content-Type: application/json";
  const host = `Host: ${own()}`;
  const { port } = bench;
  for (const origins of [
    [],
    ["null"],
    [""],
    [`http://localhost:${port}`],
    [`https://127.0.0.1:${port}`],
    [`http://127.0.0.1:${port + 1}`],
    ["http://127.0.0.1"],
    [`http://127.0.0.1:${port}`, `http://127.0.0.1:${port}`],
  ]) {
    const lines = [host, ...origins.map((origin) => `Origin: ${origin}`), json, ...held];
    for (const [method, target] of [
      ["POST", "/api/session"],
      ["POST", "/api/conversations"],
      ["DELETE", "/api/sessions"],
      ["OPTIONS", "/api/state"],
    ] as const) {
      assert.is((await raw(method, target, lines, "{}")).status, 403, `${method} ${target} ${origins}`);
    }
  }
  const origin = `Origin: http://${own()}`;
  for (const site of ["cross-site", "same-site", "none"]) {
    const lines = [host, origin, json, ...held, `Sec-Fetch-Site: ${site}`];
    assert.is((await raw("POST", "/api/conversations", lines, "{}")).status, 403, site);
    assert.is((await raw("GET", "/api/state", [host, ...held, `Sec-Fetch-Site: ${site}`])).status, 403, site);
  }
  for (const type of [
    "application/x-www-form-urlencoded",
    "text/plain",
    "multipart/form-data; boundary=x",
    "application/json, text/plain",
    "application/jsonp",
  ]) {
    const lines = [host, origin, `Content-Type: ${type}`, ...held];
    for (const target of ["/api/session", "/api/conversations", "/api/jobs"]) {
      assert.is((await raw("POST", target, lines, '{"a":1}')).status, 415, `${target} ${type}`);
    }
  }
  assert.is((await raw("POST", "/api/conversations", [host, origin, ...held], "{}")).status, 415, "no type");
  // Taken as JSON, and then found to ask nothing.
  for (const type of [
    "application/json",
    "application/json;charset=utf-8",
    "Application/JSON ; charset=UTF-8",
  ]) {
    const lines = [host, origin, `Content-Type: ${type}`, ...held];
    assert.is((await raw("POST", "/api/conversations", lines, "{}")).status, 400, type);
  }
});

test("a browser's fetch-mode headers neither grant nor deny access", async () => {
  const { cookie, secret } = await signIn();
  const held = [`Cookie: ${cookie}`, `X-Tapline-Workbench: ${secret}`];
  for (const mode of ["cors", "no-cors", "navigate", "same-origin", "websocket", "odd"]) {
    const said = [`Host: ${own()}`, `Sec-Fetch-Mode: ${mode}`];
    assert.is((await raw("GET", "/api/state", [...said, ...held])).status, 200, mode);
    const elsewhere = [...said, ...held, "Sec-Fetch-Site: cross-site"];
    assert.is((await raw("GET", "/api/state", elsewhere)).status, 403, mode);
    assert.is((await raw("GET", "/api/state", said)).status, 401, mode);
  }
});

test("a cookie without the secret, the secret without the cookie, halves of two sessions: 401", async () => {
  const [one, other] = [await signIn(), await signIn()];
  const state = (lines: string[]) => raw("GET", "/api/state", [`Host: ${own()}`, ...lines]);
  const both = ({ cookie }: { cookie: string }, { secret }: { secret: string }) => [
    `Cookie: ${cookie}`,
    `X-Tapline-Workbench: ${secret}`,
  ];
  assert.is((await state(both(one, one))).status, 200);
  assert.is((await state(both(other, other))).status, 200);
  const wrongPort = one.cookie.replace(/^tapline_\d+/, "tapline_1");
  for (const lines of [
    [],
    [`Cookie: ${one.cookie}`],
    [`X-Tapline-Workbench: ${one.secret}`],
    both(one, other),
    both({ cookie: wrongPort }, one),
    [...both(one, one), `X-Tapline-Workbench: ${one.secret}`],
    [`Cookie: ${one.cookie}; ${other.cookie}`, `X-Tapline-Workbench: ${one.secret}`],
  ]) {
    const { status, body } = await state(lines);
    assert.is(status, 401, lines.join(" | "));
    assert.match(body, /signed out/);
  }
  const ended = await raw("DELETE", "/api/sessions", [...asPage(), ...both(one, one)], "{}");
  assert.is(ended.status, 200);
  assert.is((await state(both(one, one))).status, 401);
  assert.is((await state(both(other, other))).status, 401);
});

test("a sign-in link works once within ten minutes, and its fault is named", async () => {
  const tokenOf = (link: string) => link.split("#")[1] as string;
  const open = (token: string) => raw("POST", "/api/session", asPage(), JSON.stringify({ token }));
  const [used, old] = [tokenOf(bench.link()), tokenOf(bench.link())];
  assert.is((await open(used)).status, 200);
  const again = await open(used);
  assert.is(again.status, 401);
  assert.match(again.body, /already been used/);
  assert.not.match(again.head, /set-cookie/i);
  now += 600_000;
  assert.is((await open(old)).status, 401);
  for (const body of ["{}", '{"token":5}', '{"token":"short"}', `{"token":"${used}","more":1}`, "[]", "{"]) {
    assert.is((await raw("POST", "/api/session", asPage(), body)).status, 400, body);
  }
});

test("a program of this user asks for a link with the key of its file; browsers and others do not get one", async () => {
  const path = keyPath(folder, bench.port);
  assert.is(statSync(path).mode & 0o777, 0o600);
  assert.is(statSync(join(folder, "workbench")).mode & 0o777, 0o700);
  const key = readFileSync(path, "utf8");
  const host = `Host: ${own()}`;
  const given = `Authorization: Bearer ${key}`;
  const got = await raw("POST", "/control/links", [host, given]);
  assert.is(got.status, 200);
  const link = JSON.parse(got.body.slice(got.body.indexOf("{"), got.body.lastIndexOf("}") + 1))
    .link as string;
  assert.match(link, new RegExp(`^http://127\\.0\\.0\\.1:${bench.port}/#[\\w-]{43}$`));
  assert.is((await raw("POST", "/control/links", [host])).status, 401);
  assert.is((await raw("POST", "/control/links", [host, "Authorization: Bearer x"])).status, 401);
  for (const mark of [`Origin: http://${own()}`, "Cookie: a=b", "Sec-Fetch-Site: same-origin"]) {
    assert.is((await raw("POST", "/control/links", [host, given, mark])).status, 403, mark);
  }
});

test("every answer forbids frames, foreign code and caching; none allows another origin", async () => {
  const { cookie, secret } = await signIn();
  for (const [method, target, lines] of [
    ["GET", "/", []],
    ["GET", "/page/main.js", []],
    ["GET", "/api/state", [`Cookie: ${cookie}`, `X-Tapline-Workbench: ${secret}`]],
    ["GET", "/api/state", []],
    ["GET", "/nothing", []],
    ["GET", "/", ["Origin: https://elsewhere.example"]],
    ["OPTIONS", "/api/state", ["Origin: https://elsewhere.example", "Access-Control-Request-Method: GET"]],
  ] as const) {
    const { head } = await raw(method, target, [`Host: ${own()}`, ...lines]);
    const header = (name: string) => new RegExp(`^${name}: (.*)$`, "im").exec(head)?.[1]?.trim();
    const policy = header("content-security-policy") ?? "";
    for (const rule of [
      "default-src 'none'",
      "script-src 'self'",
      "connect-src 'self'",
      "img-src 'self' blob: data:",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "form-action 'none'",
      "require-trusted-types-for 'script'",
      "trusted-types 'none'",
    ]) {
      assert.ok(policy.split("; ").includes(rule), `${target}: ${rule}`);
    }
    assert.not.match(policy, /unsafe/);
    assert.is(header("cache-control"), "no-store");
    assert.is(header("x-content-type-options"), "nosniff");
    assert.is(header("referrer-policy"), "no-referrer");
    assert.is(header("x-frame-options"), "DENY");
    assert.is(header("cross-origin-opener-policy"), "same-origin");
    assert.is(header("cross-origin-resource-policy"), "same-origin");
    assert.not.match(head, /access-control/i);
  }
});

test("no path leads out of the page's files, and frames are refused before anything is sent", async () => {
  const host = `Host: ${own()}`;
  for (const target of [
    "/page/../secret.txt",
    "/page/..%2fsecret.txt",
    "/page/%2e%2e%2fsecret.txt",
    "/page/secret.txt",
    "/page/",
    "/page/constructor",
    "/PAGE/main.js",
    "/page/main.js/",
  ]) {
    assert.is((await raw("GET", target, [host])).status, 404, target);
  }
  for (const dest of ["iframe", "frame", "embed", "object"]) {
    assert.is((await raw("GET", "/", [host, `Sec-Fetch-Dest: ${dest}`])).status, 403, dest);
  }
  assert.is(
    (await raw("GET", "/", [host, "Sec-Fetch-Dest: document", "Sec-Fetch-Site: cross-site"])).status,
    200,
  );
});

test("an id of a job is an id, and no way to another path of the services", async () => {
  const { cookie, secret } = await signIn();
  const lines = [...asPage(), `Cookie: ${cookie}`, `X-Tapline-Workbench: ${secret}`];
  const good = "0123456789abcdef0123456789abcdef";
  for (const id of [
    "%2e%2e",
    "..%2fhealth",
    "%2e",
    "a%3fb",
    "a%23b",
    `${good}%2f..`,
    good.toUpperCase(),
    "%00",
  ]) {
    for (const part of ["", "/findings", "/report", "/artifacts/activations.npz", "/attention/0/0"]) {
      const { status, body } = await raw("GET", `/api/jobs/${id}${part}`, lines);
      assert.is(status, 404, `${id}${part}`);
      assert.match(body, /There is nothing at|No job has this id/, `${id}${part}`);
    }
    assert.is((await raw("POST", `/api/jobs/${id}/cancel`, lines, "{}")).status, 404, id);
  }
  for (const name of ["%2e%2e", "..%2fx", "a%2fb", "%00", ".hidden", "x".repeat(201)]) {
    const { status } = await raw("GET", `/api/jobs/${good}/artifacts/${name}`, lines);
    assert.is(status, 404, name);
  }
  for (const name of ["%2e%2e", "..%2fprobes", "a%2fb", "a%3fb", "%00", ".hidden"]) {
    const { status, body } = await raw("GET", `/api/vectors/${name}`, lines);
    assert.is(status, 404, name);
    assert.match(body, /There is nothing at|No vector has this name/, name);
  }
  assert.is((await raw("GET", "/api/vectors/formal-2", lines)).status, 502);
  // Nobody listens there: it was asked.
  assert.is((await raw("GET", `/api/jobs/${good}/artifacts/activations.npz`, lines)).status, 502);
});

test("missing services are reported in words, and bodies are bounded", async () => {
  const { cookie, secret } = await signIn();
  const lines = [...asPage(), `Cookie: ${cookie}`, `X-Tapline-Workbench: ${secret}`];
  const asked = await raw("POST", "/api/conversations", lines, JSON.stringify({ text: "Hello" }));
  assert.is(asked.status, 503);
  assert.match(asked.body, /Nothing listens at http:\/\/127\.0\.0\.1:1/);
  assert.is((await raw("POST", "/api/jobs", lines, '{"operation":"inspect","model":"demo"}')).status, 502);
  for (const body of ["null", "[]", "5", '{"operation":"inspect"}', '{"operation":1,"model":"demo"}']) {
    assert.is((await raw("POST", "/api/jobs", lines, body)).status, 400, body);
  }
  const wide = await raw(
    "POST",
    "/api/conversations",
    lines,
    JSON.stringify({ text: "x".repeat(1_000_001) }),
  );
  assert.is(wide.status, 400);
  assert.match(wide.body, /1000000/);
  for (const body of [
    '{"text":" "}',
    '{"text":"a","url":"http://elsewhere"}',
    '{"text":"a","interventions":[{}]}',
  ]) {
    assert.is((await raw("POST", "/api/conversations", lines, body)).status, 400, body);
  }
  assert.is((await raw("GET", "/api/conversations/0123456789abcdef", lines)).status, 404);
});

test.run();
