import type { Command } from "commander";
import { Option } from "commander";
import type { SamplingDefaults } from "../../contracts/chat.js";
import { inferenceLimits } from "../../contracts/inference-limits.js";
import { ports } from "../../contracts/limits.js";
import type { StartOptions } from "../../inference/process/messages.js";
import { UsageError } from "../exit-code.js";
import { modelHelp, rpcHelp, rpcServers } from "../model-options.js";
import {
  choice,
  collect,
  corsOption,
  integerBetween,
  keyOption,
  loraList,
  numberBetween,
  shareList,
  switches,
} from "../options.js";
import { stopSignal } from "../stop-signal.js";

/** Most options have the name of their setting. */
interface ServeCommandOptions extends Omit<StartOptions, "model" | "thinking" | "cpuMoe" | "profiles"> {
  model?: string;
  alias?: string[];
  profile?: string[];
  lora?: { path: string; scale: number }[];
  flashAttn?: "on" | "off";
  yarnOrigCtx?: number;
  cpuMoe?: boolean;
  nCpuMoe?: number;
  temperature?: number;
  topK?: number;
  topP?: number;
  minP?: number;
  repeatPenalty?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  seed?: number;
  port: number;
  host: string;
  cacheRam?: number;
  thinking?: "on" | "off";
}

export function registerServe(program: Command): void {
  program
    .command("serve")
    .description("Serve a model with an OpenAI-compatible API and live access to its activations.")
    .argument("[model]", "the same as --model")
    .option("-m, --model <model>", `${modelHelp} (default: demo)`)
    .option(
      "--alias <name>",
      "name under which the model is served; repeatable, and responses use the first",
      collect,
    )
    .option(
      "--profile <name>",
      "saved profile that other machines may use as MODEL@NAME; repeatable. Programs on this machine may use all",
      collect,
    )
    .option("--revision <revision>", "branch, tag or commit of a hub model (default: main)")
    .option("--rpc <servers>", rpcHelp, rpcServers)
    .option("--force", "load the model even if it may not fit in memory")
    .option("--port <number>", "port; 0 picks a free port", integerBetween(0, 65535), ports.inference)
    .option(
      "--host <address>",
      "address to bind; any address other than loopback shares /v1 and /health on the network, and with --api-key also further routes",
      "127.0.0.1",
    )
    .option(
      "--ctx-size <tokens>",
      "context size per slot in tokens (default: the model's, at most 8192)",
      integerBetween(16, 10_000_000),
    )
    .option(
      "--parallel <slots>",
      "number of requests processed in parallel",
      integerBetween(1, inferenceLimits.slots),
      4,
    )
    .option(
      "--threads <number>",
      "number of compute threads (default: one per core, 1 for tiny models)",
      integerBetween(1, 1024),
    )
    .option(
      "--batch <tokens>",
      "batch size in tokens (default: 256 on a CPU, 2048 on a GPU)",
      integerBetween(1, 65536),
    )
    .option(
      "--gpu-layers <number>",
      "number of blocks to load on the GPU (default: as many as fit)",
      integerBetween(0, 100_000),
    )
    .option("--cache-ram <MiB>", "memory for the prompt cache", integerBetween(0, 10_000_000), 512)
    .option(
      "--waiting <number>",
      "maximum number of requests waiting for a slot",
      integerBetween(0, 100_000),
      inferenceLimits.waiting,
    )
    .addOption(
      choice(
        "--thinking <switch>",
        "turn thinking on or off by default, if the template supports it",
        switches,
      ),
    )
    .option(
      "--draft <model>",
      "smaller model with the same vocabulary for speculative decoding; does not change answers",
    )
    .option("--mmproj <file>", "the model's image encoder (.gguf); allows images in chats")
    .option("--lora <file[:scale]>", "LoRA adapter (.gguf) and its scale (default: 1); repeatable", loraList)
    .addOption(choice("--cache-type-k <type>", "data type of the K cache (default: f16)", cacheTypes))
    .addOption(
      choice(
        "--cache-type-v <type>",
        "data type of the V cache (default: f16); quantised types need flash attention",
        cacheTypes,
      ),
    )
    .addOption(
      choice(
        "--flash-attn <switch>",
        "turn flash attention on or off (default: on where it helps)",
        switches,
      ),
    )
    .addOption(
      choice(
        "--rope-scaling <method>",
        "RoPE scaling method, to extend the context beyond the training length",
        ["none", "linear", "yarn"],
      ),
    )
    .option("--rope-scale <factor>", "RoPE scaling factor", numberBetween(0.001, 1000))
    .option("--rope-freq-base <number>", "RoPE base frequency", numberBetween(1, 1e12))
    .option(
      "--yarn-orig-ctx <tokens>",
      "for yarn: the model's context size in training",
      integerBetween(1, 10_000_000),
    )
    .addOption(
      choice("--split-mode <mode>", "how to split the model across several GPUs", ["none", "layer", "row"]),
    )
    .option("--tensor-split <shares>", "each GPU's share of the model, such as 3,1", shareList)
    .option(
      "--main-gpu <number>",
      "the GPU to use with --split-mode none, otherwise the first GPU",
      integerBetween(0, 127),
    )
    .addOption(
      choice(
        "--edits <where>",
        "where live requests' edits and readings are computed: in the compute graph, or by a callback that stops it at each layer (default: graph where a GPU computes blocks)",
        ["graph", "callback"],
      ),
    )
    .option("--cpu-moe", "keep the expert weights of all blocks in CPU memory")
    .addOption(
      new Option("--n-cpu-moe <blocks>", "keep the expert weights of the first blocks in CPU memory")
        .argParser(integerBetween(1, 100_000))
        .conflicts("cpuMoe"),
    )
    .addOption(
      choice("--pooling <method>", "pooling method for embeddings", ["none", "mean", "cls", "last", "rank"]),
    )
    .option(
      "--temperature <number>",
      "default sampling temperature for requests that set none",
      numberBetween(0, 100),
    )
    .option("--top-k <number>", "default top-k (0: off)", integerBetween(0, 2_147_483_647))
    .option("--top-p <number>", "default top-p (1: off)", numberBetween(0, 1))
    .option("--min-p <number>", "default min-p (0: off)", numberBetween(0, 1))
    .option("--repeat-penalty <number>", "default repetition penalty (1: off)", numberBetween(0.01, 100))
    .option("--presence-penalty <number>", "default presence penalty (0: off)", numberBetween(-100, 100))
    .option("--frequency-penalty <number>", "default frequency penalty (0: off)", numberBetween(-100, 100))
    .option("--seed <number>", "default sampling seed", integerBetween(0, 4_294_967_295))
    .option("--embeddings", "serve /v1/embeddings even if the vocabulary is large")
    .option("--no-embeddings", "do not serve /v1/embeddings")
    .option("--chat-template <file>", "Jinja chat template to use instead of the model's")
    .addOption(keyOption())
    .addOption(corsOption())
    .option("--json-log", "log events as JSON lines")
    .action(runServe);
}

