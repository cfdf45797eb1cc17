import type { Command } from "commander";
import type { ExecutionList } from "../contracts/execution.js";
import { defaults, limits } from "../contracts/limits.js";
import type { RouterStats } from "../contracts/router.js";
import type { Stats } from "../contracts/stats.js";
import { spreadLayers } from "../findings/layers.js";
import { UsageError } from "./exit-code.js";
import { layerList } from "./layers.js";
import { integerBetween } from "./options.js";
import { serverOption } from "./service-address.js";

interface ServerOptions {
  url: string;
  json?: boolean;
}

interface CaptureOptions extends ServerOptions {
  layers?: number[];
  maxInputTokens?: number;
}

interface ExecutionsOptions extends ServerOptions {
  clear?: boolean;
}

/** `tapline capture`, `executions` and `stats`: the inside of a running `tapline serve`. */
export function registerResident(program: Command): void {
  const withServer = (name: string, description: string) =>
    program
      .command(name)
      .description(description)
      .addOption(serverOption())
      .option("--json", "print what the server answers as JSON, for programs");

  withServer("capture", "Measure the model that a running server holds: norms and next tokens.")
    .argument("<prompt>", "raw text, no chat template; - reads it from standard input")
    .option(
      "--layers <list>",
      `up to ${limits.capture_layers} blocks as 0,3,7 (default: evenly spread)`,
      layerList,
    )
    .option(
      "--max-input-tokens <number>",
      `tokens that the text may have, at most ${limits.capture_input_tokens} (default: ${defaults.capture_input_tokens})`,
      integerBetween(1, limits.capture_input_tokens),
    )
    .addHelpText("after", '\nExamples:\n  tapline capture "The capital of France is" --layers 3,7')
    .action(capture);

  withServer("executions", "Show what recent requests to a running server sent and got.")
    .argument("[id]", "one request in full: its id, the beginning of it, or last")
    .option("--clear", "forget finished requests")
    .addHelpText(
      "after",
      "\nExamples:\n  tapline executions\n  tapline executions last\n  tapline executions --clear",
    )
    .action(executions);

  withServer("stats", "Show a running server's requests, speed, latency and memory.")
    .addHelpText("after", "\nExamples:\n  tapline stats\n  tapline stats --json | jq .latency_ms")
    .action(stats);
}

async function tools() {
  const [{ Transport }, terminal, { oneLine }, { print, printJson }, { TaplineError }] = await Promise.all([
    import("../client/transport.js"),
    import("../terminal/index.js"),
    import("../findings/text.js"),
    import("./output.js"),
    import("../client/errors.js"),
  ]);
  return { Transport, terminal, oneLine, print, printJson, TaplineError };
}

async function capture(prompt: string, options: CaptureOptions): Promise<void> {
  const { terminal, oneLine, print, printJson, TaplineError } = await tools();
  const [{ ServingModel }, { readInput }] = await Promise.all([
    import("../client/serving-model.js"),
    import("./input-files.js"),
  ]);
  const text = prompt === "-" ? (await readInput("-")).replace(/\r?\n$/, "") : prompt;
  const serving = new ServingModel(options.url);
  const { model, n_layer } = await serving.capabilities();
  if (model === null) throw new TaplineError("The server holds no model at the moment.");
  const result = await serving.inspect(text, {
    model,
    layers: options.layers ?? spreadLayers(n_layer ?? 1, limits.capture_layers),
    maxInputTokens: options.maxInputTokens,
  });
  if (options.json) return printJson(result);
  const canvas = terminal.canvasOf(process.stdout);
  const lines = [
    ...terminal.labelled("Model", oneLine(model), canvas),
    ...terminal.labelled("Captured", oneLine(text), canvas),
    "",
    ...terminal.measurePicture(result, canvas),
    "",
    ...terminal.labelled("Note", oneLine(result.note), canvas),
  ];
  return print(lines.join("\n"));
}

async function executions(name: string | undefined, options: ExecutionsOptions): Promise<void> {
  if (options.clear && name !== undefined) {
    throw new UsageError("--clear forgets every request that has ended; it takes no id.");
  }
  const { Transport, terminal, print, printJson } = await tools();
  const http = new Transport(options.url, 10_000, { service: "serve" });
  const canvas = terminal.canvasOf(process.stdout);
  if (options.clear) {
    const answer = await http.json("/executions", { method: "DELETE" });
    return options.json ? printJson(answer) : print("Finished requests are forgotten.");
  }
  if (name === undefined) {
    const list = await http.json<ExecutionList>("/executions");
    return options.json ? printJson(list) : print(terminal.executionList(list, canvas).join("\n"));
  }
  const { findExecution } = await import("./find-execution.js");
  const execution = await findExecution(http, name);
  return options.json ? printJson(execution) : print(terminal.executionPicture(execution, canvas).join("\n"));
}

async function stats(options: ServerOptions): Promise<void> {
  const { Transport, terminal, print, printJson } = await tools();
  const answer = await new Transport(options.url, 10_000, { service: "serve" }).json<Stats | RouterStats>(
    "/stats",
  );
  if (options.json) return printJson(answer);
  const canvas = terminal.canvasOf(process.stdout);
  // A router has backends where a server has a model.
  const picture =
    "backends" in answer
      ? terminal.routerStatsPicture(answer, canvas)
      : terminal.statsPicture(answer, canvas);
  return print(picture.join("\n"));
}
