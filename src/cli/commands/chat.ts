import { type Command, Option } from "commander";
import type { LiveRequest } from "../../contracts/live.js";
import { profileId } from "../../contracts/profile-name.js";
import { noTemplateSentence } from "../../findings/chat-template.js";
import { UsageError } from "../exit-code.js";
import { choice, integerBetween, numberBetween, switches } from "../options.js";
import { serverOption } from "../service-address.js";
import { type Steering, steering, steeringEdit } from "../steering.js";
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
  profile?: string;
}

/** A large model may process a long conversation for minutes before the first token. */
const silenceMs = 600_000;

/** `tapline chat`: a conversation in a terminal, with a running or a temporary server. */
export function registerChat(program: Command): void {
  program
    .command("chat")
    .description("Chat with a model in the terminal.")
    .addOption(serverOption())
    .option("--model <model>", "start a temporary server with this model: demo, a .gguf file, …")
    .addOption(new Option("--api-key <key>", "the server's API key").env("TAPLINE_API_KEY"))
    .option("--system <text>", "system message")
    .option("--system-file <file>", "system message from a file")
    .addOption(choice("--think <switch>", "turn thinking on or off, if the template supports it", switches))
    .option("--max-tokens <number>", "maximum length of an answer in tokens", integerBetween(1, 1_000_000))
    .option(
      "--temperature <number>",
      "sampling temperature; 0 always picks the most probable token",
      numberBetween(0, 100),
    )
    .option("--seed <number>", "sampling seed", integerBetween(0, 2 ** 32 - 1))
    .option(
      "--steer <vector:strength>",
      "steer every answer along a saved vector (see tapline vector); strength is relative to the activation's norm; repeatable",
      steering,
    )
    .option("--profile <name>", "chat with a saved profile of the model (see tapline profile)")
    .option("--watch <probe>", "color every token by a saved probe's score (see tapline probe)")
    .addHelpText(
      "after",
      `
Type /help in the chat for its commands: /reset, /system, /think on|off. Ctrl-C
stops an answer; Ctrl-C twice or Ctrl-D ends the chat. If input is piped, every
line is a message, and only the answers are written.

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
  if (options.profile !== undefined) {
    const { checkName } = await import("../saved.js");
    await checkName(options.profile);
  }
  if (options.model !== undefined && command.getOptionValueSource("url") === "cli") {
    throw new UsageError("--model starts a server and --url uses a running one: they cannot be combined.");
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
        model: options.profile === undefined ? server.model : profileId(server.model, options.profile),
        ...(options.maxTokens === undefined ? {} : { max_tokens: options.maxTokens }),
        ...(options.temperature === undefined ? {} : { temperature: options.temperature }),
        ...(options.seed === undefined ? {} : { seed: options.seed }),
        ...(live !== undefined && { tapline: live }),
      },
    });
    if (starting !== undefined) {
      // Only the answers go to standard output.
      if (server.raw) process.stderr.write(`tapline: ${noTemplateSentence}\n`);
      const { pipedChat } = await import("./chat-piped.js");
      await pipedChat(session, starting);
      return;
    }
    const { TerminalChat } = await import("./chat-terminal.js");
    const [{ dim, colorsOf }, { oneLine }] = await Promise.all([
      import("../../terminal/index.js"),
      import("../../findings/text.js"),
    ]);
    const greeting = `${oneLine(server.model)} at ${server.url}. Type /help for commands, Ctrl-D to quit.`;
    const greetings = server.raw ? [greeting, noTemplateSentence] : [greeting];
    for (const line of greetings) process.stdout.write(`${dim(line, colorsOf(process.stdout))}\n`);
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

/** The parts of an entry of `/v1/models` that the chat uses; only tapline's own servers have `meta`. */
interface ServedModel {
  id: string;
  meta?: { chat_template?: boolean };
}

interface Server {
  url: string;
  model: string;
  /** Whether the model continues the messages' raw texts. */
  raw: boolean;
  ask: Ask;
  close(): Promise<void>;
}

/** The running or a temporary server, and the model to request. */
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
    const { data } = await http.json<{ data: ServedModel[] }>("/v1/models", {});
    const ids = data.map(({ id }) => id);
    // A router chooses between its servers.
    const model = ids.includes("auto") ? "auto" : ids[0];
    if (model === undefined) throw new TaplineError(`The server at ${url} serves no model.`);
    return {
      url,
      model,
      raw: data.find(({ id }) => id === model)?.meta?.chat_template === false,
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
  if (system !== undefined) throw new UsageError("--system and --system-file cannot be combined.");
  const { readInput } = await import("../input-files.js");
  return (await readInput(systemFile)).trim();
}

/** The `tapline` object of every request; undefined without steering and probe. */
function liveOf({ steer = [], watch }: ChatCommandOptions): LiveRequest | undefined {
  if (steer.length === 0 && watch === undefined) return undefined;
  return {
    ...(steer.length > 0 && { interventions: steer.map(steeringEdit) }),
    ...(watch !== undefined && { watch: { probes: [watch] } }),
  };
}
