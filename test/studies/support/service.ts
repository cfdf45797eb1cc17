import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Scope } from "../../../src/contracts/studies/index.js";
import type { Provider } from "../../../src/studies/auth/providers.js";
import { developmentCertificate } from "../../../src/studies/dev/certificate.js";
import { type RunningStudies, startStudies } from "../../../src/studies/start.js";
import { signInAccount } from "../../../src/studies/store/accounts.js";
import { approve } from "../../../src/studies/store/approvals.js";
import type { StoreOptions } from "../../../src/studies/store/open.js";
import { startSession } from "../../../src/studies/store/sessions.js";
import { createToken } from "../../../src/studies/store/tokens.js";

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  bytes: Buffer;
  text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  json: any;
}

export interface Call {
  method?: string;
  headers?: Record<string, string | string[]>;
  body?: string | Buffer;
  /** Sends the body in chunks of this many bytes, without Content-Length. */
  chunk?: number;
}

export interface TestService {
  running: RunningStudies;
  log: string[];
  disableFile: string;
  /** A request with exactly these headers. */
  call(path: string, call?: Call): Promise<Answer>;
  /** The same with a token. */
  api(token: string, path: string, call?: Call): Promise<Answer>;
  account(
    name: string,
    roles?: ("agent" | "publisher")[],
  ): Promise<{ id: string; name: string; cookie: string }>;
  token(accountId: string, scopes?: Scope[], days?: number): Promise<{ id: string; token: string }>;
  close(): Promise<void>;
}

let certificate: Promise<{ cert: string; key: string }> | undefined;

export async function startService(
  database: string,
  options: { store?: StoreOptions; providers?: (origin: string) => Promise<Provider[]> } = {},
): Promise<TestService> {
  certificate ??= developmentCertificate();
  const tls = await certificate;
  const folder = mkdtempSync(join(tmpdir(), "tapline-studies-"));
  const log: string[] = [];
  const disableFile = join(folder, "disabled");
  const running = await startStudies({
    origin: "https://localhost:0",
    host: "127.0.0.1",
    port: 0,
    database,
    tls,
    trustedProxies: null,
    disableFile,
    providers: options.providers ?? (() => []),
    store: options.store,
    log: (line) => log.push(line),
  });
  const agent = new Agent({ ca: tls.cert, keepAlive: true, maxSockets: 32 });
  const call = (path: string, { method = "GET", headers = {}, body, chunk }: Call = {}) =>
    new Promise<Answer>((resolve, reject) => {
      const outgoing = request(
        { host: "localhost", port: running.port, family: 4, path, method, headers, agent },
        (incoming) => {
          const parts: Buffer[] = [];
          incoming.on("data", (part) => parts.push(part));
          incoming.on("error", reject);
          incoming.on("end", () => {
            const bytes = Buffer.concat(parts);
            const text = bytes.toString("utf8");
            let json: unknown;
            try {
              json = JSON.parse(text);
            } catch {}
            resolve({ status: incoming.statusCode as number, headers: incoming.headers, bytes, text, json });
          });
        },
      );
      outgoing.on("error", reject);
      if (chunk !== undefined && body !== undefined) {
        const bytes = Buffer.from(body);
        for (let at = 0; at < bytes.length; at += chunk) outgoing.write(bytes.subarray(at, at + chunk));
        outgoing.end();
      } else {
        if (body !== undefined && headers["Content-Length"] === undefined) {
          outgoing.setHeader("Content-Length", Buffer.byteLength(body));
        }
        outgoing.end(body);
      }
    });
  const { store } = running.service;
  return {
    running,
    log,
    disableFile,
    call,
    api: (token, path, given = {}) =>
      call(path, {
        ...given,
        headers: {
          Authorization: `Bearer ${token}`,
          ...(given.body === undefined ? {} : { "Content-Type": "application/json" }),
          ...given.headers,
        },
      }),
    async account(name, roles = ["agent", "publisher"]) {
      const email = `${name.toLowerCase()}@example.org`;
      const account = await signInAccount(store, { issuer: "test", subject: name, name, email, login: null });
      for (const role of roles) await approve(store, role, email);
      const cookie = `__Host-tapline-session=${await startSession(store, account.id, "test")}`;
      return { id: account.id, name, cookie };
    },
    async token(accountId, scopes = ["public:read", "drafts:write"], days = 30) {
      const made = await createToken(store, accountId, { name: "test", days, scopes });
      if (made === null) throw new Error("Too many tokens in this test.");
      return made;
    },
    async close() {
      agent.destroy();
      await running.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
