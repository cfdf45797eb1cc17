import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { backendInfo } from "../../src/native/index.js";
import { type EnvironmentName, environment } from "../../test/support/real/environments.js";
import type { Answer, Task } from "./tasks.js";

/** Tools in the order of the table's columns, and the environment that each lives in. */
export const tools = {
  transformers: "transformers",
  TransformerLens: "transformer-lens",
  nnsight: "nnsight",
  "interp-engine": "interp-engine",
} as const satisfies Record<string, EnvironmentName>;
export type ToolName = keyof typeof tools;

const script = fileURLToPath(new URL("./tool.py", import.meta.url));
const client = fileURLToPath(new URL("../../clients/python/tapline_lab/src/", import.meta.url));
const cold = fileURLToPath(new URL("./cold.js", import.meta.url));
const offline = {
  HF_HUB_OFFLINE: "1",
  TRANSFORMERS_OFFLINE: "1",
  TQDM_DISABLE: "1",
  PYTHONWARNINGS: "ignore",
};

/** Whether the addon computes on a GPU: then all sides do. On the processor they have no other choice. */
export const onGpu = () => backendInfo().backend !== "cpu";

/** A process that answers a line with a line. */
export class Lines {
  readonly #answers: AsyncIterator<string>;
  #said = "";

  private constructor(
    readonly name: string,
    readonly process: ChildProcess,
  ) {
    this.#answers = createInterface({ input: process.stdout as NodeJS.ReadableStream })[
      Symbol.asyncIterator
    ]();
    process.stderr?.on("data", (chunk) => {
      this.#said = (this.#said + chunk).slice(-2000);
    });
  }

  /** A peer, in its environment or in another one; or tapline's server and Python client, for which `folder` is a file. */
  static async tool(
    name: ToolName | "tapline",
    folder: string,
    threads: number,
    within: EnvironmentName = name === "tapline" ? "transformers" : tools[name],
  ): Promise<Lines> {
    const python = await environment(within);
    const child = spawn(python, ["-B", script, name, folder, `${threads}`, onGpu() ? "cuda" : "cpu"], {
      env: { ...process.env, ...offline, OMP_NUM_THREADS: `${threads}`, PYTHONPATH: client },
    });
    return new Lines(name, child);
  }

  /** tapline as a separate process, for one capture. */
  static tapline(path: string, threads: number): Lines {
    return new Lines(
      "tapline",
      spawn(process.execPath, [cold, path, `${threads}`, onGpu() ? "gpu" : "processor"]),
    );
  }

  async run(task: Task): Promise<Answer> {
    this.process.stdin?.write(`${JSON.stringify(task)}\n`);
    if (this.process.spawnfile === process.execPath) this.process.stdin?.end();
    const { value, done } = await this.#answers.next();
    if (done) throw new Error(`${this.name} ended without an answer:\n${this.#said}`);
    return JSON.parse(value) as Answer;
  }

  async close(): Promise<void> {
    if (this.process.exitCode !== null) return;
    const ended = once(this.process, "exit");
    this.process.stdin?.end();
    await ended;
  }
}
