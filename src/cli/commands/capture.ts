import type { Command } from "commander";
import { defaults, limits } from "../../contracts/limits.js";
import { spreadLayers } from "../../findings/layers.js";
import { integerBetween, layerList } from "../options.js";
import { type ServerOptions, serverCommand, serverTools } from "../server-command.js";

interface CaptureOptions extends ServerOptions {
  layers?: number[];
  maxInputTokens?: number;
}

/** `tapline capture`: activation norms and next tokens of a served model. */
export function registerCapture(program: Command): void {
  serverCommand(
    program,
    "capture",
    "Show activation norms and next tokens for a text, on the model of a running server.",
  )
    .argument("<prompt>", "raw text without a chat template; - reads standard input")
    .option(
      "--layers <list>",
      `up to ${limits.capture_layers} blocks, such as 0,3,7 (default: evenly spread)`,
      layerList,
    )
    .option(
      "--max-input-tokens <number>",
      `maximum length of the text in tokens, at most ${limits.capture_input_tokens} (default: ${defaults.capture_input_tokens})`,
      integerBetween(1, limits.capture_input_tokens),
    )
    .addHelpText("after", '\nExamples:\n  tapline capture "The capital of France is" --layers 3,7')
    .action(capture);
}

async function capture(prompt: string, options: CaptureOptions): Promise<void> {
  const { terminal, oneLine, print, printJson, TaplineError } = await serverTools();
  const [{ ServingModel }, { readInput }] = await Promise.all([
    import("../../client/serving-model.js"),
    import("../input-files.js"),
  ]);
  const text = prompt === "-" ? (await readInput("-")).replace(/\r?\n$/, "") : prompt;
  const serving = new ServingModel(options.url);
  const { model, n_layer } = await serving.capabilities();
  if (model === null) throw new TaplineError("The server has no model loaded.");
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
