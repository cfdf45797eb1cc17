import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { reachRpcServers } from "../../../src/models/rpc.js";
import { builtTool } from "../../support/built-tool.js";
import { freePort } from "../../support/free-port.js";
import { until } from "../../support/until.js";

/** llama.cpp's rpc-server on loopback. */
export interface RunningRpcServer {
  readonly host: string;
  readonly port: number;
  /** Starts it again on its port. */
  start(): Promise<void>;
  kill(): Promise<void>;
}

interface Options {
  /** Another machine to run it on: its address, and what runs a program there. */
  there?: { host: string; runs: string[] };
  threads?: number;
}

export async function startRpcServer({ there, threads = 1 }: Options = {}): Promise<RunningRpcServer> {
  const path = await builtTool("rpc-server");
  const host = there?.host ?? "127.0.0.1";
  const port = there === undefined ? await freePort() : 50052;
  let child: ChildProcess | undefined;
  const server: RunningRpcServer = {
    host,
    port,
    async start() {
      const at = ["--host", host, "--port", String(port), "--threads", String(threads), "--device", "CPU"];
      // It would end of the signal for a pipe that broke, where whom it answers has died in the meantime.
      const lasting = ["sh", "-c", 'trap "" PIPE; exec "$0" "$@"', path, ...at];
      const [file, ...words] = [...(there?.runs ?? []), ...lasting] as [string, ...string[]];
      const started = spawn(file, words, { stdio: "ignore" });
      child = started;
      await until(() =>
        reachRpcServers([server]).then(
          () => true,
          (error) => {
            if (started.exitCode !== null) throw error;
            return false;
          },
        ),
      );
    },
    async kill() {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    },
  };
  await server.start();
  return server;
}
