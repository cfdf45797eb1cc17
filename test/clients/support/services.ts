import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Scope } from "../../../src/contracts/studies/index.js";
import { signInAccount } from "../../../src/studies/store/accounts.js";
import { openStore } from "../../../src/studies/store/open.js";
import { createToken } from "../../../src/studies/store/tokens.js";
import { program } from "../../support/program.js";

/** A `tapline` command in a separate process that has reported that it is ready. */
interface Running {
  /** The match of the pattern's first group. */
  ready: string;
  stop(): Promise<void>;
}

/** Starts a command and waits until its output matches. */
async function start(words: string[], pattern: RegExp, more: NodeJS.ProcessEnv = {}): Promise<Running> {
  const child = spawn(process.execPath, [...program, ...words], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, DATABASE_URL: undefined, ...more },
  });
  const ended = once(child, "close");
  const ready = await firstMatch(child, pattern, `tapline ${words.join(" ")}`);
  return {
    ready,
    async stop() {
      child.kill("SIGTERM");
      await ended;
    },
  };
}

function firstMatch(child: ChildProcess, pattern: RegExp, name: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = "";
    const look = (text: Buffer) => {
      output += text;
      const match = pattern.exec(output);
      if (match !== null) resolve(match[1] as string);
    };
    child.stdout?.on("data", look);
    child.stderr?.on("data", look);
    child.once("close", () => reject(new Error(`${name} ended early: ${output}`)));
  });
}

export interface LocalServices {
  lab: string;
  servingPort: number;
  stop(): Promise<void>;
}

/** `tapline lab` and `tapline serve` with the demo model, on free ports. */
export async function startLocal(): Promise<LocalServices> {
  const home = mkdtempSync(join(tmpdir(), "tapline-clients-"));
  const started = await Promise.allSettled([
    start(["lab", "--port", "0", "--home", home, "--queue", "8"], /ready at (http:\S+)/),
    start(["serve", "--port", "0"], /ready at (http:\S+)/, { TAPLINE_HOME: home }),
  ]);
  const running = started.flatMap((entry) => (entry.status === "fulfilled" ? [entry.value] : []));
  const stop = async () => {
    await Promise.all(running.map((service) => service.stop()));
    rmSync(home, { recursive: true, force: true });
  };
  const [lab, serving] = running;
  if (lab === undefined || serving === undefined) {
    await stop();
    throw started.find((entry) => entry.status === "rejected")?.reason;
  }
  return { lab: lab.ready, servingPort: Number(new URL(serving.ready).port), stop };
}

export interface StudiesService {
  origin: string;
  /** PEM file that clients take as their CA, and the key that belongs to it. */
  certificateFile: string;
  keyFile: string;
  /** Makes a token of an account, in the database of the running service. */
  token(name: string, scopes: Scope[]): Promise<string>;
  stop(): Promise<void>;
}

/** `tapline studies --dev` with its example studies, on a free port. */
export async function startStudies(): Promise<StudiesService> {
  const folder = mkdtempSync(join(tmpdir(), "tapline-clients-"));
  const words = ["studies", "--dev", "--seed-data", "--port", "0", "--data", folder];
  const running = await start(words, /Studies at (https:[^\s,]+)[\s\S]*CA certificate for clients/).catch(
    (error) => {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    },
  );
  return {
    origin: running.ready,
    certificateFile: join(folder, "development-certificate.pem"),
    keyFile: join(folder, "development-key.pem"),
    async token(name, scopes) {
      const store = await openStore(join(folder, "studies.db"));
      try {
        const email = `${name.toLowerCase()}@example.org`;
        const account = await signInAccount(store, {
          issuer: "test",
          subject: name,
          name,
          email,
          login: null,
        });
        const made = await createToken(store, account.id, { name: "test", days: 1, scopes });
        if (made === null) throw new Error(`${name} has too many tokens.`);
        return made.token;
      } finally {
        await store.close();
      }
    },
    async stop() {
      await running.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
