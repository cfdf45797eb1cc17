import { Command } from "commander";
import { UserError } from "../contracts/user-error.js";
import { version } from "../contracts/version.js";
import { registerDemo } from "./demo.js";
import { registerLab } from "./lab.js";
import { registerServe } from "./serve.js";
import { registerStudies } from "./studies.js";

const program = new Command("tapline")
  .description("Open up a language model while it runs, on this machine.")
  .version(version)
  .showHelpAfterError();

// Each command registers itself; its modules load only when it runs.
registerDemo(program);
registerServe(program);
registerLab(program);
registerStudies(program);

try {
  await program.parseAsync();
} catch (error) {
  process.stderr.write(`tapline: ${sentence(error)}\n`);
  process.exitCode = 1;
}

/** What a person reads: the sentence where there is one, the whole stack of a fault otherwise. */
function sentence(error: unknown): string {
  if (error instanceof UserError) return error.message;
  if (error instanceof Error)
    return error.name === "NativeError" ? error.message : (error.stack ?? error.message);
  return String(error);
}
