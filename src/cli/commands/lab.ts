import type { Command } from "commander";
import { limits, ports } from "../../contracts/limits.js";
import type { RpcServer } from "../../models/rpc.js";
import { deviceNames, rpcHelp, rpcServers } from "../model-options.js";
import { integerBetween } from "../options.js";
import { stopSignal } from "../stop-signal.js";

interface LabCommandOptions {
  port: number;
  home?: string;
  queue: number;
  rpc?: RpcServer[];
  gpuLayers?: number;
  device?: string[];
  force?: boolean;
}

export function registerLab(program: Command): void {
  program
    .command("lab")
    .description(
      "Run the Lab service for experiments: inspect, compare, probe, sae, features, extract, drift, patch_sweep, explain, graph.",
    )
    .option("--port <number>", "port on 127.0.0.1; 0 picks a free port", integerBetween(0, 65535), ports.lab)
    .option("--home <directory>", "folder for jobs (default: $TAPLINE_HOME or ~/.tapline)")
    .option(
      "--queue <number>",
      "number of jobs that may wait while one is running",
      integerBetween(0, limits.queue_capacity),
      0,
    )
    .option("--rpc <servers>", rpcHelp, rpcServers)
    .option(
      "--gpu-layers <number>",
      "number of blocks to load on GPUs (default: as many as fit)",
      integerBetween(0, 100_000),
    )
    .option(
      "--device <names>",
      "GPUs to use, by their names in tapline doctor, or none for CPU only (default: all)",
      deviceNames,
    )
    .option("--force", "load models even if they may not fit in memory")
    .action(runLab);
}

async function runLab(options: LabCommandOptions): Promise<void> {
  const stopped = stopSignal();
  const [{ startLab, taplineHome }, { backendInfo }] = await Promise.all([
    import("../../lab/index.js"),
    import("../../native/index.js"),
  ]);
  const lab = await startLab({
    port: options.port,
    home: taplineHome(options.home),
    queueCapacity: options.queue,
    backend: backendInfo().backend,
    load: {
      rpc: options.rpc,
      force: options.force,
      gpuLayers: options.gpuLayers,
      devices: options.device,
    },
  });
  try {
    process.stdout.write(`tapline lab is ready at ${lab.url} (jobs in ${lab.folder})\n`);
    await stopped;
  } finally {
    await lab.close();
  }
}
