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

/** Most flags have their setting's name. */
interface ServeCommandOptions extends Omit<StartOptions, "model" | "thinking" | "cpuMoe"> {
  model?: string;
  alias?: string[];
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
    .description("Serve a model: OpenAI-style chat, and its inside while it runs.")
    .argument("[model]", "the same as --model")
    .option("-m, --model <model>", `${modelHelp} (default: demo)`)
    .option("--alias <name>", "name under which it is served; once for each, the first is told", collect)
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
    .addOption(choice("--thinking <switch>", "whether answers think, where the template can", switches))
    .option(
      "--draft <model>",
      "a smaller model of the same vocabulary that guesses tokens ahead; answers stay the same",
    )
    .option("--mmproj <file>", "the model's image encoder, a .gguf file: chats may then hold images")
    .option(
      "--lora <file[:scale]>",
      "LoRA adapter, a .gguf file, and how strongly it is applied (default: 1); once for each",
      loraList,
    )
    .addOption(choice("--cache-type-k <type>", "type of the K cache (default: f16)", cacheTypes))
    .addOption(
      choice(
        "--cache-type-v <type>",
        "type of the V cache; a quantised one needs flash attention",
        cacheTypes,
      ),
    )
    .addOption(choice("--flash-attn <switch>", "fused attention (default: where it helps)", switches))
    .addOption(
      choice("--rope-scaling <method>", "how positions are stretched beyond the training's", [
        "none",
        "linear",
        "yarn",
      ]),
    )
    .option("--rope-scale <factor>", "how far they are stretched", numberBetween(0.001, 1000))
    .option("--rope-freq-base <number>", "RoPE's base frequency", numberBetween(1, 1e12))
    .option(
      "--yarn-orig-ctx <tokens>",
      "tokens that the model was trained with, for yarn",
      integerBetween(1, 10_000_000),
    )
    .addOption(
      choice("--split-mode <mode>", "how a model is spread over several GPUs", ["none", "layer", "row"]),
    )
    .option("--tensor-split <shares>", "each GPU's share, e.g. 3,1", shareList)
    .option("--main-gpu <number>", "the GPU that is used alone, or first", integerBetween(0, 127))
    .option("--cpu-moe", "keep all experts in the CPU's memory")
    .addOption(
      new Option("--n-cpu-moe <blocks>", "keep the experts of the first blocks there")
        .argParser(integerBetween(1, 100_000))
        .conflicts("cpuMoe"),
    )
    .addOption(
      choice("--pooling <method>", "how embeddings are made of a text's tokens", [
        "none",
        "mean",
        "cls",
        "last",
        "rank",
      ]),
    )
    .option("--temperature <number>", "where a request says nothing", numberBetween(0, 100))
    .option("--top-k <number>", "the same", integerBetween(0, 2_147_483_647))
    .option("--top-p <number>", "the same", numberBetween(0, 1))
    .option("--min-p <number>", "the same", numberBetween(0, 1))
    .option("--repeat-penalty <number>", "the same", numberBetween(0.01, 100))
    .option("--presence-penalty <number>", "the same", numberBetween(-100, 100))
    .option("--frequency-penalty <number>", "the same", numberBetween(-100, 100))
    .option("--seed <number>", "the same", integerBetween(0, 4_294_967_295))
    .option("--embeddings", "serve /v1/embeddings even for a large vocabulary")
    .option("--no-embeddings", "do not serve /v1/embeddings")
    .option("--chat-template <file>", "Jinja template instead of the model's own")
    .addOption(keyOption())
    .addOption(corsOption())
    .option("--json-log", "write what happens as lines of JSON")
    .action(runServe);
}

const cacheTypes = ["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl"];

/** What the flags ask of the server. @throws UsageError where they contradict each other */
export async function servingOf(named: string | undefined, options: ServeCommandOptions) {
  if (named !== undefined && options.model !== undefined) {
    throw new UsageError("Name the model once: as an argument or with --model.");
  }
  if (options.pooling !== undefined && options.embeddings === false) {
    throw new UsageError("--pooling is about embeddings, and --no-embeddings switches them off.");
  }
  const { readInput } = await import("../input-files.js");
  const { alias, lora, flashAttn, yarnOrigCtx, cpuMoe, nCpuMoe, cacheRam, thinking, ...others } = options;
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

/** Who may use a server that is bound to an address; nothing where that is this machine alone. */
export function sharing(host: string, apiKey: string | undefined): string | undefined {
  if (/^(localhost|127\.[\d.]+|::1)$/i.test(host)) return undefined;
  const shared =
    apiKey === undefined ? "/v1 and /health without a key" : "all but /lab and /executions with the key";
  return `Whoever reaches ${host} may now use ${shared}.`;
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
  // A signal during a long load ends it: the serving process is killed with its parent's connection.
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
