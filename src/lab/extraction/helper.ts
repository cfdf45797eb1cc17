import { type ChildProcessByStdio, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { UserError } from "../../contracts/user-error.js";

/** The clients' sources in a checkout, for Pythons without the package. */
const checkout = fileURLToPath(new URL("../../../clients/python/tapline_lab/src", import.meta.url));

/** A Python process that reads or writes what Node.js does not, tapline_lab's `_remote.py`. */
export class Helper {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #place: string;
  readonly #ended: Promise<{ code: number | null; fault?: Error }>;
  #said = "";

  constructor(command: "texts" | "folder", place: string) {
    this.#place = place.replace(/\?.*$/s, ""); // a query may be secret
    const paths = [process.env.PYTHONPATH ?? "", ...(existsSync(checkout) ? [checkout] : [])];
    this.#child = spawn(pythonName(), ["-m", "tapline_lab._remote", command, place], {
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...process.env, PYTHONPATH: paths.filter((path) => path !== "").join(delimiter) },
    });
    this.#child.stdin.on("error", () => {}); // it has ended, which is reported below
    this.#child.stderr.on("data", (chunk) => {
      this.#said = `${this.#said}${chunk}`.slice(-4000);
    });
    this.#ended = new Promise((resolve) => {
      this.#child.once("error", (fault) => resolve({ code: null, fault }));
      this.#child.once("close", (code) => resolve({ code }));
    });
  }

  get input(): Writable {
    return this.#child.stdin;
  }

  get output(): Readable {
    return this.#child.stdout;
  }

  /** Waits until it has ended. @throws UserError if it failed, or could not start */
  async check(): Promise<void> {
    const { code, fault } = await this.#ended;
    if (code === 0) return;
    const last = this.#said.trim().split("\n").at(-1) ?? "";
    const setUp = "pip install 'tapline-lab[remote]', and set TAPLINE_PYTHON to that Python";
    if ((fault as NodeJS.ErrnoException | undefined)?.code === "ENOENT") {
      throw new UserError(
        `${this.#place} requires Python, but ${pythonName()} was not found. Install Python 3.10 or newer, ${setUp}.`,
      );
    }
    if (/No module named '?tapline_lab/.test(last)) {
      throw new UserError(`${this.#place} requires tapline_lab in ${pythonName()}: ${setUp}.`);
    }
    throw new UserError(
      code === 2 && last !== ""
        ? last
        : `The Python process for ${this.#place} ended early (${fault?.message ?? (last || `exit code ${code}`)}).`,
    );
  }

  /** Ends it, whatever it is doing. */
  async stop(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#ended;
  }
}

function pythonName(): string {
  return process.env.TAPLINE_PYTHON ?? (process.platform === "win32" ? "python" : "python3");
}

/** Answers of a helper, one after another. */
export class Requests {
  readonly #helper: Helper;
  readonly #answers: AsyncIterator<string>;
  #last: Promise<unknown> = Promise.resolve();

  constructor(place: string) {
    this.#helper = new Helper("folder", place);
    this.#answers = createInterface({ input: this.#helper.output })[Symbol.asyncIterator]();
  }

  /** @throws UserError */
  ask<T>(request: Record<string, unknown>): Promise<T> {
    const answer = this.#last.then(() => this.#ask<T>(request));
    this.#last = answer.catch(() => {});
    return answer;
  }

  async #ask<T>(request: Record<string, unknown>): Promise<T> {
    this.#helper.input.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await this.#answers.next();
    if (done) {
      await this.#helper.check();
      throw new UserError("The Python process ended early.");
    }
    const { error, ...rest } = JSON.parse(value) as { error?: string };
    if (error !== undefined) throw new UserError(error);
    return rest as T;
  }

  async close(): Promise<void> {
    await this.#helper.stop();
  }
}
