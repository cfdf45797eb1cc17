import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { buildTools } from "../../../scripts/build/tools.js";
import { send } from "../../support/request.js";

const command = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url));
/** The command line of tapline's serving process contains this. */
const engine = "inference/process/main";
const model = fileURLToPath(new URL("../../../models/demo/tapline-demo.gguf", import.meta.url));

/** A command that serves the demo model on a port. */
export type Serve = (port: number) => { file: string; words: string[] };

/** Longer than any server needs to start or to end on a machine as busy as this test makes it. */
const patienceMs = 60_000;

export const tapline: Serve = (port) => ({
  file: process.execPath,
  words: ["--import", "tsx", command, "serve", "--model", "demo", "--port", String(port), "--parallel", "4"],
});

export async function llamaServer(): Promise<Serve> {
  const { "llama-server": file } = await buildTools(["llama-server"]);
  return (port) => ({
    file: file as string,
    words: ["-m", model, "--port", String(port), "-np", "4", "-c", "2048", "-t", "1", "--log-disable"],
  });
}

/** A server that is killed, frozen, slowed and started again, and what is true about it. */
export class Backend {
  readonly port: number;
  readonly #serve: Serve;
  #child: ChildProcess | undefined;
  /** Since when it is known to answer, undisturbed; performance.now(), or null while it does not. */
  wellSince: number | null = null;
  /** How often it did not end when it was told to. */
  stuck = 0;

  constructor(port: number, serve: Serve) {
    this.port = port;
    this.#serve = serve;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts it and waits until it answers. */
  async start(): Promise<void> {
    const { file, words } = this.#serve(this.port);
    this.#child = spawn(file, words, { stdio: "ignore" });
    await this.#untilWell();
  }

  /** Ends it at once, as a crash does, or in order; then starts it again after a while. */
  async restart(signal: "SIGKILL" | "SIGTERM", pauseMs: number): Promise<void> {
    this.wellSince = null;
    await this.end(signal);
    await sleep(pauseMs);
    await this.start();
  }

  /** Ends the process that holds the model, where the server has a separate one and will start another. */
  async crashInside(): Promise<void> {
    // tsx may have started a compiler process, which has to live.
    const child = this.#processes().find(({ words }) => words.includes(engine));
    if (child === undefined) return this.restart("SIGKILL", 0);
    this.wellSince = null;
    process.kill(child.pid, "SIGKILL");
    await sleep(100);
    await this.#untilWell();
  }

  async freeze(ms: number): Promise<void> {
    this.wellSince = null;
    this.#signal("SIGSTOP");
    await sleep(ms);
    this.#signal("SIGCONT");
    await this.#untilWell();
  }

  /** Runs a fifth of the time. */
  async slow(ms: number): Promise<void> {
    this.wellSince = null;
    const end = performance.now() + ms;
    while (performance.now() < end) {
      this.#signal("SIGSTOP");
      await sleep(80);
      this.#signal("SIGCONT");
      await sleep(20);
    }
    await this.#untilWell();
  }

  async end(signal: "SIGKILL" | "SIGTERM" = "SIGTERM"): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    const deadline = setTimeout(() => {
      this.stuck++;
      child.kill("SIGKILL");
    }, patienceMs / 4);
    await gone;
    clearTimeout(deadline);
  }

  async #untilWell(): Promise<void> {
    const deadline = performance.now() + patienceMs;
    for (;;) {
      const asked = send(`${this.url}/health`, "GET").catch(() => null);
      const answer = await Promise.race([asked, sleep(2000)]);
      if (answer?.status === 200) break;
      if (performance.now() > deadline) throw new Error(`${this.url} is not well after ${patienceMs} ms`);
      await sleep(20);
    }
    this.wellSince = performance.now();
  }

  #signal(signal: NodeJS.Signals): void {
    for (const { pid } of this.#processes()) {
      try {
        process.kill(pid, signal);
      } catch {
        // it has ended meanwhile
      }
    }
  }

  /** Its process, and then those that it started. */
  #processes(): { pid: number; words: string }[] {
    const table = execFileSync("ps", ["-axo", "pid=,ppid=,args="], { encoding: "utf8" })
      .split("\n")
      .map((line) => /^ *(\d+) +(\d+) (.*)$/.exec(line) ?? [])
      .map(([, pid, parent, words = ""]) => ({ pid: Number(pid), parent: Number(parent), words }));
    const family = table.filter(({ pid }) => pid === this.#child?.pid);
    for (const one of family) family.push(...table.filter(({ parent }) => parent === one.pid));
    return family;
  }
}

export function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}
