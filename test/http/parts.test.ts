/** The small parts that every service shares, called by themselves: errors, keys, hosts, ports, headers for pages, bodies. */
import { createHash } from "node:crypto";
import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { PassThrough } from "node:stream";
import type { Context } from "koa";
import Type from "typebox";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { PortInUse, UserError } from "../../src/contracts/user-error.js";
import { isDisconnect } from "../../src/http/errors.js";
import {
  apiKeyCheck,
  checked,
  clientGone,
  closeServer,
  corsHeaders,
  createHttpServer,
  describeBindFailure,
  errorBodyAt,
  frontPage,
  HttpError,
  isPreflight,
  localAccessFault,
  parseRange,
  readBytes,
  readJson,
  sharedAccessFault,
  toHttpError,
  underPath,
  urlHost,
} from "../../src/http/index.js";
import { withTime } from "../support/with-time.js";

const thrown = (run: () => unknown): HttpError => {
  try {
    run();
  } catch (error) {
    return error as HttpError;
  }
  throw new Error("nothing was thrown");
};

test("errors: OpenAI's form below /v1, llama-server's at its paths, else ours", () => {
  const types: [number, string][] = [
    [400, "invalid_request_error"],
    [401, "authentication_error"],
    [403, "permission_error"],
    [404, "not_found_error"],
    [405, "invalid_request_error"],
    [429, "rate_limit_error"],
    [499, "invalid_request_error"],
    [500, "server_error"],
    [502, "server_error"],
    [503, "overloaded_error"],
  ];
  for (const [status, type] of types) {
    const error = new HttpError(status, "No.", { param: "p", code: "c" });
    assert.equal(errorBodyAt("/v1/models")(error), {
      error: { message: "No.", type, param: "p", code: "c" },
    });
    for (const path of [
      "/completion",
      "/completions",
      "/infill",
      "/tokenize",
      "/props",
      "/slots",
      "/lora-adapters",
    ]) {
      assert.equal(errorBodyAt(path)(error), { error: { code: status, message: "No.", type, param: "p" } });
    }
    for (const path of ["/", "/v10", "/stats", "/completionist"]) {
      assert.equal(errorBodyAt(path)(error), { error: "No." }, path);
    }
  }
  const bare = new HttpError(400, "No.");
  assert.equal([bare.param, bare.code, bare.headers, bare.name], [null, null, {}, "HttpError"]);
});

test("thrown errors: HttpErrors pass, 400 to 499 may be shown, others are faults", () => {
  const own = new HttpError(418, "Tea.");
  assert.is(toHttpError(own), own);
  const fault = [500, "Internal error; see the service's log."];
  const told = (error: unknown) => {
    const { status, message } = toHttpError(error);
    return [status, message];
  };
  const shown = (status: unknown, message?: string) => ({ expose: true, status, message });
  assert.equal(told(shown(400, "Bad.")), [400, "Bad."]);
  assert.equal(told(shown(499)), [499, "The request was refused."]);
  for (const error of [
    ...[shown(399, "x"), shown(500, "x"), shown("404", "x"), { expose: false, status: 404, message: "x" }],
    ...[{ expose: "true", status: 404 }, new Error("secret"), null, undefined, "text", 5],
  ]) {
    assert.equal(told(error), fault, JSON.stringify(error));
  }
  for (const code of ["ERR_STREAM_PREMATURE_CLOSE", "ERR_STREAM_DESTROYED", "ECONNRESET", "EPIPE"]) {
    assert.ok(isDisconnect({ code }), code);
  }
  for (const error of [{ code: "ENOENT" }, {}, null, undefined, "ECONNRESET"])
    assert.not(isDisconnect(error));
});

test("a key is sent as Bearer or x-api-key; without one access is open", () => {
  const check = apiKeyCheck("secret");
  for (const headers of [
    { authorization: "Bearer secret" },
    { authorization: "bearer   secret" },
    { "x-api-key": "secret" },
    { authorization: "Bearer wrong", "x-api-key": "secret" },
    { authorization: "Bearer secret", "x-api-key": "wrong" },
  ]) {
    check(headers);
  }
  for (const headers of [
    ...[{}, { authorization: "secret" }, { authorization: "Bearer" }, { authorization: "Bearersecret" }],
    ...[
      { authorization: "Bearer secre" },
      { authorization: "Bearer secret " },
      { authorization: "Basic secret" },
    ],
    ...[{ "x-api-key": "secret2" }, { "x-api-key": "" }, { authorization: "x Bearer secret" }],
  ]) {
    const { status, code, headers: told, message } = thrown(() => check(headers));
    assert.equal(
      [status, code, told, message],
      [
        ...[401, "invalid_api_key", { "WWW-Authenticate": "Bearer" }],
        "A valid API key is required: send Authorization: Bearer <key>.",
      ],
      JSON.stringify(headers),
    );
  }
  apiKeyCheck(undefined)({});
  // A key that is empty is one.
  assert.is(thrown(() => apiKeyCheck("x")({})).status, 401);
});

