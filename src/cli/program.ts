import { Command, CommanderError } from "commander";
import { version } from "../contracts/version.js";
import { commands } from "../operations/commands.js";
import { registerChat } from "./chat.js";
import { registerCompletion } from "./completion.js";
import { registerDemo } from "./demo.js";
import { registerDictionary } from "./dictionary.js";
import { registerDoctor } from "./doctor.js";
import { exitCodeOf, sentenceOf } from "./exit-code.js";
import { addExamples } from "./help-examples.js";
import { registerJobs } from "./jobs.js";
import { registerLab } from "./lab.js";
import { registerLens } from "./lens.js";
import { registerMcp } from "./mcp.js";
import { registerModels } from "./models.js";
import { watchOutput } from "./output.js";
import { registerProbes } from "./probe.js";
import { registerPull } from "./pull.js";
import { registerReady } from "./ready.js";
import { registerReport } from "./report.js";
import { registerReproduce } from "./reproduce.js";
import { registerResident } from "./resident.js";
import { registerRm } from "./rm.js";
import { registerRouter } from "./router.js";
import { registerServe } from "./serve.js";
import { registerStudies } from "./studies.js";
import { registerStudy } from "./study.js";
import { registerVector } from "./vector.js";
import { registerWorkbench } from "./workbench.js";

/** Runs the program with its arguments, those of the process unless told otherwise, until it would end. */
export async function runProgram(argv: readonly string[] = process.argv): Promise<void> {
  watchOutput();
  const program = new Command("tapline")
    .description("Open up a language model while it runs, on this machine.")
    .version(version)
    .showHelpAfterError("(add --help for what there is)")
    // What stands behind a command is its own, also where the command above it has an option of that name.
    .enablePositionalOptions()
    // Descriptions behind long terms are wrapped, too, down to this width.
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
  registerJobs(program);
  registerRm(program);
  registerReport(program);
  registerReproduce(program);
  registerStudy(program);
  program.commandsGroup("A running server:");
  registerChat(program);
  registerResident(program);
  registerVector(program);
  registerProbes(program);
  registerDictionary(program);
  registerLens(program);
  program.commandsGroup("Models and machine:");
  registerPull(program);
  registerModels(program);
  registerDoctor(program);
  registerCompletion(program);
  program.helpCommand("help [command]", "Show the help of a command.");
  addExamples(program);

  try {
    await program.parseAsync(argv);
  } catch (error) {
    // Commander has told its own errors already.
    if (!(error instanceof CommanderError)) process.stderr.write(`tapline: ${sentenceOf(error)}\n`);
    process.exitCode = exitCodeOf(error);
  }
}
