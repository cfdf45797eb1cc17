import type { Command } from "commander";
import { Option } from "commander";
import { inferenceLimits } from "../contracts/inference-limits.js";
import { ports } from "../contracts/limits.js";
import type { RpcServer } from "../models/rpc.js";
import { modelHelp, rpcHelp, rpcServers } from "./model-options.js";
import { headerKey, integerBetween, originList } from "./options.js";
import { stopSignal } from "./stop-signal.js";

interface ServeCommandOptions {
  model: string;
  revision?: string;
  rpc?: RpcServer[];
  force?: boolean;
  port: number;
  host: string;
  ctxSize?: number;
  parallel: number;
  threads?: number;
  batch?: number;
  gpuLayers?: number;
  cacheRam?: number;
  thinking?: "on" | "off";
  embeddings?: boolean;
  draft?: string;
  chatTemplate?: string;
  apiKey?: string;
  cors?: string[];
  waiting: number;
  jsonLog?: boolean;
}

export function registerServe(program: Command): void {
  program
    .command("serve")
    .description("Serve a model: OpenAI-style chat, and its inside while it runs.")
    .option("--model <model>", modelHelp, "demo")
    .option("--revision <revision>", "branch, tag or commit of a hub model (default: main)")
    .option("--rpc <servers>", rpcHelp, rpcServers)
    .option("--force", "load a model that does not seem to fit into memory")
    .option("--port <number>", "port; 0 takes any free one", integerBetween(0, 65535), ports.inference)
    .option(
      "--host <address>",
      "address to bind; another than loopback shares /v1 and /health on the network, with a key the rest too",
      "127.0.0.1",
    )
    .option(
      "--ctx-size <tokens>",
      "tokens of one slot (default: the model's, at most 8192)",
      integerBetween(16, 10_000_000),
    )
    .option(
      "--parallel <slots>",
      "requests generated at the same time",
      integerBetween(1, inferenceLimits.slots),
      4,
    )
    .option(
      "--threads <number>",
      "threads that compute (default: the machine's cores, 1 for tiny models)",
      integerBetween(1, 1024),
    )
    .option(
      "--batch <tokens>",
      "tokens decoded at once (default: 256 on a CPU, 2048 on a GPU)",
      integerBetween(1, 65536),
    )
    .option(
      "--gpu-layers <number>",
      "blocks kept on the GPU (default: all that fit)",
      integerBetween(0, 100_000),
    )
    .option("--cache-ram <MiB>", "memory for prompts kept for reuse", integerBetween(0, 10_000_000), 512)
    .option(
      "--waiting <number>",
      "requests that may wait for a slot",
      integerBetween(0, 100_000),
      inferenceLimits.waiting,
    )
    .addOption(
      new Option("--thinking <switch>", "whether answers think, where the template can").choices([
        "on",
        "off",
      ]),
    )
    .option(
      "--draft <model>",
      "a smaller model of the same vocabulary that guesses tokens ahead; answers stay the same",
    )
    .option("--embeddings", "serve /v1/embeddings even for a large vocabulary")
    .option("--no-embeddings", "do not serve /v1/embeddings")
    .option("--chat-template <file>", "Jinja template instead of the model's own")
    .addOption(
      new Option("--api-key <key>", "key that /v1 asks for").env("TAPLINE_API_KEY").argParser(headerKey),
    )
    .option("--cors <origin>", "origin whose pages may use /v1, or *; once for each", originList)
    .option("--json-log", "write what happens as lines of JSON")
    .action(runServe);
}

async function runServe(options: ServeCommandOptions): Promise<void> {
  const stopped = stopSignal();
  const [{ serve }, { serveReport }, { readInput }] = await Promise.all([
    import("../inference/process/supervisor.js"),
    import("./serve-report.js"),
    import("./input-files.js"),
  ]);
  const report = serveReport(options.jsonLog === true, options.model);
  const starting = serve({
    model: options.model,
    revision: options.revision,
    rpc: options.rpc,
    force: options.force,
    host: options.host,
    port: options.port,
    ctxSize: options.ctxSize,
    parallel: options.parallel,
    threads: options.threads,
    batch: options.batch,
    gpuLayers: options.gpuLayers,
    cacheRamMiB: options.cacheRam,
    waiting: options.waiting,
    thinking: options.thinking === undefined ? undefined : options.thinking === "on",
    embeddings: options.embeddings,
    draft: options.draft,
    chatTemplate: options.chatTemplate === undefined ? undefined : await readInput(options.chatTemplate),
    apiKey: options.apiKey,
    cors: options.cors,
    onEvent: report.event,
  });
  // A signal during a long load ends it: the serving process is killed with its parent's connection.
  const serving = await Promise.race([starting, stopped]);
  if (typeof serving === "string") process.exit(0);
  try {
    await Promise.race([stopped, serving.ended]);
  } finally {
    await serving.close();
  }
}