test("how a service is reached from here, and why a port could not be bound", () => {
  assert.equal(["0.0.0.0", "::", "127.0.0.1", "::1", "fe80::1", "example.org"].map(urlHost), [
    "127.0.0.1",
    "127.0.0.1",
    "127.0.0.1",
    "[::1]",
    "[fe80::1]",
    "example.org",
  ]);
  const failed = (code: string) => describeBindFailure(Object.assign(new Error("bind"), { code }), "h", 80);
  assert.instance(failed("EADDRINUSE"), PortInUse);
  for (const [code, sentence] of [
    ["EACCES", "This user may not use port 80 on h; choose a port above 1023."],
    ["EADDRNOTAVAIL", "Cannot listen on h: this machine does not have that address."],
  ] as const) {
    assert.instance(failed(code), UserError);
    assert.is(failed(code).message, sentence);
  }
  const other = failed("EMFILE");
  assert.equal([other.message, other instanceof UserError], ["bind", false]);
});

test("a server that closes lets what runs finish, and cuts it after its grace", async () => {
  const timers: { ms: number; over: () => void; cleared: boolean }[] = [];
  const noted = {
    setTimeout(over: () => void, ms: number) {
      const one = { ms, over, cleared: false };
      timers.push(one);
      return one;
    },
    clearTimeout(one: (typeof timers)[0]) {
      one.cleared = true;
    },
  };
  await withTime(noted, async () => {
    const done: string[] = [];
    let ended = () => {};
    const closing = closeServer(
      {
        close: (over: () => void) => {
          done.push("close");
          ended = over;
        },
        closeIdleConnections: () => done.push("idle"),
        closeAllConnections: () => done.push("all"),
      } as never,
      77,
    );
    assert.equal([done, timers.map(({ ms }) => ms)], [["close", "idle"], [77]]);
    timers[0]!.over();
    assert.is(done.at(-1), "all");
    ended();
    await closing;
    assert.ok(timers[0]!.cleared);
  });
});

