import type { Command } from "commander";
import type { ExecutionList } from "../../contracts/execution.js";
import { UsageError } from "../exit-code.js";
import { type ServerOptions, serverCommand, serverTools } from "../server-command.js";

interface ExecutionsOptions extends ServerOptions {
  clear?: boolean;
}

/** `tapline executions`: recent requests to a server and their responses. */
export function registerExecutions(program: Command): void {
  serverCommand(program, "executions", "Show recent requests to a running server and their responses.")
    .argument("[id]", "show one request in full: its id, a prefix of it, or last")
    .option("--clear", "clear finished requests")
    .addHelpText(
      "after",
      "\nExamples:\n  tapline executions\n  tapline executions last\n  tapline executions --clear",
    )
    .action(executions);
}

async function executions(name: string | undefined, options: ExecutionsOptions): Promise<void> {
  if (options.clear && name !== undefined) {
    throw new UsageError("--clear removes all finished requests and takes no id.");
  }
  const { Transport, terminal, print, printJson } = await serverTools();
  const http = new Transport(options.url, 10_000, { service: "serve" });
  const canvas = terminal.canvasOf(process.stdout);
  if (options.clear) {
    const answer = await http.json("/executions", { method: "DELETE" });
    return options.json ? printJson(answer) : print("Finished requests cleared.");
  }
  if (name === undefined) {
    const list = await http.json<ExecutionList>("/executions");
    return options.json ? printJson(list) : print(terminal.executionList(list, canvas).join("\n"));
  }
  const { findExecution } = await import("./executions-find.js");
  const execution = await findExecution(http, name);
  return options.json ? printJson(execution) : print(terminal.executionPicture(execution, canvas).join("\n"));
}