const cacheTypes = ["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"];

/** The server's settings from the options. @throws UsageError for contradictory options */
export async function servingOf(named: string | undefined, options: ServeCommandOptions) {
  if (named !== undefined && options.model !== undefined) {
    throw new UsageError("Give the model either as an argument or with --model, not both.");
  }
  if (options.pooling !== undefined && options.embeddings === false) {
    throw new UsageError("--pooling and --no-embeddings cannot be combined.");
  }
  const { readInput } = await import("../input-files.js");
  const { alias, profile, lora, flashAttn, yarnOrigCtx, cpuMoe, nCpuMoe, cacheRam, thinking, ...others } =
    options;
  const { temperature, topK, topP, minP, repeatPenalty, presencePenalty, frequencyPenalty, seed, ...same } =
    others;
  const sampling: SamplingDefaults = {
    ...(temperature !== undefined && { temperature }),
    ...(topK !== undefined && { top_k: topK }),
    ...(topP !== undefined && { top_p: topP }),
    ...(minP !== undefined && { min_p: minP }),
    ...(repeatPenalty !== undefined && { repeat_penalty: repeatPenalty }),
    ...(presencePenalty !== undefined && { presence_penalty: presencePenalty }),
    ...(frequencyPenalty !== undefined && { frequency_penalty: frequencyPenalty }),
    ...(seed !== undefined && { seed }),
  };
  return {
    ...same,
    model: named ?? options.model ?? "demo",
    aliases: alias,
    ...(profile && { profiles: profile }),
    cacheRamMiB: cacheRam,
    thinking: thinking === undefined ? undefined : thinking === "on",
    chatTemplate: same.chatTemplate === undefined ? undefined : await readInput(same.chatTemplate),
    loras: lora,
    flashAttention: flashAttn,
    yarnOriginalCtx: yarnOrigCtx,
    cpuMoe: cpuMoe ? -1 : nCpuMoe,
    sampling,
  };
}

/** A warning about who can use a server at an address; undefined for loopback. */
export function sharing(host: string, apiKey: string | undefined): string | undefined {
  if (/^(localhost|127\.[\d.]+|::1)$/i.test(host)) return undefined;
  const shared =
    apiKey === undefined ? "/v1 and /health without a key" : "all but /lab and /executions with the key";
  return `Anyone who can reach ${host} can use ${shared}.`;
}

async function runServe(
  named: string | undefined,
  { jsonLog = false, ...options }: ServeCommandOptions & { jsonLog?: boolean },
): Promise<void> {
  const settings = await servingOf(named, options);
  const stopped = stopSignal();
  const [{ serve }, { serveReport }] = await Promise.all([
    import("../../inference/process/supervisor.js"),
    import("./serve-report.js"),
  ]);
  const report = serveReport(jsonLog, settings.model);
  const starting = serve({ ...settings, onEvent: report.event });
  // A signal during a long load exits: the serving process ends with its parent's connection.
  const serving = await Promise.race([starting, stopped]);
  if (typeof serving === "string") process.exit(0);
  const sentence = sharing(options.host, options.apiKey);
  if (sentence !== undefined) report.event({ event: "warning", sentence });
  try {
    await Promise.race([stopped, serving.ended]);
  } finally {
    await serving.close();
  }
}