test("what is no HTTP is answered with why, and a connection that is gone is left", () => {
  const server = createHttpServer(() => {});
  const told = (code: string, writable = true) => {
    const answer: string[] = [];
    const end = (text: string) => answer.push(text);
    const socket = { writable, end, destroy: () => end("destroyed") };
    server.emit("clientError", Object.assign(new Error("x"), { code }), socket);
    return answer.join("");
  };
  for (const [code, status, sentence] of [
    ["HPE_HEADER_OVERFLOW", "431 Request Header Fields Too Large", "The request's headers are too large."],
    ["ERR_HTTP_REQUEST_TIMEOUT", "408 Request Timeout", "The request did not arrive in time."],
    ["HPE_INVALID_METHOD", "400 Bad Request", "The request is not valid HTTP."],
  ] as const) {
    const body = JSON.stringify({ error: sentence });
    assert.is(
      told(code),
      `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\n` +
        `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
    );
  }
  assert.equal([told("HPE_INVALID_METHOD", false), told("ECONNRESET")], ["destroyed", "destroyed"]);
});

interface Asked {
  method?: string;
  headers?: Record<string, string>;
  host?: string[];
  from?: string;
  at?: string;
  url?: string;
}

function request({
  method = "POST",
  headers = {},
  host = ["localhost:5"],
  from,
  at,
  url = "/x",
}: Asked): IncomingMessage {
  const rawHeaders = [...host.flatMap((one) => ["Host", one]), ...Object.entries(headers).flat()];
  const socket = { remoteAddress: from ?? "127.0.0.1", localAddress: at ?? "127.0.0.1", localPort: 5 };
  return { method, headers, rawHeaders, socket, url } as unknown as IncomingMessage;
}

test("other sites' pages may send only requests that browsers preflight", () => {
  const own = ["https://friend.example"];
  const fault = (asked: Asked, origins = own) => sharedAccessFault(request(asked), origins);
  const refused = (type: string) =>
    `Requests from other sites' pages must be application/json, and --cors must allow their origin; got ${type}.`;
  const other = { origin: "https://other.example" };
  for (const [asked, said] of [
    [{}, null],
    [{ headers: other }, refused("no Content-Type")],
    [{ headers: { ...other, "content-type": "text/plain; charset=utf-8" } }, refused("text/plain")],
    [{ headers: { ...other, "content-type": "x".repeat(101) } }, refused("x".repeat(100))],
    [{ headers: { ...other, "content-type": " Application/JSON ; a=b" } }, null],
    [{ headers: { ...other, "content-type": "application/ld+json" } }, null],
    [{ headers: { ...other, "content-type": "application/jsonp" } }, refused("application/jsonp")],
    [{ method: "GET", headers: other }, null],
    [{ method: "HEAD", headers: other }, null],
    [{ method: "OPTIONS", headers: other }, null],
    [{ method: "PUT", headers: other }, refused("no Content-Type")],
    [{ headers: { origin: "https://friend.example" } }, null],
    [{ headers: { origin: "http://localhost:5" } }, null],
    [{ headers: { origin: "http://localhost:6" } }, refused("no Content-Type")],
    [{ headers: { origin: "null" } }, refused("no Content-Type")],
    [{ headers: { "sec-fetch-site": "cross-site" } }, refused("no Content-Type")],
    [{ headers: { "sec-fetch-site": "same-site" } }, refused("no Content-Type")],
    [{ headers: { "sec-fetch-site": "same-origin" } }, null],
    [{ headers: { "sec-fetch-site": "none" } }, null],
    [{ host: ["a", "b"] }, "At most one Host header is allowed, got 2."],
    [{ host: [] }, null],
    [{ host: ["models.example"] }, "On loopback the Host header must be localhost, 127.0.0.1 or [::1]."],
    [{ host: ["models.example"], at: "192.0.2.1" }, null],
    [{ host: ["[::1]:9"] }, null],
    [{ host: ["[::2]:9"] }, "On loopback the Host header must be localhost, 127.0.0.1 or [::1]."],
  ] as [Asked, string | null][]) {
    assert.is(fault(asked), said, JSON.stringify(asked));
  }
  assert.is(fault({ headers: other }, ["*"]), null);
});

test("the headers that let a page read an answer, and ask for leave", () => {
  const page = { origin: "https://friend.example" };
  const told = (asked: Asked, origins: string[]) => corsHeaders(request(asked), origins);
  const expose = { "Access-Control-Expose-Headers": "Retry-After, X-Tapline-Execution-ID" };
  assert.equal(told({ headers: page }, []), {});
  assert.equal(told({}, [page.origin]), { Vary: "Origin" });
  assert.equal(told({ headers: { origin: "https://x.example" } }, [page.origin]), { Vary: "Origin" });
  assert.equal(told({}, ["*"]), {});
  const allowed = { "Access-Control-Allow-Origin": page.origin, ...expose, Vary: "Origin" };
  assert.equal(told({ headers: page }, ["https://a.example", page.origin]), allowed);
  assert.equal(told({ headers: page }, ["*"]), { "Access-Control-Allow-Origin": "*", ...expose });
  const preflight = { method: "OPTIONS", headers: { ...page, "access-control-request-method": "POST" } };
  const leave = {
    ...{ ...allowed, "Access-Control-Allow-Methods": "GET, POST", "Access-Control-Max-Age": "600" },
    "Access-Control-Allow-Headers": "Content-Type",
  };
  assert.equal(told(preflight, [page.origin]), leave);
  assert.equal(told({ ...preflight, method: "GET" }, [page.origin]), allowed);
  assert.equal(told({ method: "OPTIONS", headers: page }, [page.origin]), allowed);
  const more = { "access-control-request-headers": "X-A", "access-control-request-private-network": "true" };
  assert.equal(told({ ...preflight, headers: { ...preflight.headers, ...more } }, [page.origin]), {
    ...{ ...leave, "Access-Control-Allow-Headers": "X-A", "Access-Control-Allow-Private-Network": "true" },
  });
  assert.equal([isPreflight(request(preflight)), isPreflight(request({ method: "OPTIONS" }))], [true, false]);
});

test("local programs: loopback address, own Host and port, no browser headers", () => {
  const fault = (asked: Asked) => localAccessFault(request(asked));
  const host = "The Host header must be localhost, 127.0.0.1 or [::1] with this server's port.";
  const browser =
    "Requests from web pages are rejected: do not send Origin, Sec-Fetch-Site or Cookie headers.";
  for (const [asked, said] of [
    [{}, null],
    [{ host: ["LocalHost:5"], from: "::1" }, null],
    [
      { from: "192.0.2.1" },
      "Only programs on this machine may use this address; the connection comes from another machine.",
    ],
    [{ url: "http://localhost:5/x" }, "The request target must be a path on this server."],
    [{ host: [] }, "Exactly one Host header is required, got 0."],
    [{ host: ["localhost:5", "localhost:5"] }, "Exactly one Host header is required, got 2."],
    [{ host: ["localhost"] }, host],
    [{ host: ["localhost:6"] }, host],
    [{ host: ["127.0.0.2:5"] }, host],
    [{ headers: { Origin: "x" } }, browser],
    [{ headers: { cookie: "" } }, browser],
    [{ headers: { "Sec-Fetch-Site": "none" } }, browser],
    [{ headers: { "Sec-Fetch-Mode": "cors", "X-Origin": "x" } }, null],
  ] as [Asked, string | null][]) {
    assert.is(fault(asked), said, JSON.stringify(asked));
  }
  // At port 80 clients leave the port out.
  const at80 = request({ host: ["localhost"] });
  Object.assign(at80.socket, { localPort: 80 });
  assert.is(localAccessFault(at80), null);
  const under = underPath("/a", "/b/c");
  const paths = ["/a", "/a/", "/A/x", "//a", "/%61", "/b/c", "/b/c/d", "/b//C", "/a%2Fx"];
  assert.equal(
    paths.map(under),
    paths.map(() => true),
  );
  assert.equal(["/", "/ab", "/b", "/b/cd", "/x/a", "/%zz", "a"].map(under), Array(7).fill(false));
  assert.ok(underPath("/%zz")("/%ZZ"), "what is no code stays as it is");
});

/** A request whose body comes in these pieces. */
function bodyOf(pieces: (string | Uint8Array)[], headers: Record<string, string> = {}) {
  const stream = new PassThrough();
  for (const piece of pieces) stream.write(piece);
  return { stream, ctx: { req: Object.assign(stream, { headers }) } as unknown as Context };
}
const failed = (work: Promise<unknown>) =>
  work.then(
    () => "read",
    (error: HttpError) => `${error.status} ${error.message}`,
  );

test("a body is read up to its last byte, and refused from its first byte too many", async () => {
  const exact = bodyOf(["ab", "cd"]);
  exact.stream.end();
  assert.is((await readBytes(exact.ctx, 4)).toString(), "abcd");
  for (const event of ["data", "end", "error", "close"]) {
    assert.ok(exact.stream.listenerCount(event) <= 1, `${event}: nobody listens any more`);
  }
  const much = bodyOf(["ab", "cde"]);
  assert.is(await failed(readBytes(much.ctx, 4)), "400 The body has more than 4 bytes, which is the limit.");
  // The rest is read away, so that the client can read the refusal.
  assert.is(much.stream.readableFlowing, true);
  const announced = (length: string) => readBytes(bodyOf([], { "content-length": length }).ctx, 4);
  assert.is(await failed(announced("5")), "400 The body has 5 bytes; at most 4 are accepted.");
  const coded = (coding: string) => {
    const { stream, ctx } = bodyOf(["x"], { "content-encoding": coding, "content-length": "4" });
    stream.end();
    return failed(readBytes(ctx, 4));
  };
  assert.is(await coded("Identity"), "read");
  assert.is(await coded("gzip"), "400 The body has the content coding gzip; send it without one.");
  for (const leaves of ["close", "error"]) {
    const left = bodyOf(["x"]);
    const reading = failed(readBytes(left.ctx, 4));
    left.stream.emit(leaves, new Error("gone"));
    assert.is(await reading, "400 The request ended before its body was complete.");
  }
});

test("a body of JSON: empty only where it may be, in UTF-8, and as its schema says", async () => {
  const read = (body: string | Uint8Array, optional?: boolean) => {
    const { stream, ctx } = bodyOf(body.length > 0 ? [body] : []);
    stream.end();
    return readJson(ctx, { limit: 100, ...(optional !== undefined && { optional }) });
  };
  assert.equal([await read("[1]"), await read("{}"), await read("", true)], [[1], {}, {}]);
  assert.is(await failed(read("")), "400 The body is empty; send a JSON object.");
  assert.is(await failed(read("", false)), "400 The body is empty; send a JSON object.");
  assert.is(await failed(read(Uint8Array.of(0x22, 0xff, 0x22), true)), "400 The body is not valid UTF-8.");
  assert.is(await failed(read("{", true)), "400 The body is not valid JSON.");
  const schema = Type.Object({ a: Type.Integer({ maximum: 3 }) });
  assert.equal(checked(schema, { a: 3 }), { a: 3 });
  const refused = thrown(() => checked(schema, { a: 4 }));
  assert.equal([refused.status, refused.message], [400, "a: at most 3, got 4."]);
});

test("a client is gone if its connection ends before the response, or already had", () => {
  const response = (more: object) =>
    Object.assign(new EventEmitter(), { writableFinished: false, destroyed: false, ...more });
  const gone = (res: object) => clientGone({ res } as unknown as Context).signal;
  const one = response({});
  const signal = gone(one);
  assert.not(signal.aborted);
  one.emit("close");
  assert.ok(signal.aborted);
  const two = response({});
  const served = gone(two);
  two.writableFinished = true;
  two.emit("close");
  assert.not(served.aborted);
  assert.ok(gone(response({ destroyed: true })).aborted);
});

test("the page at the root is for local visitors, static, without hidden characters", () => {
  const described = {
    ...{ name: "a <b>", what: "What\u202e.", state: "State.\u0007" },
    endpoints: [["GET /x", "one & two"]] as const,
    example: (url: string) => `curl ${url}\n`,
  };
  const open = (more: Asked & { path?: string } = {}) => {
    const asked = { method: "GET", ...more };
    const req = request(asked);
    const headers: Record<string, string> = {};
    const set = (name: string, value: string) => {
      headers[name] = value;
    };
    const { path = "/", method } = asked;
    const ctx = {
      req,
      headers: req.headers,
      method,
      path,
      socket: req.socket,
      host: "localhost:5",
      set,
    } as unknown as Context;
    const next = frontPage(() => described)(ctx as never, () => Promise.resolve("next"));
    return { page: next === undefined ? String(ctx.body) : "", headers, type: ctx.type };
  };
  const { page, headers, type } = open();
  assert.is(type, "html");
  assert.match(
    headers["Content-Security-Policy"]!,
    /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; base-uri 'none'; form-action 'none'; frame-ancestors 'none'$/,
  );
  // The hash is of the style that the page has.
  const style = /<style>([^<]*)<\/style>/.exec(page)![1]!;
  assert.match(headers["Content-Security-Policy"]!, createHash("sha256").update(style).digest("base64"));
  const { "Referrer-Policy": referrer, "Cross-Origin-Resource-Policy": sharing } = headers;
  assert.equal([referrer, sharing], ["no-referrer", "same-origin"]);
  for (const part of [
    ...["<title>a &lt;b&gt;</title>", "<h1>a &lt;b&gt;</h1>", "<p>What\ufffd.</p><p>State.\ufffd</p>"],
    ...["<dt>GET /x</dt><dd>one &amp; two</dd>", "<code>curl http://localhost:5\n</code>"],
  ]) {
    assert.ok(page.includes(part), part);
  }
  assert.ok(open({ method: "HEAD" }).page);
  for (const asked of [
    ...[
      { method: "POST" },
      { path: "/x" },
      { from: "192.0.2.1" },
      { headers: { origin: "http://localhost:5" } },
    ],
    ...[{ host: ["elsewhere.example"] }],
  ]) {
    assert.is(open(asked).page, "", JSON.stringify(asked));
  }
});

test("byte ranges: one, within the file, in the words of RFC 9110", () => {
  for (const [header, size, range] of [
    ["bytes=0-0", 10, { start: 0, end: 0 }],
    ["Bytes= 2-5 ", 10, { start: 2, end: 5 }],
    ["bytes=9-", 10, { start: 9, end: 9 }],
    ["bytes=3-99", 10, { start: 3, end: 9 }],
    ["bytes=-3", 10, { start: 7, end: 9 }],
    ["bytes=-10", 10, { start: 0, end: 9 }],
    ["bytes=-11", 10, { start: 0, end: 9 }],
    ["bytes=5-5", 10, { start: 5, end: 5 }],
    ["bytes=5-4", 10, null],
    ["bytes=12-11", 10, null],
    ["bytes=10-", 10, "unsatisfiable"],
    ["bytes=10-11", 10, "unsatisfiable"],
    ["bytes=-0", 10, "unsatisfiable"],
    ["bytes=0-", 0, "unsatisfiable"],
    ["bytes=-1", 0, "unsatisfiable"],
    ["bytes=-", 10, null],
    ["bytes=0-1,3-4", 10, null],
    ["rows=0-1", 10, null],
    ["", 10, null],
  ] as const) {
    assert.equal(parseRange(header, size), range, `${header} of ${size}`);
  }
});

test.run();
