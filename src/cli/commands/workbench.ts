import type { Command } from "commander";
import { ports } from "../../contracts/limits.js";
import { UsageError } from "../exit-code.js";
import { modelHelp } from "../model-options.js";
import { integerBetween } from "../options.js";
import { origin } from "../service-address.js";
import { endBy, stopSignal } from "../stop-signal.js";
import type { WorkbenchRunOptions } from "./workbench-run.js";

interface WorkbenchCommandOptions extends Omit<WorkbenchRunOptions, "model" | "signal"> {
  model?: string;
  link?: boolean;
}

export function registerWorkbench(program: Command): void {
  program
    .command("workbench")
    .description("Open a local web page to inspect, steer and patch models. Starts the services it needs.")
    .argument("[model]", "the same as --model")
    .option("-m, --model <model>", `${modelHelp} (default: the running server's model, or demo)`)
    .option(
      "--port <number>",
      "port on 127.0.0.1; 0 picks a free port",
      integerBetween(0, 65535),
      ports.workbench,
    )
    .option("--url <url>", "address or port of a running tapline serve", origin)
    .option("--lab <url>", "address or port of a running Lab", origin)
    .option(
      "--server-port <number>",
      `port of the server that it starts; 0 picks a free port (default: ${ports.inference}, or a free port)`,
      integerBetween(0, 65535),
    )
    .option(
      "--lab-port <number>",
      `port of the Lab that it starts; 0 picks a free port (default: ${ports.lab}, or a free port)`,
      integerBetween(0, 65535),
    )
    .option("--no-open", "print the link without opening a browser")
    .option("--link", "print a new link for a running workbench")
    .action(runWorkbench);
}

async function runWorkbench(named: string | undefined, options: WorkbenchCommandOptions): Promise<void> {
  if (named !== undefined && options.model !== undefined) {
    throw new UsageError("Give the model either as an argument or with --model, not both.");
  }
  const model = named ?? options.model;
  if (model !== undefined && options.url !== undefined) {
    throw new UsageError("--url and --model cannot be combined: the server already has a model.");
  }
  if (options.serverPort !== undefined && options.url !== undefined) {
    throw new UsageError("--server-port and --url cannot be combined: that server already has a port.");
  }
  if (options.labPort !== undefined && options.lab !== undefined) {
    throw new UsageError("--lab-port and --lab cannot be combined: that Lab already has a port.");
  }
  const { newLink, openWorkbench } = await import("./workbench-run.js");
  if (options.link === true) {
    process.stdout.write(`${await newLink(options.port)}\n`);
    return;
  }
  const stop = new AbortController();
  const stopped = stopSignal();
  void stopped.then((signal) => stop.abort(signal));
  try {
    const bench = await openWorkbench({ ...options, model, signal: stop.signal });
    try {
      await Promise.race([stopped, bench.ended]);
    } finally {
      await bench.close();
    }
  } catch (error) {
    if (stop.signal.aborted) return endBy(stop.signal.reason);
    throw error;
  }
}
