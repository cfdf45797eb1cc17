import { Command, CommanderError } from "commander";
import { version } from "../contracts/version.js";
import { commands } from "../operations/commands.js";
import { registerCapture } from "./commands/capture.js";
import { registerCard } from "./commands/card.js";
import { registerChat } from "./commands/chat.js";
import { registerCheck } from "./commands/check.js";
import { registerCompletion } from "./commands/completion.js";
import { registerDemo } from "./commands/demo.js";
import { registerDictionary } from "./commands/dictionary.js";
import { registerDoctor } from "./commands/doctor.js";
import { registerExecutions } from "./commands/executions.js";
import { registerJobs } from "./commands/jobs.js";
import { registerLab } from "./commands/lab.js";
import { registerLens } from "./commands/lens.js";
import { registerMcp } from "./commands/mcp.js";
import { registerMerge } from "./commands/merge.js";
import { registerModels } from "./commands/models.js";
import { registerProbes } from "./commands/probe.js";
import { registerProfile } from "./commands/profile.js";
import { registerPull } from "./commands/pull.js";
import { registerQuants } from "./commands/quants.js";
import { registerReady } from "./commands/ready.js";
import { registerReport } from "./commands/report.js";
import { registerReproduce } from "./commands/reproduce.js";
import { registerRm } from "./commands/rm.js";
import { registerRouter } from "./commands/router.js";
import { registerServe } from "./commands/serve.js";
import { registerStats } from "./commands/stats.js";
import { registerStudies } from "./commands/studies.js";
import { registerStudy } from "./commands/study.js";
import { registerVector } from "./commands/vector.js";
import { registerVerify } from "./commands/verify.js";
import { registerWorkbench } from "./commands/workbench.js";
import { exitCodeOf, sentenceOf } from "./exit-code.js";
import { addExamples } from "./help-examples.js";
import { watchOutput } from "./output.js";

/** Runs the program with the given arguments, the process's by default. */
export async function runProgram(argv: readonly string[] = process.argv): Promise<void> {
  watchOutput();
  const program = new Command("tapline")
    .description("Inspect and steer language models as they run, locally.")
    .version(version)
    .showHelpAfterError("(use --help to see all options)")
    // Options after a subcommand belong to it, even if its parent has an option of the same name.
    .enablePositionalOptions()
    // Also wraps descriptions after long terms, down to this width.
    .configureHelp({ minWidthToWrap: 20 })
    .configureOutput({
      outputError: (text, write) =>
        write(text.replace(/^error: (\w)/, (_, first) => `tapline: ${first.toUpperCase()}`)),
    })
    .exitOverride();

  // Each command registers itself; its modules load only when it runs.
  program.commandsGroup("Services:");
  registerWorkbench(program);
  registerServe(program);
  registerLab(program);
  registerRouter(program);
  registerStudies(program);
  registerMcp(program);
  registerReady(program);
  program.commandsGroup("Experiments:");
  registerDemo(program);
  for (const register of Object.values(commands)) register(program);
  registerQuants(program);
  registerJobs(program);
  registerMerge(program);
  registerRm(program);
  registerReport(program);
  registerReproduce(program);
  registerStudy(program);
  registerCheck(program);
  program.commandsGroup("A running server:");
  registerChat(program);
  registerCapture(program);
  registerExecutions(program);
  registerStats(program);
  registerVector(program);
  registerProbes(program);
  registerProfile(program);
  registerCard(program);
  registerDictionary(program);
  registerLens(program);
  program.commandsGroup("Models and machine:");
  registerPull(program);
  registerModels(program);
  registerDoctor(program);
  registerVerify(program);
  registerCompletion(program);
  program.helpCommand("help [command]", "Show help for a command.");
  addExamples(program);

  try {
    await program.parseAsync(argv);
  } catch (error) {
    // Commander has already printed its own errors.
    if (!(error instanceof CommanderError)) process.stderr.write(`tapline: ${sentenceOf(error)}\n`);
    process.exitCode = exitCodeOf(error);
  }
}
