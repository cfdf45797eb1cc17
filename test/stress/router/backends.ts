import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { buildTools } from "../../../scripts/build/tools.js";
import { send } from "../../support/request.js";

const command = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url));
const model = fileURLToPath(new URL("../../../models/demo/tapline-demo.gguf", import.meta.url));

/** A command that serves the demo model on a port. */
export type Serve = (port: number) => { file: string; words: string[] };

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

  /** Ends the process that holds the model, where the server has one of its own and will start another. */
  async crashInside(): Promise<void> {
    const [child] = this.#processes().slice(1);
    if (child === undefined) return this.restart("SIGKILL", 0);
    this.wellSince = null;
    process.kill(child, "SIGKILL");
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
    await gone;
  }

  async #untilWell(): Promise<void> {
    for (;;) {
      const asked = send(`${this.url}/health`, "GET").catch(() => null);
      const answer = await Promise.race([asked, sleep(2000)]);
      if (answer?.status === 200) break;
      await sleep(20);
    }
    this.wellSince = performance.now();
  }

  #signal(signal: NodeJS.Signals): void {
    for (const pid of this.#processes()) {
      try {
        process.kill(pid, signal);
      } catch {
        // it has ended meanwhile
      }
    }
  }

  /** Its process, and then those that it started. */
  #processes(): number[] {
    const table = execFileSync("ps", ["-axo", "pid=,ppid="], { encoding: "utf8" })
      .trim()
      .split("\n")
      .map((line) => line.trim().split(/\s+/).map(Number) as [number, number]);
    const family = [this.#child?.pid as number];
    for (const pid of family)
      family.push(...table.filter(([, parent]) => parent === pid).map(([one]) => one));
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
