import { type ChildProcess, fork } from "node:child_process";
import { closeSync } from "node:fs";
import type { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { UserError } from "../../contracts/user-error.js";
import type { DownloadProgress } from "../../models/hub/index.js";
import type { EngineInfo } from "../../native/engine.js";
import { createStates, readStates } from "./connection-states.js";
import { Front } from "./front.js";
import type { StartOptions, ToChild, ToParent } from "./messages.js";

export interface SupervisedOptions extends StartOptions {
  host: string;
  /** 0 for any free port. */
  port: number;
  /** How long running answers may continue at shutdown, in milliseconds. */
  graceMs?: number;
  /** Aborts the start: kills the loading process and rejects serve() with the signal's reason. */
  signal?: AbortSignal;
  onEvent?: (event: ServingEvent) => void;
  /** Overrides the serving process's program, for tests. */
  program?: { entry: string; execArgv: string[] };
}

export type ServingEvent =
  | { event: "loading"; stage: string; fraction: number; download?: DownloadProgress }
  | { event: "ready"; url: string; info: EngineInfo; backend: string }
  | { event: "warning"; sentence: string }
  | { event: "crashed"; sentence: string }
  /** An internal error that the service survived. */
  | { event: "fault"; line: string };

export interface Serving {
  readonly url: string;
  readonly host: string;
  readonly port: number;
  readonly info: EngineInfo;
  readonly backend: string;
  /** Process id of the serving process, while there is one. */
  readonly pid: number | undefined;
  /** Rejects with one sentence if the server gives up after repeated crashes; resolves at close(). */
  readonly ended: Promise<void>;
  /** Lets running answers finish briefly, then ends everything within five seconds. Idempotent. */
  close(): Promise<void>;
}

// The same file beside this one, from src/ under tsx and from dist/.
const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
const ownProgram = {
  entry: fileURLToPath(new URL(`./main.${extension}`, import.meta.url)),
  execArgv: process.execArgv,
};

/** This many quick failures in a row are a crash loop. */
const crashLoop = 5;
/** A process that served for this long did not fail quickly. */
const quickMs = 5000;
const backOffMs = (failures: number) => (failures <= 1 ? 0 : Math.min(5000, 250 * 2 ** (failures - 2)));
const lastWordsLength = 2000;
/** The same switch as for llama.cpp's log: its output is passed on to standard error. */
const verbose = /^[^0]/.test(process.env.TAPLINE_LLAMA_LOG ?? "");
const graceMs = 3000;
/** Additional time for the engine to end. */
const endMs = 1500;

/**
 * Serves a model in a separate process, so that a native crash never ends this one. The process is restarted;
 * meanwhile the port stays bound and answers 503. Resolves once the model is first served.
 * @throws UserError if the port cannot be bound or the model cannot be loaded
 */
export async function serve(options: SupervisedOptions): Promise<Serving> {
  const front = await Front.open(options.host, options.port, options.cors);
  const supervisor = new Supervisor(front, options);
  const { signal } = options;
  const abandon = () => supervisor.abandon();
  signal?.addEventListener("abort", abandon, { once: true });
  try {
    signal?.throwIfAborted();
    await supervisor.start();
    signal?.throwIfAborted();
  } catch (error) {
    await supervisor.close();
    throw signal?.aborted ? signal.reason : error;
  } finally {
    signal?.removeEventListener("abort", abandon);
  }
  return supervisor;
}

/** The parent's copies of connections. */
type Handed = Map<number, Socket>;

class Supervisor implements Serving {
  readonly ended: Promise<void>;
  readonly #front: Front;
  readonly #options: SupervisedOptions;
  readonly url: string;
  readonly host: string;
  readonly port: number;
  #child: ChildProcess | undefined;
  #info: EngineInfo | undefined;
  #backend = "";
  #nextConnection = 0;
  #failures = 0;
  #restart: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;
  #settleEnded: { resolve: () => void; reject: (error: Error) => void };

  constructor(front: Front, options: SupervisedOptions) {
    this.#front = front;
    this.#options = options;
    ({ url: this.url, host: this.host, port: this.port } = front);
    const settle = {} as { resolve: () => void; reject: (error: Error) => void };
    this.ended = new Promise((resolve, reject) => Object.assign(settle, { resolve, reject }));
    this.ended.catch(() => {}); // unobserved rejections must not end the process
    this.#settleEnded = settle;
  }

  get info(): EngineInfo {
    return this.#info as EngineInfo;
  }

  get backend(): string {
    return this.#backend;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** The first start: failures are reported, not retried. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      let served = false;
      this.#launch(
        () => {
          served = true;
          resolve();
        },
        (sentence, servedMs, killed) => {
          if (served) this.#recover(sentence, servedMs, killed);
          else reject(new UserError(sentence));
        },
      );
    });
  }

  #launch(onReady: () => void, onDeath: (sentence: string, servedMs: number, killed: boolean) => void): void {
    const { entry, execArgv } = this.#options.program ?? ownProgram;
    let states: number;
    try {
      states = createStates();
    } catch (error) {
      onDeath((error as Error).message, 0, false);
      return;
    }
    const child = fork(entry, [], {
      execArgv,
      // A separate process group: a Ctrl-C in the terminal reaches only this process, which then ends the child
      // cleanly.
      detached: process.platform !== "win32",
      stdio: ["ignore", "pipe", "pipe", "ipc", states],
      env: { ...process.env, GGML_NO_BACKTRACE: "1" },
    });
    this.#child = child;
    const handed: Handed = new Map();
    // Its last messages may arrive after its exit.
    const heard = new Promise<void>((resolve) => child.once("disconnect", resolve));
    let readyAt: number | undefined;
    let failure: string | undefined;
    // llama.cpp logs grammar errors and its last output there; only the tail is kept.
    let lastWords = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (text: Buffer) => {
        lastWords = (lastWords + text.toString()).slice(-lastWordsLength);
        if (verbose) process.stderr.write(text);
      });
    }
    child.on("error", (error) => {
      failure ??= `The serving process could not be started: ${error.message}.`;
      if (child.pid === undefined) died(null, null);
    });
    child.on("message", (message: ToParent) => {
      switch (message.type) {
        case "progress": {
          const { type: _type, ...progress } = message;
          this.#emit({ event: "loading", ...progress });
          break;
        }
        case "warning":
          this.#emit({ event: "warning", sentence: message.sentence });
          break;
        case "ready":
          readyAt = performance.now();
          this.#info = message.info;
          this.#backend = message.backend;
          this.#front.handTo((socket) => this.#hand(child, socket, handed));
          this.#emit({ event: "ready", url: this.url, info: message.info, backend: message.backend });
          onReady();
          break;
        case "failed":
          failure ??= message.sentence;
          break;
        case "closed":
          for (const id of message.ids) {
            handed.get(id)?.destroy();
            handed.delete(id);
          }
          break;
        case "log":
          this.#emit({ event: "fault", line: message.line });
          break;
      }
    });
    let dead = false;
    const died = (code: number | null, signal: NodeJS.Signals | null) => {
      if (dead) return;
      dead = true;
      if (this.#child === child) this.#child = undefined;
      this.#front.away("The server is restarting after a crash; retry in a moment.");
      const inherit = () => this.#inherit(handed, states);
      if (child.connected) void heard.then(inherit);
      else inherit();
      const servedMs = readyAt === undefined ? 0 : performance.now() - readyAt;
      onDeath(
        failure ?? describeDeath(code, signal, lastWords),
        servedMs,
        signal === "SIGKILL" && readyAt !== undefined,
      );
    };
    child.on("exit", died);
    // A restarted process may wait for an rpc-server to restart as well.
    const patient = this.#info !== undefined;
    this.#send(child, { type: "start", options: { ...startOptions(this.#options), patient } });
  }

  /** Restarts a serving process that died, unless it keeps crashing. */
  #recover(sentence: string, servedMs: number, killed: boolean): void {
    if (this.#closing !== undefined) return;
    this.#failures = killed || servedMs > quickMs ? 0 : this.#failures + 1;
    this.#emit({ event: "crashed", sentence });
    if (this.#failures >= crashLoop) {
      this.#settleEnded.reject(
        new UserError(
          `The serving process failed ${this.#failures} times in a row. Last failure: ${sentence}`,
        ),
      );
      void this.close();
      return;
    }
    this.#restart = setTimeout(
      () => this.#launch(() => {}, this.#recover.bind(this)),
      backOffMs(this.#failures),
    );
  }

  /** Takes over a dead process's connections and answers those still waiting for a first byte. */
  #inherit(handed: Handed, states: number): void {
    const known = readStates(states);
    closeSync(states);
    for (const [id, socket] of handed) {
      if (socket.destroyed) continue;
      const waiting = known.get(id);
      if (!known.has(id)) this.#front.refuse(socket);
      else if (waiting !== undefined && this.#closing === undefined) this.#front.giveUp(socket, waiting);
      else socket.destroy();
    }
    handed.clear();
  }

  #hand(child: ChildProcess, socket: Socket, handed: Handed): void {
    const id = this.#nextConnection++;
    handed.set(id, socket);
    socket.on("error", () => socket.destroy());
    // Stays open here as long as in the child, so that it survives the child's death.
    child.send({ type: "connection", id } satisfies ToChild, socket, { keepOpen: true }, (error) => {
      if (error === null) return;
      handed.delete(id);
      if (!socket.destroyed) this.#front.refuse(socket);
    });
  }

  /** Kills the serving process immediately. */
  abandon(): void {
    this.#child?.kill("SIGKILL");
  }

  #send(child: ChildProcess, message: ToChild): void {
    // A dead process is noticed by its exit.
    if (child.connected) child.send(message, () => {});
  }

  #emit(event: ServingEvent): void {
    this.#options.onEvent?.(event);
  }

  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  async #end(): Promise<void> {
    clearTimeout(this.#restart);
    this.#front.away("The server is shutting down.");
    this.#front.close();
    const child = this.#child;
    if (child !== undefined && child.exitCode === null && child.signalCode === null) {
      const grace = this.#options.graceMs ?? graceMs;
      const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
      this.#send(child, { type: "end", graceMs: grace });
      const deadline = setTimeout(() => child.kill("SIGKILL"), grace + endMs);
      await gone;
      clearTimeout(deadline);
    }
    this.#settleEnded.resolve();
  }
}

function startOptions(options: SupervisedOptions): StartOptions {
  const { host, port, graceMs, onEvent, signal, program, ...rest } = options;
  return rest;
}

function describeDeath(code: number | null, signal: NodeJS.Signals | null, lastWords: string): string {
  if (signal === "SIGKILL") return "The serving process was killed, by a user or for lack of memory.";
  if (lastWords.includes("Remote RPC server crashed")) {
    return "An rpc-server was lost, along with its part of the model.";
  }
  const said = lastWords.trimEnd().split("\n").at(-1);
  const quote = said ? `; its last output: ${said}` : "";
  if (signal !== null) return `The serving process crashed (${signal})${quote}.`;
  return `The serving process ended with code ${code}${quote}.`;
}
