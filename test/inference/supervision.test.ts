/** The handling of a serving process that reports, dies, hangs or is ended: programs of a few lines replace it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { UserError } from "../../src/contracts/user-error.js";
import { type Serving, type ServingEvent, serve } from "../../src/inference/process/supervisor.js";
import { send } from "../support/request.js";
import { until } from "../support/until.js";
import { withTime } from "../support/with-time.js";

const folder = mkdtempSync(join(tmpdir(), "tapline-supervision-"));
test.after(() => rmSync(folder, { recursive: true, force: true }));

let count = 0;

/** A program that does something when it is told to start; `ready` says that it serves. */
function program(onStart: string, onConnection = ""): string {
  const path = join(folder, `${count++}.mjs`);
  writeFileSync(
    path,
    `const send = (message) => new Promise((done) => process.send(message, undefined, {}, done));
     const ready = (info = {}) => send({ type: "ready", info, backend: "test" });
     process.on("message", async (message, socket) => {
       if (message.type === "start") { const { options } = message; ${onStart} }
       if (message.type === "connection") { ${onConnection} }
       if (message.type === "end") { console.error(JSON.stringify(message)); process.exit(0); }
     });
     process.on("disconnect", () => process.exit(1));`,
  );
  return path;
}

const start = (onStart: string, more: object = {}) =>
  serve({
    ...{ model: "asked", host: "127.0.0.1", port: 0, program: { entry: program(onStart), execArgv: [] } },
    ...more,
  });

const refusal = (onStart: string, more: object = {}) =>
  start(onStart, more).then(
    async (serving) => {
      await serving.close();
      return assert.unreachable("it started") as never;
    },
    (error: Error) => {
      assert.instance(error, UserError, String(error));
      return error.message;
    },
  );

test("messages of the serving process reach the supervisor, and options reach it", async () => {
  const events: ServingEvent[] = [];
  const serving = await start(
    `await send({ type: "progress", stage: "model", fraction: 0.5 });
     await send({ type: "progress", stage: "download", fraction: 0.1, download: { done: 1, total: 10 } });
     await send({ type: "warning", sentence: "Slow." });
     await send({ type: "log", line: "a fault" });
     const { readFileSync } = await import("node:fs");
     const group = process.platform === "linux" ? Number(readFileSync("/proc/self/stat", "utf8").split(") ")[1].split(" ")[2]) : process.pid;
     await ready({ id: "m", options, own: group === process.pid, backtrace: process.env.GGML_NO_BACKTRACE });`,
    { graceMs: 7, parallel: 3, onEvent: (event: ServingEvent) => events.push(event) },
  );
  try {
    // A separate process group, which a Ctrl-C in the terminal does not reach; and no debugger is forked on a crash.
    const info = {
      ...{ id: "m", options: { model: "asked", parallel: 3, patient: false } },
      ...{ own: true, backtrace: "1" },
    };
    assert.equal([serving.info, serving.backend, serving.host], [info, "test", "127.0.0.1"]);
    assert.is(serving.url, `http://127.0.0.1:${serving.port}`);
    assert.type(serving.pid, "number");
    assert.equal(events, [
      { event: "loading", stage: "model", fraction: 0.5 },
      { event: "loading", stage: "download", fraction: 0.1, download: { done: 1, total: 10 } },
      { event: "warning", sentence: "Slow." },
      { event: "fault", line: "a fault" },
      { event: "ready", url: serving.url, info, backend: "test" },
    ]);
  } finally {
    await Promise.all([serving.close(), serving.close()]);
  }
  await serving.ended;
  assert.is(serving.pid, undefined);
});

test("a failed start reports its sentence, or the exit and the last output", async () => {
  assert.is(
    await refusal(
      `await send({ type: "failed", sentence: "No such model." }); await send({ type: "failed", sentence: "Later." }); process.exit(0);`,
    ),
    "No such model.",
  );
  const dies = (how: string) => `process.stderr.write("first\\nlast words\\n\\n", () => { ${how} });`;
  const kill = (signal: string) => `process.kill(process.pid, "${signal}"); setInterval(() => {}, 1000);`;
  assert.is(
    await refusal(dies("process.exit(3);")),
    "The serving process ended with code 3; its last output: last words.",
  );
  assert.is(await refusal("process.exit(0);"), "The serving process ended with code 0.");
  assert.is(
    await refusal(dies(kill("SIGABRT"))),
    "The serving process crashed (SIGABRT); its last output: last words.",
  );
  assert.is(
    await refusal(dies(kill("SIGKILL"))),
    "The serving process was killed, by a user or for lack of memory.",
  );
  const remote = `process.stdout.write("Remote RPC server crashed or returned malformed response\\n", () => process.abort());`;
  assert.is(await refusal(remote), "An rpc-server was lost, along with its part of the model.");
  const much = `process.stderr.write("x".repeat(3000), () => process.exit(1));`;
  assert.is(
    await refusal(much),
    `The serving process ended with code 1; its last output: ${"x".repeat(2000)}.`,
  );
});

