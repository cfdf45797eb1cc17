import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request as plainRequest } from "node:http";
import { request as secureRequest } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { test } from "uvu";
import * as assert from "uvu/assert";
import { developmentCertificate } from "../../../src/studies/dev/certificate.js";

const cli = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "tapline-production-"));
const environment = { ...process.env, DATABASE_URL: undefined, TAPLINE_HOME: folder } as NodeJS.ProcessEnv;
test.after(() => rmSync(folder, { recursive: true, force: true }));

function configuration(name: string, content: object): string {
  const path = join(folder, name);
  writeFileSync(path, JSON.stringify({ origin: "https://localhost:18443", ...content }));
  return path;
}

/** `tapline studies …` to its end. */
function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  return new Promise((resolve) => {
    const command = ["--import", "tsx", cli, "studies", ...args];
    execFile(process.execPath, command, { env: environment }, (error, stdout, stderr) => {
      resolve({
        code: typeof error?.code === "number" ? error.code : error === null ? 0 : -1,
        stdout,
        stderr,
      });
    });
  });
}

/** A production service on a free port, and the port. */
async function start(config: string): Promise<{ child: ChildProcess; port: number }> {
  const child = spawn(
    process.execPath,
    ["--import", "tsx", cli, "studies", "--config", config, "--port", "0"],
    { env: environment, stdio: ["ignore", "pipe", "inherit"] },
  );
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const port = Number(/^Studies at https:\/\/localhost:18443, listening on port (\d+)$/.exec(line)?.[1]);
    assert.ok(port > 0, line);
    return { child, port };
  }
  throw new Error("The service ended before it listened.");
}

async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  assert.equal(await ended, [0, null]);
}

function get(
  secure: boolean,
  port: number,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; location: string | undefined; text: string }> {
  const options = { host: "127.0.0.1", port, path, headers: { Host: "localhost:18443", ...headers } };
  return new Promise((resolve, reject) => {
    const outgoing = (secure ? secureRequest : plainRequest)(
      { ...options, rejectUnauthorized: false, agent: false },
      (incoming) => {
        let text = "";
        incoming.setEncoding("utf8").on("data", (part: string) => {
          text += part;
        });
        incoming.on("end", () =>
          resolve({ status: incoming.statusCode ?? 0, location: incoming.headers.location, text }),
        );
      },
    );
    outgoing.on("error", reject).end();
  });
}

test("with its certificate it serves the site and the API, and stores approvals", async () => {
  const { cert, key } = await developmentCertificate();
  writeFileSync(join(folder, "cert.pem"), cert);
  writeFileSync(join(folder, "key.pem"), key);
  const config = configuration("own.json", {
    host: "127.0.0.1",
    database: "own.db",
    tls: { certificate: "cert.pem", key: "key.pem" },
  });
  const { child, port } = await start(config);
  try {
    assert.is((await get(true, port, "/healthz")).status, 200);
    assert.is((await get(true, port, "/readyz")).status, 200);
    const site = await get(true, port, "/");
    assert.is(site.status, 200);
    assert.match(site.text, "<h1");
    const api = await get(true, port, "/api/v1/studies");
    assert.is(api.status, 401);
    assert.is(JSON.parse(api.text).code, "token_missing");
    assert.match(
      (await run("approve", "agent", "ada@example.org", "--config", config)).stdout,
      "is approved",
    );
    assert.is((await run("disapprove", "agent", "ada@example.org", "--config", config)).code, 0);
    assert.match(
      (await run("disapprove", "agent", "ada@example.org", "--config", config)).stderr,
      "ada@example.org was not approved as agent.",
    );
    // The emergency switch is a file beside the configuration.
    writeFileSync(join(folder, "api-disabled"), "");
    assert.is((await get(true, port, "/api/v1/studies")).status, 503);
    rmSync(join(folder, "api-disabled"));
  } finally {
    await end(child);
  }
});

test("behind a trusted proxy, HTTP is served only if the proxy ended TLS", async () => {
  const config = configuration("proxied.json", {
    host: "127.0.0.1",
    database: "proxied.db",
    trusted_proxies: ["127.0.0.1"],
  });
  const { child, port } = await start(config);
  try {
    const proxied = { "X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7" };
    assert.is((await get(false, port, "/api/v1/studies", proxied)).status, 401);
    assert.is((await get(false, port, "/", proxied)).status, 200);
    const plain = await get(false, port, "/api/v1/studies");
    assert.ok(plain.status >= 400 && plain.status < 500, `plain HTTP answered ${plain.status}`);
    assert.is(plain.location, undefined);
    assert.match(plain.text, "HTTPS");
  } finally {
    await end(child);
  }
});

test("a configuration that cannot be used is told in one sentence", async () => {
  const cases: Array<[object, string]> = [
    [{ origin: "http://localhost" }, "origin must be https"],
    [{}, "needs either tls (a certificate) or trusted_proxies"],
    [{ trusted_proxies: ["127.0.0.1"], orgin: 1 }, "orgin"],
    [{ tls: { certificate: "absent.pem", key: "absent.pem" } }, "absent.pem"],
    [
      { trusted_proxies: ["127.0.0.1"], github: { client_id: "x" } },
      "TAPLINE_GITHUB_CLIENT_SECRET is not set",
    ],
  ];
  for (const [content, sentence] of cases) {
    const { code, stdout, stderr } = await run(
      "--config",
      configuration("wrong.json", content),
      "--port",
      "0",
    );
    assert.is(code, 1, `${JSON.stringify(content)}: ${stdout}${stderr}`);
    assert.is(stdout, "");
    assert.match(stderr, sentence);
    assert.is(stderr.trim().split("\n").length, 1, stderr);
  }
  assert.match((await run()).stderr, "Use either --dev (development mode) or --config <file>");
});

test.run();
