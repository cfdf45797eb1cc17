import type { Command } from "commander";
import { UserError } from "../../contracts/user-error.js";
import { layerList } from "../options.js";
import { endBy, stoppable } from "../stop-signal.js";
import type { DemoOptions } from "./demo-run.js";

interface DemoCommandOptions extends Omit<DemoOptions, "signal" | "onStage"> {
  json?: boolean;
}

export function registerDemo(program: Command): void {
  program
    .command("demo")
    .description(
      "Two-second tour: start a server and a Lab, ask one question, show what happened inside, and exit.",
    )
    .option("--model <model>", "demo, a .gguf file, or a directory with one model", "demo")
    .option("--prompt <text>", "raw text to inspect", "The capital of France is")
    .option(
      "--question <text>",
      "question to ask, using the model's chat template",
      "What is the capital of France?",
    )
    .option(
      "--layers <list>",
      "blocks to inspect, such as 0,3,7 or 0-7 (default: up to 8, evenly spread)",
      layerList,
    )
    .option("--out <directory>", "folder for activations and report", "tapline-demo")
    .option("--json", "print everything as JSON")
    .action(runDemoCommand);
}

async function runDemoCommand(options: DemoCommandOptions): Promise<void> {
  const signal = stoppable();
  const [
    { runDemo },
    { demoPicture },
    { print, printJson },
    { canvasOf, ProgressLine },
    { TaplineError, TimeoutError },
  ] = await Promise.all([
    import("./demo-run.js"),
    import("./demo-picture.js"),
    import("../output.js"),
    import("../../terminal/index.js"),
    import("../../client/index.js"),
  ]);
  const progress = new ProgressLine(process.stderr);
  try {
    const { report, unwritten } = await runDemo({
      ...options,
      signal,
      onStage: (stage) => progress.show(stage),
    });
    progress.clear();
    await (options.json ? printJson(report) : print(demoPicture(report, canvasOf(process.stdout))));
    if (unwritten !== undefined) throw unwritten;
  } catch (error) {
    progress.clear();
    if (signal.aborted) return endBy(signal.reason);
    if (error instanceof TaplineError || error instanceof TimeoutError) throw new UserError(error.message);
    throw error;
  }
}
