import { type Command, InvalidArgumentError, Option } from "commander";
import type { LiveIntervention, LiveRequest } from "../../contracts/live.js";
import { UsageError } from "../exit-code.js";
import { choice, integerBetween, numberBetween, switches } from "../options.js";
import { serverOption } from "../service-address.js";
import type { Ask } from "./chat-session.js";

interface ChatCommandOptions {
  url: string;
  model?: string;
  apiKey?: string;
  system?: string;
  systemFile?: string;
  think?: "on" | "off";
  maxTokens?: number;
  temperature?: number;
  seed?: number;
  steer?: Steering[];
  watch?: string;
}

interface Steering {
  vector: string;
  strength: number;
}

/** A large model may read a long conversation for minutes before it says a word. */
const silenceMs = 600_000;

/** `tapline chat`: a conversation in a terminal, with a running server or one for the occasion. */
export function registerChat(program: Command): void {
  program
    .command("chat")
    .description("Talk to a model in the terminal.")
    .addOption(serverOption())
    .option("--model <model>", "start a server with this model for the occasion: demo, a .gguf file, …")
    .addOption(new Option("--api-key <key>", "key that the server asks for").env("TAPLINE_API_KEY"))
    .option("--system <text>", "system message")
    .option("--system-file <file>", "system message from a file")
    .addOption(choice("--think <switch>", "whether answers think, where the template can", switches))
    .option("--max-tokens <number>", "longest answer", integerBetween(1, 1_000_000))
    .option("--temperature <number>", "0 always takes the likeliest token", numberBetween(0, 100))
    .option("--seed <number>", "seed of the sampling", integerBetween(0, 2 ** 32 - 1))
    .option(
      "--steer <vector:strength>",
      "steer every answer by a kept vector (tapline vector), in shares of each row's length; may be repeated",
      steering,
    )
    .option("--watch <probe>", "show a kept probe's score (tapline probe) behind every token")
    .addHelpText(
      "after",
      `
In the chat, /help lists what there is: /reset, /system, /think on|off. Ctrl-C
stops an answer, twice it ends the chat, as Ctrl-D does. From a pipe every line
is a message, and only answers are written.

Examples:
  tapline chat
  tapline chat --model ./model.gguf --think off
  tapline chat --steer polite:0.2 --watch truth
  tapline chat --url http://192.168.1.20:8971 --api-key "$KEY"
  echo "What is the capital of France?" | tapline chat --model demo`,
    )
    .action(chat);
}

async function chat(options: ChatCommandOptions, command: Command): Promise<void> {
  if (options.model !== undefined && command.getOptionValueSource("url") === "cli") {
    throw new UsageError("--model starts a server, --url names a running one; say one of them.");
  }
  const [{ stoppable, endBy }, { ChatSession }] = await Promise.all([
    import("../stop-signal.js"),
    import("./chat-session.js"),
  ]);
  const system = await systemMessage(options);
  const interactive = process.stdin.isTTY === true && process.stdout.isTTY === true;
  const starting = interactive ? undefined : stoppable();
  const server = await openServer(options, starting);
  try {
    const live = liveOf(options);
    const session = new ChatSession(server.ask, {
      watch: options.watch,
      ...(system === undefined ? {} : { system }),
      ...(options.think === undefined ? {} : { thinking: options.think === "on" }),
      request: {
        model: server.model,
        ...(options.maxTokens === undefined ? {} : { max_tokens: options.maxTokens }),
        ...(options.temperature === undefined ? {} : { temperature: options.temperature }),
        ...(options.seed === undefined ? {} : { seed: options.seed }),
        ...(live !== undefined && { tapline: live }),
      },
    });
    if (starting !== undefined) {
      const { pipedChat } = await import("./chat-piped.js");
      await pipedChat(session, starting);
      return;
    }
    const { TerminalChat } = await import("./chat-terminal.js");
    const [{ dim, colorsOf }, { oneLine }] = await Promise.all([
      import("../../terminal/index.js"),
      import("../../findings/text.js"),
    ]);
    const greeting = `${oneLine(server.model)} at ${server.url}; /help lists commands, Ctrl-D ends.`;
    process.stdout.write(`${dim(greeting, colorsOf(process.stdout))}\n`);
    const terminal = new TerminalChat(session, process.stdout);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
      process.on(signal, () => terminal.interrupt(signal));
    }
    const how = await terminal.run(process.stdin);
    await server.close();
    if (how !== "done") endBy(how);
  } catch (error) {
    if (!starting?.aborted) throw error;
    await server.close();
    endBy(starting.reason);
  } finally {
    await server.close();
  }
}

interface Server {
  url: string;
  model: string;
  ask: Ask;
  close(): Promise<void>;
}

/** The server that was named, or one for the occasion; and the model to ask for. */
async function openServer(options: ChatCommandOptions, signal: AbortSignal | undefined): Promise<Server> {
  const own = options.model === undefined ? undefined : await startServer(options.model, signal);
  try {
    const [{ Transport }, { streamAnswer }, { TaplineError }] = await Promise.all([
      import("../../client/transport.js"),
      import("../../client/chat.js"),
      import("../../client/errors.js"),
    ]);
    const url = own?.url ?? options.url;
    const key = own === undefined ? options.apiKey : undefined;
    const http = new Transport(url, silenceMs, { apiKey: key ?? "", service: "serve" });
    const { data } = await http.json<{ data: Array<{ id: string }> }>("/v1/models", {});
    const ids = data.map(({ id }) => id);
    // A router picks among its servers itself.
    const model = ids.includes("auto") ? "auto" : ids[0];
    if (model === undefined) throw new TaplineError(`The server at ${url} serves no model.`);
    return {
      url,
      model,
      ask: (messages, request, stop) => streamAnswer(http, messages, { request, signal: stop }),
      close: async () => own?.close(),
    };
  } catch (error) {
    await own?.close();
    throw error;
  }
}

async function startServer(model: string, signal: AbortSignal | undefined) {
  const [{ serveHere }, { ProgressLine }] = await Promise.all([
    import("../own-server.js"),
    import("../../terminal/index.js"),
  ]);
  const progress = new ProgressLine(process.stderr);
  try {
    return await serveHere(model, (stage) => progress.show(stage), { signal });
  } finally {
    progress.clear();
  }
}

async function systemMessage({ system, systemFile }: ChatCommandOptions): Promise<string | undefined> {
  if (systemFile === undefined) return system;
  if (system !== undefined) throw new UsageError("Say either --system or --system-file.");
  const { readInput } = await import("../input-files.js");
  return (await readInput(systemFile)).trim();
}

function steering(text: string, earlier: Steering[] = []): Steering[] {
  const [, vector, amount = ""] = /^(.+?)(?::([^:]*))?$/.exec(text) ?? [];
  const strength = amount.trim() === "" ? Number.NaN : Number(amount);
  if (vector === undefined || !Number.isFinite(strength)) {
    throw new InvalidArgumentError("It is a vector's name and a strength, as polite:0.2.");
  }
  return [...earlier, { vector, strength }];
}

/** The `tapline` object of every request; nothing where nothing of it is asked for. */
function liveOf({ steer = [], watch }: ChatCommandOptions): LiveRequest | undefined {
  if (steer.length === 0 && watch === undefined) return undefined;
  return {
    ...(steer.length > 0 && { interventions: steer.map(intervention) }),
    ...(watch !== undefined && { watch: { probes: [watch] } }),
  };
}

/** At every layer that the vector has, on every token. */
function intervention({ vector, strength }: Steering): LiveIntervention {
  return { kind: "steer", vector, strength, strength_unit: "row_norm" };
}
