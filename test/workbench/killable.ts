/** Commands of `tapline` in processes of their own, which are killed and started again at the same address. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { program } from "../support/program.js";

export class Killable {
  readonly #words: readonly string[];
  readonly #home: string;
  #child: ChildProcess | undefined;
  #port = "0";
  url = "";

  private constructor(words: readonly string[], home: string) {
    this.#words = words;
    this.#home = home;
  }

  /** Starts a command that says where it is ready. */
  static async start(
    words: readonly string[],
    home: string,
    environment?: NodeJS.ProcessEnv,
  ): Promise<Killable> {
    const command = new Killable(words, home);
    await command.startAgain(environment);
    return command;
  }

  /** Starts it at the address that it had. */
  async startAgain(environment: NodeJS.ProcessEnv = {}): Promise<void> {
    const child = spawn(process.execPath, [...program, ...this.#words, "--port", this.#port], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, TAPLINE_HOME: this.#home, TAPLINE_BACKEND: "cpu", ...environment },
    });
    this.#child = child;
    this.url = await new Promise<string>((resolve, reject) => {
      let said = "";
      for (const stream of [child.stdout, child.stderr]) {
        stream.on("data", (chunk: Buffer) => {
          said += chunk;
          const found = /ready at (http:\S+)/.exec(said)?.[1];
          if (found !== undefined) resolve(found);
        });
      }
      child.once("close", () => reject(new Error(`tapline ${this.#words.join(" ")} ended early: ${said}`)));
    });
    this.#port = new URL(this.url).port;
  }

  /** For a test behind one that failed in between. */
  async startUnlessRunning(): Promise<void> {
    if (this.#child?.exitCode !== null || this.#child.signalCode !== null) await this.startAgain();
  }

  /** Ends it as who pulls a plug does, and with it what it started. */
  kill(): Promise<void> {
    return this.#end("SIGKILL");
  }

  close(): Promise<void> {
    return this.#end("SIGTERM");
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    // Its output closes when what it started has ended, too.
    const ended = once(child, "close");
    child.kill(signal);
    await ended;
  }
}