test("a signal ends the start, before it and while it loads", async () => {
  const reason = new Error("enough");
  const hangs = (signal: AbortSignal, more: object = {}) =>
    start("await send({ type: 'progress', stage: 'model', fraction: 0 });", { signal, ...more }).then(
      () => "started",
      (error: unknown) => error,
    );
  assert.is(await hangs(AbortSignal.abort(reason)), reason);
  const stop = new AbortController();
  assert.is(await hangs(stop.signal, { onEvent: () => stop.abort(reason) }), reason);
});

/**
 * Runs something whose pauses are over at once.
 * @param run gets their lengths, and moves the clock, which stands still
 */
async function withoutPauses(
  run: (pauses: number[], pass: (ms: number) => void) => Promise<void>,
): Promise<void> {
  const { setTimeout: real } = globalThis;
  const pauses: number[] = [];
  let ms = 1000;
  const atOnce = (callback: () => void, ms = 0) => {
    // Those of others are left as they are.
    if (!/supervisor/.test(String(new Error().stack))) return real(callback, ms);
    pauses.push(ms);
    return real(callback, 0);
  };
  const pass = (by: number) => {
    ms += by;
  };
  await withTime({ "performance.now": () => ms, setTimeout: atOnce }, () => run(pauses, pass));
}

test("a process that keeps failing is given up after growing pauses", async () => {
  await withoutPauses(async (pauses) => {
    const crashes: string[] = [];
    const patient: boolean[] = [];
    const serving = await start(`await ready({ patient: options.patient }); process.exit(9);`, {
      onEvent: (event: ServingEvent) => {
        if (event.event === "crashed") crashes.push(event.sentence);
        if (event.event === "ready") patient.push((event.info as unknown as { patient: boolean }).patient);
      },
    });
    const error = await serving.ended.then(
      () => new Error("it continues"),
      (fault: Error) => fault,
    );
    assert.instance(error, UserError);
    const sentence = "The serving process ended with code 9.";
    assert.is(error.message, `The serving process failed 5 times in a row. Last failure: ${sentence}`);
    assert.equal([crashes, patient], [Array(5).fill(sentence), [false, true, true, true, true]]);
    assert.equal(pauses, [0, 250, 500, 1000]);
    await serving.close();
    assert.is(await send(serving.url, "GET").catch(() => "nobody"), "nobody");
  });
});

test("one that was killed, or had served for a while, has not failed quickly", async () => {
  await withoutPauses(async (pauses, pass) => {
    let serving: Serving | undefined;
    let served = 0;
    try {
      const ended: string[] = [];
      serving = await start("await ready();", {
        onEvent: (event: ServingEvent) => {
          if (event.event === "ready") served++;
          if (event.event === "crashed") ended.push(event.sentence);
        },
      });
      const dies = async (signal: NodeJS.Signals, servedMs = 5000) => {
        const times = served;
        pass(servedMs);
        process.kill(serving?.pid as number, signal);
        await until(() => served > times);
      };
      for (let i = 0; i < 3; i++) await dies("SIGSEGV");
      assert.equal(pauses, [0, 250, 500]);
      await dies("SIGKILL");
      await dies("SIGSEGV");
      await dies("SIGSEGV");
      assert.equal(pauses.splice(0), [0, 250, 500, 0, 0, 250]);
      await dies("SIGSEGV", 5001);
      await dies("SIGSEGV");
      assert.equal(pauses, [0, 0]);
      assert.is(ended.length, 8);
    } finally {
      await serving?.close();
    }
  });
});

/** Sends bytes to a serving process that does this with its connection, and gives what comes back. */
async function exchanged(onConnection: string, bytes: string, more: object = {}): Promise<string> {
  const entry = program("await ready();", onConnection);
  const serving = await start("", { program: { entry, execArgv: [] }, ...more });
  try {
    const client = connect(serving.port, "127.0.0.1", () => client.write(bytes));
    client.on("error", () => {});
    let text = "";
    client.on("data", (chunk) => {
      text += chunk;
    });
    await new Promise((resolve) => client.once("close", resolve));
    return text;
  } finally {
    await serving.close();
  }
}

const ask = (path: string) => `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}`;
/** Writes the state of its connection, whose id is the first record's, into the file that the supervisor gave it. */
const state = (more: object = {}) =>
  `(await import("node:fs")).writeSync(4, JSON.stringify({ id: message.id, ...${JSON.stringify(more)} }) + "\\n", 0);`;
