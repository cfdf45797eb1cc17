/** Commands of `tapline` in separate processes, which are killed and started again at the same address. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { processesMarked } from "../cli/processes.js";
import { program } from "../support/program.js";

export class Killable {
  readonly #words: readonly string[];
  readonly #home: string;
  readonly #mark = randomUUID();
  #child: ChildProcess | undefined;
  /** The process that is held up, if one is. */
  #held: number | undefined;
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
      env: {
        ...process.env,
        TAPLINE_HOME: this.#home,
        TAPLINE_BACKEND: "cpu",
        ...environment,
        TAPLINE_TEST_RUN: this.#mark,
      },
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

  /**
   * Lets one of its processes run for a moment at a time until something is seen, and no further: it would finish its work
   * in between before a page on a busy machine has shown its beginning.
   */
  async inMoments(command: RegExp, seen: () => Promise<boolean>): Promise<void> {
    const held = processesMarked(this.#mark).find((one) => command.test(one.command))?.pid;
    if (held === undefined) throw new Error(`No process ${command} of ${this.#words.join(" ")} runs.`);
    this.#held = held;
    for (process.kill(held, "SIGSTOP"); !(await seen()); await sleep(100)) {
      process.kill(held, "SIGCONT");
      await sleep(2);
      process.kill(held, "SIGSTOP");
    }
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
    if (this.#held !== undefined) process.kill(this.#held, "SIGKILL");
    this.#held = undefined;
    await ended;
  }
}