const taken = state();
const asked = (path: string, more: object = {}) => state({ waiting: { path, ...more } });

test("a connection ends for its client when it has ended in the serving process", async () => {
  const onConnection = `${taken} socket.destroy(); await send({ type: "closed", ids: [message.id] });`;
  assert.is(await exchanged(onConnection, ask("/v1/models")), "");
});

test("a request that a dying process did not answer gets 502, in its API's form", async () => {
  const message = "The server crashed while processing this request; it is restarting.";
  for (const [path, body] of [
    [
      "/v1/chat/completions",
      { error: { message, type: "server_error", param: null, code: "server_crashed" } },
    ],
    ["/v1/messages", { type: "error", error: { type: "api_error", message } }],
    ["/completion", { error: { code: 502, message, type: "server_error", param: null } }],
    ["/lab/activations", { error: message }],
  ] as const) {
    for (const end of ["process.abort();", "process.kill(process.pid, 'SIGKILL');"]) {
      const text = await exchanged(`${taken} ${asked(path)} ${end}`, ask(path));
      const [head, told] = text.split("\r\n\r\n") as [string, string];
      assert.match(head, /^HTTP\/1\.1 502 Bad Gateway\r\nContent-Type: application\/json; charset=utf-8\r\n/);
      assert.match(head, `Content-Length: ${Buffer.byteLength(told)}\r\n`);
      assert.match(head, /\r\nConnection: close$/);
      assert.equal(JSON.parse(told), body);
    }
  }
});

test("pages of allowed origins can read the 502 of a dying process", async () => {
  const onConnection = (path: string, origin: string) =>
    `${taken} ${asked(path, { origin })} process.abort();`;
  const headers = async (path: string, origin: string, cors: string[]) =>
    (await exchanged(onConnection(path, origin), ask(path), { cors }))
      .split("\r\n")
      .filter((line) => /^(HTTP|Access-Control-Allow-Origin|Vary)/.test(line));
  const origin = "https://page.example";
  assert.equal(await headers("/v1/models?a=b", origin, [origin]), [
    "HTTP/1.1 502 Bad Gateway",
    `Access-Control-Allow-Origin: ${origin}`,
    "Vary: Origin",
  ]);
  assert.equal(await headers("/v1/models", origin, ["*"]), [
    "HTTP/1.1 502 Bad Gateway",
    "Access-Control-Allow-Origin: *",
  ]);
  assert.equal(await headers("/lab/activations", origin, ["*"]), ["HTTP/1.1 502 Bad Gateway"]);
});

test("an unread request of a dying process gets 503; a started answer is cut", async () => {
  assert.match(await exchanged("process.exit(3);", ask("/v1/messages")), /^HTTP\/1\.1 503 .*"type":"error"/s);
  const begun = `${taken} ${asked("/v1/models")} ${taken}
    socket.write("HTTP/1.1 200 OK\\r\\n", () => process.abort());`;
  // A reset may take what was written.
  assert.match(await exchanged(begun, ask("/v1/models")), /^(HTTP\/1\.1 200 OK\r\n)?$/);
  // A connection that waits for its next request gets no error.
  assert.is(await exchanged(`${taken} process.abort();`, ask("/v1/models")), "");
});

test("without a serving process, the port answers 503 in each API's format", async () => {
  await withoutPauses(async (pauses) => {
    let crashed = false;
    const sentence: string[] = [];
    const serving = await start(
      `if (options.patient) { await send({ type: "failed", sentence: "Gone for good." }); process.exit(1); } await ready(); process.exit(2);`,
      {
        graceMs: 11,
        onEvent: (event: ServingEvent) => {
          if (event.event !== "crashed") return;
          sentence.push(event.sentence);
          crashed = true;
        },
      },
    );
    await until(() => crashed);
    const asked = await send(`${serving.url}/v1/models`, "GET").catch(() => undefined);
    if (asked !== undefined) {
      assert.equal(
        [
          asked.status,
          asked.headers["retry-after"],
          asked.headers.connection,
          asked.headers["cache-control"],
        ],
        [503, "1", "close", "no-store"],
      );
      assert.match(
        asked.body.error.message,
        /^The server is (restarting after a crash; retry in a moment|shutting down)\.$/,
      );
      assert.is(asked.body.error.code, "unavailable");
    }
    await serving.ended.catch(() => {});
    assert.equal(sentence, ["The serving process ended with code 2.", ...Array(4).fill("Gone for good.")]);
    assert.is(pauses.length, 4);
  });
  await withoutPauses(async (pauses) => {
    const serving = await start("await ready();", { graceMs: 11 });
    const { pid } = serving;
    await serving.close();
    assert.equal(pauses, [1511]);
    assert.throws(() => process.kill(pid as number, 0));
  });
});

test.run();
